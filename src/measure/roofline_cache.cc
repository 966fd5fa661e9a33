// Roofline to JSON and back, and the cache file.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

#include "measure/roofline.h"
#include "platform/cache_folder.h"
#include "platform/topology.h"

namespace frontier {
namespace {

// Raised whenever a figure's definition or the layout changes: older files then count as absent.
constexpr std::int64_t kFormatVersion = 1;

// A real file has a few KiB; the bounds keep a hostile one from costing memory.
constexpr std::uintmax_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kMaxPoints = 4096;
constexpr int kMaxThreads = 1 << 16;
constexpr double kMaxRate = 1e9;  // GB/s or GFLOP/s: far beyond any machine

Result<int> read_threads(const Json& object, std::string_view where) {
    FR_ASSIGN(const std::int64_t threads, json_int(object, "threads", where));
    if (threads < 1 || threads > kMaxThreads) {
        return bad_input("{}: threads: expected 1 to {}, got {}", where, kMaxThreads, threads);
    }
    return static_cast<int>(threads);
}

Result<double> read_rate(const Json& object, std::string_view field, std::string_view where) {
    FR_ASSIGN(const double rate, json_number(object, field, where));
    if (!std::isfinite(rate) || rate <= 0 || rate > kMaxRate) {
        return bad_input("{}: {}: expected a positive rate, got {}", where, field, rate);
    }
    return rate;
}

Result<BandwidthPoint> read_bandwidth_point(const Json& object, std::string_view where) {
    BandwidthPoint point;
    FR_ASSIGN(point.threads, read_threads(object, where));
    FR_ASSIGN(point.level, json_string(object, "level", where));
    if (point.level != "L2" && point.level != "L3" && point.level != "DRAM") {
        return bad_input("{}: level: expected L2, L3 or DRAM, got something else", where);
    }
    FR_ASSIGN(point.working_set_bytes, json_int(object, "working_set_bytes", where));
    if (point.working_set_bytes <= 0) {
        return bad_input("{}: working_set_bytes: expected a positive number, got {}", where, point.working_set_bytes);
    }
    FR_ASSIGN(point.gb_per_s, read_rate(object, "gb_per_s", where));
    return point;
}

Result<ArithmeticPoint> read_arithmetic_point(const Json& object, std::string_view where) {
    ArithmeticPoint point;
    FR_ASSIGN(point.threads, read_threads(object, where));
    FR_ASSIGN(const std::string isa, json_string(object, "isa", where));
    const std::optional<Isa> known = isa_from_name(isa);
    if (!known.has_value()) return bad_input("{}: isa: expected a known name, got another", where);
    point.isa = *known;
    FR_ASSIGN(point.operation, json_string(object, "operation", where));
    FR_ASSIGN(point.gflops, read_rate(object, "gflops", where));
    return point;
}

template <typename Point, typename Read>
Result<std::vector<Point>> read_points(const Json& document, const char* field, std::string_view where,
                                       const Read& read) {
    const auto list = document.find(field);
    if (list == document.end() || !list->is_array() || list->empty() || list->size() > kMaxPoints) {
        return bad_input("{}: {}: expected a list of 1 to {} points", where, field, kMaxPoints);
    }
    std::vector<Point> points;
    for (const Json& item : *list) {
        FR_ASSIGN(Point point, read(item, where));
        points.push_back(std::move(point));
    }
    return points;
}

std::string errno_text() {
    return std::strerror(errno);
}

Status write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return fail(ErrorCode::kFailed, "{}", errno_text());
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

}  // namespace

Json roofline_to_json(const Roofline& roofline) {
    int threads = 1;
    for (const BandwidthPoint& point : roofline.bandwidth) threads = std::max(threads, point.threads);
    Json document = Json::object();
    document["version"] = kFormatVersion;
    document["machine"] = roofline.machine;
    document["threads"] = threads;
    document["read_gb_per_s"] = roofline.read_gb_per_s(threads);
    for (int i = 0; i < kIsaCount; ++i) {
        const auto isa = static_cast<Isa>(i);
        const std::string name(isa_name(isa));
        const auto add = [&](const char* suffix, std::string_view operation) {
            const double gflops = roofline.gflops(isa, operation, threads);
            if (gflops > 0) document[name + suffix] = gflops * 1e-3;
        };
        add("_f32_tflops", "f32_fma");
        add("_int8_tops", "int8_dot");
        add("_bf16_tflops", isa == Isa::kAmx ? "bf16_tile" : "bf16_dot");
    }
    document["bandwidth"] = Json::array();
    for (const BandwidthPoint& point : roofline.bandwidth) {
        Json item = Json::object();
        item["threads"] = point.threads;
        item["level"] = point.level;
        item["working_set_bytes"] = point.working_set_bytes;
        item["gb_per_s"] = point.gb_per_s;
        document["bandwidth"].push_back(std::move(item));
    }
    document["arithmetic"] = Json::array();
    for (const ArithmeticPoint& point : roofline.arithmetic) {
        Json item = Json::object();
        item["isa"] = isa_name(point.isa);
        item["operation"] = point.operation;
        item["threads"] = point.threads;
        item["gflops"] = point.gflops;
        document["arithmetic"].push_back(std::move(item));
    }
    return document;
}

Result<Roofline> roofline_from_json(const Json& document, std::string_view where) {
    if (!document.is_object()) return bad_input("{}: expected a JSON object", where);
    FR_ASSIGN(const std::int64_t version, json_int(document, "version", where));
    if (version != kFormatVersion) {
        return bad_input("{}: version: expected {}, got {}", where, kFormatVersion, version);
    }
    Roofline roofline;
    FR_ASSIGN(roofline.machine, json_string(document, "machine", where));
    FR_ASSIGN(roofline.bandwidth, read_points<BandwidthPoint>(document, "bandwidth", where, read_bandwidth_point));
    FR_ASSIGN(roofline.arithmetic, read_points<ArithmeticPoint>(document, "arithmetic", where, read_arithmetic_point));
    return roofline;
}

Result<std::string> roofline_cache_path() {
    FR_ASSIGN(const std::string folder, cache_folder());
    return folder + "/roofline.json";
}

std::optional<Roofline> load_cached_roofline() {
    const Result<std::string> path = roofline_cache_path();
    if (!path.has_value()) return std::nullopt;
    std::error_code error;
    if (!std::filesystem::is_regular_file(*path, error)) return std::nullopt;
    const std::uintmax_t size_bytes = std::filesystem::file_size(*path, error);
    if (error || size_bytes == 0 || size_bytes > kMaxFileBytes) return std::nullopt;
    std::string text(size_bytes, '\0');
    std::ifstream file(*path, std::ios::binary);
    if (!file.read(text.data(), static_cast<std::streamsize>(size_bytes))) return std::nullopt;
    const Result<Json> document = parse_json(text, *path);
    if (!document.has_value()) return std::nullopt;
    Result<Roofline> roofline = roofline_from_json(*document, *path);
    if (!roofline.has_value() || roofline->machine != machine_key()) return std::nullopt;
    return std::move(*roofline);
}

// To a temporary file in the same folder, then renamed: a reader sees the old file or the new one, whole.
Status store_cached_roofline(const Roofline& roofline) {
    FR_ASSIGN(const std::string path, roofline_cache_path());
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) return fail(ErrorCode::kFailed, "cannot create the folder of {}: {}", path, error.message());
    std::string temporary = path + ".XXXXXX";
    const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) return fail(ErrorCode::kFailed, "cannot write {}: {}", path, errno_text());
    const Status written = write_all(fd, dump_json(roofline_to_json(roofline)) + "\n");
    const bool closed = ::close(fd) == 0;
    if (written.has_value() && closed && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
    const std::string reason = written.has_value() ? errno_text() : written.error().text;
    ::unlink(temporary.c_str());
    return fail(ErrorCode::kFailed, "cannot write {}: {}", path, reason);
}

}  // namespace frontier
