// Names from a file as they may stand in a one-line error: ASCII, escaped, cut where they are long.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace frontier {

inline std::string printable(std::string_view name) {
    constexpr std::size_t kShownBytes = 96;  // longer than any name of a real model
    std::string out;
    for (const char c : name.substr(0, kShownBytes)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte > 0x7E || c == '\\')
            out += fmt::format("\\x{:02x}", byte);
        else
            out += c;
    }
    if (name.size() > kShownBytes) out += fmt::format("... ({} bytes)", name.size());
    return out;
}

// Control characters have no place in a key or a tensor's name: they would break lines of listings and logs.
inline bool has_control_bytes(std::string_view name) {
    for (const char c : name)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return true;
    return false;
}

}  // namespace frontier
