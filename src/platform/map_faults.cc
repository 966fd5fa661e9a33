#include "platform/map_faults.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace frontier {
namespace {

// A signal handler reads it: plain atomics in a fixed table, no locks, no allocation.
struct Entry {
    std::atomic<bool> taken{false};
    std::atomic<const std::byte*> begin{nullptr};
    std::atomic<std::size_t> size_bytes{0};
    std::atomic<char*> path{nullptr};
};
constexpr int kEntries = 512;  // shards of the largest published models: under 200
std::array<Entry, kEntries> g_entries;

std::atomic<MapFaultHandler> g_handler{nullptr};
std::atomic<bool> g_faulted{false};

void on_bus_error(int signal, siginfo_t* info, void*) {
    const auto* address = static_cast<const std::byte*>(info->si_addr);
    for (const Entry& entry : g_entries) {
        const std::byte* begin = entry.begin.load(std::memory_order_acquire);
        // Up to a page beyond the end: the last page of a map is whole.
        if (begin == nullptr || address < begin || address >= begin + entry.size_bytes.load() + 4096) continue;
        // Several threads may fault at once: the first one's handler ends the process, the others wait for that.
        while (g_faulted.exchange(true)) pause();
        g_handler.load()(entry.path.load());
    }
    std::signal(signal, SIG_DFL);  // not ours: the instruction faults again and the process dies as usual
}

}  // namespace

void on_map_fault(MapFaultHandler handler) {
    g_handler.store(handler);
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
}

int record_map(const std::byte* begin, std::size_t size_bytes, const std::string& path) {
    for (int i = 0; i < kEntries; ++i) {
        Entry& entry = g_entries[static_cast<std::size_t>(i)];
        if (entry.taken.exchange(true)) continue;
        entry.path.store(strdup(path.c_str()));
        entry.size_bytes.store(size_bytes);
        entry.begin.store(begin, std::memory_order_release);
        return i;
    }
    return -1;
}

void forget_map(int index) {
    if (index < 0) return;
    Entry& entry = g_entries[static_cast<std::size_t>(index)];
    entry.begin.store(nullptr);
    std::free(entry.path.exchange(nullptr));
    entry.taken.store(false);
}

}  // namespace frontier
