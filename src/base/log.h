// Logging glue over spdlog. All logs go to stderr; stdout belongs to the commands.
#pragma once

#include <string_view>

#include <spdlog/spdlog.h>

#include "base/result.h"

namespace frontier {

// Level names: trace, debug, info, warning, error, off. The default is `warning` when stderr is not a terminal.
Status set_log_level(std::string_view level);
void init_logging(bool stderr_is_terminal);

}  // namespace frontier
