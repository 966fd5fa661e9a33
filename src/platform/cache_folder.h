// Where this program keeps what it can make again: measurements of the machine, packed weights.
#pragma once

#include <string>

#include "base/result.h"

namespace frontier {

// $XDG_CACHE_HOME/frontier or ~/.cache/frontier; it need not exist yet. kFailed when the environment names no home.
Result<std::string> cache_folder();

}  // namespace frontier
