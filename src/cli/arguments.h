// What the command-line library gets wrong or says too little about, put right before and after it parses.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace frontier {

// The arguments after the program's name in the form the library takes. "--prompt=" becomes "--prompt" and an empty
// argument, because the library would take the argument that follows for the value. A word that is no command where
// one is due is kUsage with the commands there are.
Result<std::vector<std::string>> prepare_arguments(const CLI::App& app, int argc, const char* const* argv);

// What the parsed command must not leave to defaults: a MODEL that is given and empty is kUsage.
Status check_parsed(const CLI::App& app);

}  // namespace frontier
