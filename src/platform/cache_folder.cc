#include "platform/cache_folder.h"

#include <cstdlib>

namespace frontier {

Result<std::string> cache_folder() {
    // A relative XDG_CACHE_HOME is to be ignored, says the XDG base directory specification.
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/')
        return std::string(cache) + "/frontier";
    if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
        return std::string(home) + "/.cache/frontier";
    return fail(ErrorCode::kFailed, "no place for a cache: neither XDG_CACHE_HOME nor HOME is an absolute path");
}

}  // namespace frontier
