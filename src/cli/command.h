// How commands plug into the program: each file adds one subcommand; main runs the chosen one and maps its Status to
// the exit code of the contract.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace frontier {

using Action = std::function<Status()>;

void add_run_command(CLI::App& app, Action& chosen);
void add_tokenize_commands(CLI::App& app, Action& chosen);  // tokenize, detokenize
void add_inspect_command(CLI::App& app, Action& chosen);
void add_list_command(CLI::App& app, Action& chosen);
void add_synth_command(CLI::App& app, Action& chosen);
void add_bench_commands(CLI::App& app, Action& chosen);  // bench roofline, bench engine
void add_eval_commands(CLI::App& app, Action& chosen);   // eval perplexity

}  // namespace frontier
