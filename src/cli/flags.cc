#include "cli/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/log.h"
#include "cli/console.h"
#include "measure/rates.h"
#include "platform/clock.h"
#include "platform/topology.h"

namespace frontier {
namespace {

// The most that the machine could hold is far below; sums of such numbers stay far below 2^63.

// A petabyte: more than the disks of any machine that runs this, far from overflowing in bytes.
constexpr std::int64_t kMostPackCacheGb = 1'000'000;

// All of `text`, or nothing.
template <typename T>
std::optional<T> parsed(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// In canonical form; nullopt when it is no whole number from low to high.
std::optional<std::string> whole_number(std::string_view text, std::int64_t low, std::uint64_t high) {
    if (text.starts_with('-')) {
        const auto value = parsed<std::int64_t>(text);
        if (value.has_value() && *value >= low && (*value < 0 || low <= 0)) return fmt::format("{}", *value);
        return std::nullopt;
    }
    const auto value = parsed<std::uint64_t>(text);
    if (!value.has_value() || *value > high || (low > 0 && *value < static_cast<std::uint64_t>(low)))
        return std::nullopt;
    return fmt::format("{}", *value);
}

// `check` may rewrite the text; it returns "" or what is wrong.
void add_check(CLI::Option* option, std::function<std::string(std::string&)> check) {
    option->transform(CLI::Validator(std::move(check), ""));
}

}  // namespace

void whole_numbers(CLI::Option* option, std::int64_t low, std::uint64_t high) {
    add_check(option, [low, high](std::string& text) {
        const auto number = whole_number(text, low, high);
        if (!number.has_value()) return fmt::format("expected a whole number from {} to {}, got '{}'", low, high, text);
        text = *number;
        return std::string();
    });
}

void real_numbers(CLI::Option* option, double low, double high, bool above_low) {
    add_check(option, [low, high, above_low](std::string& text) {
        const auto number = parsed<double>(text);
        if (number.has_value() && *number >= low && *number <= high && !(above_low && *number <= low))
            return std::string();
        return fmt::format("expected a number {} {}{} to {}, got '{}'", above_low ? "above" : "from", low,
                           above_low ? ", up" : "", high, text);
    });
}

Result<std::vector<std::int64_t>> whole_number_list(const char* flag, std::string_view text) {
    std::vector<std::int64_t> numbers;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        const auto number = parsed<std::int64_t>(text.substr(at, end - at));
        if (!number.has_value() || *number < 0)
            return fail(ErrorCode::kUsage, "{}: expected whole numbers such as 1,4,16, got '{}'", flag, text);
        numbers.push_back(*number);
        at = end + 1;
    }
    return numbers;
}

void add_file_flags(CLI::App& command, ModelFlags& flags) {
    // One option serves both spellings, so that giving both is a usage error.
    command.add_option("MODEL,-m,--model", flags.model,
                       "a .gguf file, a Hugging Face folder, synthetic:SHAPE[:QUANT], or a name from `frontier list` "
                       "(default: the bundled model)");
    command.add_flag("--json", flags.json, "print one JSON document on stdout and nothing else");
    command.add_option("--log-level", flags.log_level, "trace, debug, info, warning, error or off");
}

void add_model_flags(CLI::App& command, ModelFlags& flags) {
    add_file_flags(command, flags);
    whole_numbers(command.add_option("-t,--threads", flags.threads, "worker threads (0: all physical cores)"), 0,
                  kMostThreads);
    command
        .add_option("--isa", flags.isa,
                    "instruction set: scalar, avx2, avx512, amx (default: the best of this machine)")
        ->envname("FRONTIER_ISA");
    command
        .add_option("--dtype", flags.dtype,
                    "what matrix products compute in: auto (int8 for quantised weights, in long steps "
                    "on amx bf16; f32 otherwise), f32 "
                    "(the reference: dequantises too); bf16, f16 (of unquantised weights only)")
        ->capture_default_str();
    command.add_option("--kv-type", flags.kv_type, "KV cache: f16 or f32")->capture_default_str();
    command.add_flag("--no-repack", flags.no_repack,
                     "leave the weights in the mapped file: slower, but processes share them and models larger than "
                     "memory run");
    command
        .add_flag("--pack-cache", flags.pack_cache,
                  "keep the packed weights in a file under $XDG_CACHE_HOME/frontier/packed (or ~/.cache/frontier/"
                  "packed), so that the next start maps them instead of packing anew")
        ->envname("FRONTIER_PACK_CACHE");
    whole_numbers(command
                      .add_option("--pack-cache-gb", flags.pack_cache_gb,
                                  "the most that all kept files may take; the least recently used go first")
                      ->envname("FRONTIER_PACK_CACHE_GB")
                      ->capture_default_str(),
                  0, kMostPackCacheGb);
    whole_numbers(
        command.add_option(
            "-c,--ctx,--ctx-size", flags.ctx,
            "context in tokens, prompt and output together (0: as trained; default: as trained, at most 4096)"),
        0, kMostContextTokens);
}

Status apply_log_level(const ModelFlags& flags) {
    if (flags.log_level.empty()) return {};
    return set_log_level(flags.log_level);
}

Result<LoadedModel> load_with_progress(const ModelFlags& flags, LoadOptions options) {
    FR_TRY(apply_log_level(flags));
    options.model = flags.model;
    options.isa = flags.isa;
    options.dtype = flags.dtype;
    options.kv_type = flags.kv_type;
    options.threads = flags.threads;
    options.repack = !flags.no_repack;
    options.pack_cache = flags.pack_cache;
    options.pack_cache_bytes = flags.pack_cache_gb * 1'000'000'000;
    options.context_tokens = flags.ctx;
    ProgressLine line;
    options.progress = [&line](std::int64_t done_bytes, std::int64_t total_bytes) {
        line.show(fmt::format(
            "loading {:.0f}% of {:.1f} MB",
            100.0 * static_cast<double>(done_bytes) / static_cast<double>(std::max<std::int64_t>(1, total_bytes)),
            static_cast<double>(total_bytes) * 1e-6));
    };
    FR_ASSIGN(LoadedModel loaded, load_model(options));
    line.clear();
    const bool is_16_bit = flags.dtype == "bf16" || flags.dtype == "f16";
    if (const std::string computes = loaded.compute_type(); is_16_bit && !computes.contains(flags.dtype))
        print_warning(
            fmt::format("--dtype {}: no effect on {} weights, which compute in {} (bf16 and f16 are for "
                        "unquantised models; f32 is the reference for all)",
                        flags.dtype, loaded.weight_type(), computes));
    return loaded;
}

Json run_facts(const LoadedModel& loaded) {
    Json facts;
    facts["model"] = loaded.source->where();
    facts["weight_type"] = loaded.weight_type();
    facts["compute_type"] = loaded.compute_type();
    facts["kv_type"] = loaded.kv_type();
    facts["isa"] = isa_name(loaded.isa);
    facts["threads"] = loaded.threads;
    facts["context_tokens"] = loaded.context_tokens;
    facts["pack_cache"] = loaded.pack_cache_outcome();
    facts["load_ms"] = ns_to_ms(loaded.load_ns);
    return facts;
}

Json memory_facts(const LoadedModel& loaded) {
    const BackendMemory memory = loaded.runner->backend().memory();
    Json facts;
    facts["weight_bytes"] = memory.weight_bytes;
    facts["weight_file_bytes"] = memory.weight_file_bytes;
    facts["kv_bytes"] = memory.kv_bytes;
    facts["scratch_bytes"] = memory.scratch_bytes;
    facts["peak_memory_bytes"] = memory_state().peak_resident_bytes;
    facts["memory_limit_bytes"] = memory_limit_bytes(memory);
    return facts;
}

}  // namespace frontier
