// Memory: aligned owned buffers (huge pages where they help) and read-only file maps whose pages can be given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace frontier {

// Zero-filled, 64-byte aligned (2 MiB aligned and advised to huge pages from 4 MiB on). Movable. An allocation that
// the system refuses is a kDoesNotFit error with the size asked and the memory available.
class AlignedBuffer {
public:
    AlignedBuffer() = default;
    static Result<AlignedBuffer> allocate(std::size_t size_bytes);
    ~AlignedBuffer();
    AlignedBuffer(AlignedBuffer&& other) noexcept;
    AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

    std::byte* data() { return data_; }
    const std::byte* data() const { return data_; }
    std::size_t size_bytes() const { return size_bytes_; }
    std::span<std::byte> bytes() { return {data_, size_bytes_}; }
    template <typename T>
    T* as() {
        return reinterpret_cast<T*>(data_);
    }

private:
    std::byte* data_ = nullptr;
    std::size_t size_bytes_ = 0;
    std::size_t mapped_bytes_ = 0;  // 0 = from aligned_alloc
};

// A whole regular file, mapped read-only. Movable; the span stays valid while the object lives.
class MappedFile {
public:
    MappedFile() = default;
    static Result<MappedFile> open(const std::string& path);  // kBadInput: missing, unreadable, a directory, empty
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
    const std::string& path() const { return path_; }
    // Drops the resident pages that lie wholly inside [offset, offset + length): they are read again when touched.
    void release(std::size_t offset_bytes, std::size_t length_bytes) const;
    // Asks the kernel to read ahead.
    void will_need(std::size_t offset_bytes, std::size_t length_bytes) const;

private:
    const std::byte* data_ = nullptr;
    std::size_t size_bytes_ = 0;
    std::string path_;
    int fault_entry_ = -1;  // see map_faults.h
};

}  // namespace frontier
