// A bounds-checked cursor over the bytes of a little-endian file. Nothing is read past the end, nothing is aligned.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace frontier {

static_assert(std::endian::native == std::endian::little, "the formats are read in place");

class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::size_t offset() const { return offset_; }
    std::size_t size() const { return bytes_.size(); }
    std::size_t remaining() const { return bytes_.size() - offset_; }

    // False, and nothing consumed, when fewer bytes remain.
    template <typename T>
        requires std::is_arithmetic_v<T>
    bool read(T& value) {
        if (remaining() < sizeof(T)) return false;
        std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
        offset_ += sizeof(T);
        return true;
    }
    bool take(std::uint64_t count, std::span<const std::byte>& out) {
        if (remaining() < count) return false;
        out = bytes_.subspan(offset_, static_cast<std::size_t>(count));
        offset_ += static_cast<std::size_t>(count);
        return true;
    }

private:
    std::span<const std::byte> bytes_;
    std::size_t offset_ = 0;
};

inline std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace frontier
