// What happens when a mapped file shrinks, or its disk fails, while we read it: the kernel sends SIGBUS.
#pragma once

#include <cstddef>
#include <string>

namespace frontier {

// Called in the signal's handler with the file's name as it was opened, or null if it is not recorded: it may do
// only what is async-signal-safe, and must not return. A SIGBUS from anywhere else keeps its ordinary meaning.
using MapFaultHandler = void (*)(const char* path);
void on_map_fault(MapFaultHandler handler);

// Kept by MappedFile: which addresses belong to which file. Entries beyond a fixed number are not recorded (the
// handler then gets null); -1 stands for such an entry.
int record_map(const std::byte* begin, std::size_t size_bytes, const std::string& path);
void forget_map(int entry);

}  // namespace frontier
