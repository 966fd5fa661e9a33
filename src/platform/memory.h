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

    // At least so large: what is too small is freed and allocated anew, zero-filled.
    Status grow(std::int64_t size_bytes);

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

// Which file, and which state of it. Any write to it, also one that puts the modification time back, changes it.
struct FileState {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size_bytes = 0;
    std::int64_t modified_ns = 0;  // since 1970, as st_mtim
    std::int64_t changed_ns = 0;   // st_ctim
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
    const FileState& state() const { return state_; }  // when it was mapped
    // One line that is another one for another file or another state of it: canonical path, state(), and a hash of the
    // first `header_bytes`, in case a file system lies about times.
    std::string identity(std::size_t header_bytes) const;
    // Drops the resident pages that lie wholly inside [offset, offset + length): they are read again when touched.
    void release(std::size_t offset_bytes, std::size_t length_bytes) const;
    // Asks the kernel to read ahead.
    void will_need(std::size_t offset_bytes, std::size_t length_bytes) const;
    // What must be read from the disk is to come in huge pages, where the file system can (ext4 and xfs of recent
    // kernels); pages that are cached already stay as large as they are.
    void prefer_huge_pages() const;

private:
    const std::byte* data_ = nullptr;
    std::size_t size_bytes_ = 0;
    std::string path_;
    FileState state_;
    int fault_entry_ = -1;  // see map_faults.h
};

}  // namespace frontier
