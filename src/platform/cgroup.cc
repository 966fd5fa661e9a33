#include "platform/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace frontier {
namespace {

// Larger "limits" mean none: v1 spells unlimited as the largest page-aligned int64.
constexpr std::int64_t kUnlimitedBytes = std::int64_t{1} << 60;

// v1 hierarchies and the v2 tree are rarely more than ten deep; the bound is against hostile /proc contents.
constexpr std::size_t kMaxDepth = 64;

std::string read_text(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    if (file) text << file.rdbuf();
    return file ? text.str() : std::string();
}

std::optional<std::int64_t> to_int(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end == text.data()) return std::nullopt;
    return value;
}

std::optional<std::int64_t> read_int(const std::string& path) {
    return to_int(read_text(path));
}

bool has_word(std::string_view comma_list, std::string_view word) {
    while (!comma_list.empty()) {
        const std::size_t comma = comma_list.find(',');
        if (comma_list.substr(0, comma) == word) return true;
        if (comma == std::string_view::npos) break;
        comma_list.remove_prefix(comma + 1);
    }
    return false;
}

struct Mount {
    std::string root;  // the part of the hierarchy that is mounted, "/" for all
    std::string point;
    std::string type;     // "cgroup" or "cgroup2"
    std::string options;  // super options; name the v1 controllers
};

// proc(5): id parent major:minor root mount-point options [tags...] - type source super-options
std::vector<Mount> read_mounts(const std::string& root) {
    std::vector<Mount> mounts;
    std::istringstream lines(read_text(root + "/proc/self/mountinfo"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t separator = line.find(" - ");
        if (separator == std::string::npos) continue;
        std::istringstream left(line.substr(0, separator));
        std::istringstream right(line.substr(separator + 3));
        Mount mount;
        std::string skipped;
        left >> skipped >> skipped >> skipped >> mount.root >> mount.point;
        right >> mount.type >> skipped >> mount.options;
        if (mount.type == "cgroup" || mount.type == "cgroup2") mounts.push_back(std::move(mount));
    }
    return mounts;
}

// The group `path` seen through `mount`. In a container without its own cgroup namespace the mount shows only the
// container's subtree while /proc/self/cgroup gives the path from the host's root.
std::vector<std::string> directories(const std::string& root, const Mount& mount, std::string path) {
    if (mount.root != "/") {
        const bool below = path.compare(0, mount.root.size(), mount.root) == 0;
        path = below ? path.substr(mount.root.size()) : std::string();
    }
    if (path.find("/..") != std::string::npos) path.clear();  // a group outside our namespace
    std::vector<std::string> result;
    while (result.size() < kMaxDepth) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        result.push_back(fmt::format("{}{}{}", root, mount.point, path));
        if (path.empty()) break;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    return result;
}

// memory.stat holds "key value" lines.
std::int64_t stat_value(const std::string& text, std::string_view key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.size() > key.size() && line.compare(0, key.size(), key) == 0 && line[key.size()] == ' ') {
            return to_int(std::string_view(line).substr(key.size() + 1)).value_or(0);
        }
    }
    return 0;
}

struct MemoryFiles {
    const char* limit;
    const char* usage;
    const char* inactive_file;
    const char* active_file;
};
constexpr MemoryFiles kMemoryV1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file",
                                   "total_active_file"};
constexpr MemoryFiles kMemoryV2 = {"/memory.max", "/memory.current", "inactive_file", "active_file"};

// v2 says "max" for unlimited, which is no number.
std::optional<std::int64_t> memory_limit(const std::string& directory, const MemoryFiles& files) {
    const std::optional<std::int64_t> limit = read_int(directory + files.limit);
    if (!limit.has_value() || *limit < 0 || *limit >= kUnlimitedBytes) return std::nullopt;
    return limit;
}

void take_minimum(std::int64_t& minimum, std::int64_t value) {
    if (minimum < 0 || value < minimum) minimum = value;
}

template <typename Visit>
void for_each_memory_limit(const CgroupPaths& paths, const Visit& visit) {
    for (const std::string& directory : paths.memory_v1) {
        if (const auto limit = memory_limit(directory, kMemoryV1)) visit(directory, kMemoryV1, *limit);
    }
    for (const std::string& directory : paths.unified) {
        if (const auto limit = memory_limit(directory, kMemoryV2)) visit(directory, kMemoryV2, *limit);
    }
}

}  // namespace

CgroupPaths find_cgroups(const std::string& root) {
    CgroupPaths paths;
    const std::vector<Mount> mounts = read_mounts(root);
    // cgroups(7): hierarchy-id:controllers:path, with id 0 and no controllers for v2.
    std::istringstream lines(read_text(root + "/proc/self/cgroup"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (path.empty() || path.front() != '/') continue;
        for (const Mount& mount : mounts) {
            if (mount.type == "cgroup2") {
                if (controllers.empty() && paths.unified.empty()) paths.unified = directories(root, mount, path);
                continue;
            }
            const auto here = [&](std::string_view controller) {
                return has_word(controllers, controller) && has_word(mount.options, controller);
            };
            if (here("cpu") && paths.cpu_v1.empty()) paths.cpu_v1 = directories(root, mount, path);
            if (here("memory") && paths.memory_v1.empty()) paths.memory_v1 = directories(root, mount, path);
        }
    }
    return paths;
}

double cgroup_cpu_quota(const CgroupPaths& paths) {
    double tightest = 0;
    const auto consider = [&](std::optional<std::int64_t> quota_us, std::optional<std::int64_t> period_us) {
        if (!quota_us.has_value() || !period_us.has_value() || *quota_us <= 0 || *period_us <= 0) return;
        const double cpus = static_cast<double>(*quota_us) / static_cast<double>(*period_us);
        if (tightest == 0 || cpus < tightest) tightest = cpus;
    };
    for (const std::string& directory : paths.cpu_v1) {
        consider(read_int(directory + "/cpu.cfs_quota_us"), read_int(directory + "/cpu.cfs_period_us"));
    }
    for (const std::string& directory : paths.unified) {
        const std::string text = read_text(directory + "/cpu.max");  // "QUOTA PERIOD" or "max PERIOD"
        const std::size_t space = text.find(' ');
        if (space != std::string::npos) {
            consider(to_int(text), to_int(std::string_view(text).substr(space + 1)));
        }
    }
    return tightest;
}

std::int64_t cgroup_memory_left_bytes(const CgroupPaths& paths) {
    std::int64_t left = -1;
    for_each_memory_limit(paths, [&](const std::string& directory, const MemoryFiles& files, std::int64_t limit) {
        const std::int64_t usage = std::max<std::int64_t>(0, read_int(directory + files.usage).value_or(0));
        const std::string stat = read_text(directory + "/memory.stat");
        const std::int64_t cache = stat_value(stat, files.inactive_file) + stat_value(stat, files.active_file);
        const std::int64_t held = usage - std::clamp<std::int64_t>(cache, 0, usage);
        take_minimum(left, std::max<std::int64_t>(0, limit - held));
    });
    return left;
}

std::int64_t cgroup_memory_limit_bytes(const CgroupPaths& paths) {
    std::int64_t tightest = -1;
    for_each_memory_limit(
        paths, [&](const std::string&, const MemoryFiles&, std::int64_t limit) { take_minimum(tightest, limit); });
    return tightest;
}

}  // namespace frontier
