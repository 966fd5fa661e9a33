// Flags that several commands share, declared once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "engine/loader.h"

namespace frontier {

struct ModelFlags {
    std::string model;
    std::string isa;
    std::string dtype = "auto";
    std::string kv_type = "f16";
    std::string log_level;
    int threads = 0;
    std::int64_t ctx = -1;
    bool json = false;
    bool no_repack = false;
    bool pack_cache = false;
    std::int64_t pack_cache_gb = 64;
};

// What the values of `option` must be: whole numbers in decimal digits, or finite numbers, between the bounds (with
// `above_low`, not `low` itself). Anything else, nothing included, is a usage error with flag, expected and actual.
// The library's own conversions would take empty text as 0, wrap what is too large, and read 010 as octal.
void whole_numbers(CLI::Option* option, std::int64_t low, std::uint64_t high);
void real_numbers(CLI::Option* option, double low, double high, bool above_low = false);

// "1,4,16": decimal numbers from 0 on, at least one; kUsage naming the flag otherwise.
Result<std::vector<std::int64_t>> whole_number_list(const char* flag, std::string_view text);

// MODEL (positional or -m), --json, --log-level: for commands that only read a model's files.
void add_file_flags(CLI::App& command, ModelFlags& flags);
// The above and --threads, --isa, --dtype, --kv-type, --ctx: for commands that run a model.
void add_model_flags(CLI::App& command, ModelFlags& flags);

// Applies --log-level.
Status apply_log_level(const ModelFlags& flags);
// Loads with a progress line.
Result<LoadedModel> load_with_progress(const ModelFlags& flags, LoadOptions options = {});

// The facts every run states: model, weight_type, compute_type, kv_type, isa, threads, context_tokens, load_ms.
Json run_facts(const LoadedModel& loaded);
Json memory_facts(const LoadedModel& loaded);

}  // namespace frontier
