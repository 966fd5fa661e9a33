#include "base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>

namespace frontier {

void init_logging(bool stderr_is_terminal) {
    auto logger = std::make_shared<spdlog::logger>("frontier", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_pattern("frontier: %^%l%$: %v");
    logger->set_level(stderr_is_terminal ? spdlog::level::info : spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
}

Status set_log_level(std::string_view level) {
    const auto parsed = spdlog::level::from_str(std::string(level));
    // from_str maps unknown names to `off`.
    if (parsed == spdlog::level::off && level != "off")
        return fail(ErrorCode::kUsage, "--log-level: expected trace, debug, info, warning, error or off, got '{}'",
                    level);
    spdlog::set_level(parsed);
    return {};
}

}  // namespace frontier
