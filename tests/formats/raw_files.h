// Bytes of GGUF and safetensors files put together by hand, right or wrong in any field; temporary folders.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"

namespace frontier {

template <typename T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
inline void put_text(std::string& out, std::string_view text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    out.append(text);
}

// One metadata entry; `value` is its encoding after the type.
inline std::string entry(std::string_view key, std::uint32_t type, std::string_view value) {
    std::string out;
    put_text(out, key);
    put(out, type);
    out.append(value);
    return out;
}
template <typename T>
std::string entry_of(std::string_view key, std::uint32_t type, T value) {
    std::string encoded;
    put(encoded, value);
    return entry(key, type, encoded);
}
inline std::string text_entry(std::string_view key, std::string_view text) {
    std::string encoded;
    put_text(encoded, text);
    return entry(key, 8, encoded);
}

struct RawTensor {
    std::string name = "t";
    std::vector<std::uint64_t> ne = {32};  // contiguous dimension first, as in the file
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
};

struct RawGguf {
    std::uint32_t version = 3;
    std::string magic = "GGUF";
    std::vector<std::string> entries;
    std::vector<RawTensor> tensors;
    std::optional<std::uint64_t> declared_entries, declared_tensors;
    std::size_t alignment = 32;
    std::size_t data_bytes = 0;

    std::string bytes() const {
        std::string out = magic;
        put(out, version);
        put(out, declared_tensors.value_or(tensors.size()));
        put(out, declared_entries.value_or(entries.size()));
        for (const std::string& e : entries) out += e;
        for (const RawTensor& t : tensors) {
            put_text(out, t.name);
            put(out, static_cast<std::uint32_t>(t.ne.size()));
            for (const std::uint64_t extent : t.ne) put(out, extent);
            put(out, t.type);
            put(out, t.offset);
        }
        if (!tensors.empty()) {
            out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
            for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i * 7);
        }
        return out;
    }
};

inline std::string raw_safetensors(std::string_view json, std::size_t data_bytes) {
    std::string out;
    put_text(out, json);
    for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i * 7);
    return out;
}

// A copy on the heap of exactly the size, so that AddressSanitizer sees the first byte read past the end.
class ExactBytes {
public:
    explicit ExactBytes(std::string_view bytes)
        : size_(bytes.size()), data_(static_cast<std::byte*>(std::malloc(bytes.size() + (bytes.empty() ? 1 : 0)))) {
        std::memcpy(data_, bytes.data(), bytes.size());
    }
    ~ExactBytes() { std::free(data_); }
    ExactBytes(const ExactBytes&) = delete;
    ExactBytes& operator=(const ExactBytes&) = delete;
    std::span<const std::byte> span() const { return {data_, size_}; }
    std::byte& operator[](std::size_t i) { return data_[i]; }

private:
    std::size_t size_;
    std::byte* data_;
};

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "frontier-formats-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    std::string write(std::string_view name, std::string_view bytes) const {
        std::ofstream(file(name), std::ios::binary) << bytes;
        return file(name);
    }

private:
    std::string path_;
};

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << path;
    return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string bundled(std::string_view name) {
    return std::string(FRONTIER_SOURCE_DIR "/models/") + std::string(name);
}

// What every refusal of a file must look like: the right code, one printable line of bounded length, naming the file.
inline void expect_proper_error(const Error& error, std::string_view where) {
    EXPECT_EQ(error.code, ErrorCode::kBadInput) << error.text;
    EXPECT_TRUE(error.text.starts_with(where)) << error.text;
    EXPECT_LT(error.text.size(), 700U) << error.text;
    for (const char c : error.text) ASSERT_TRUE(c >= 0x20 && c <= 0x7E) << error.text;
}

#define EXPECT_REFUSED(result, where, part)                             \
    do {                                                                \
        const auto& refused_ = (result);                                \
        ASSERT_FALSE(refused_.has_value()) << "was accepted: " << part; \
        expect_proper_error(refused_.error(), where);                   \
        EXPECT_THAT(refused_.error().text, ::testing::HasSubstr(part)); \
    } while (false)

}  // namespace frontier
