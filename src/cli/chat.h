// The interactive chat of `frontier run`.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/loader.h"
#include "engine/request.h"

namespace frontier {

struct ChatSettings {
    std::string system;
    bool plain = false;          // no template: each line is continued as it stands
    bool parse_special = false;  // in plain mode
};

// Reads lines until end of input or /exit. `request` holds the sampling; its seed advances with each turn.
// Ctrl-C stops a generation, never the program.
Status run_chat(LoadedModel& loaded, const Request& request, const ChatSettings& settings);

}  // namespace frontier
