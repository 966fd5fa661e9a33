// From a MODEL argument to a runner that is ready to run: what every command that runs a model does first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/pack_cache.h"
#include "base/result.h"
#include "engine/runner.h"
#include "model/source.h"
#include "platform/cpu_features.h"

namespace frontier {

struct LoadOptions {
    std::string model;                  // see open_model
    std::string isa;                    // "" or "auto": the best of this machine
    std::string dtype = "auto";         // f32, bf16, f16, auto
    std::string kv_type = "f16";        // f16, f32
    bool repack = true;                 // see CpuBackendOptions
    bool pack_cache = false;            // keep packed weights in a file, see PackCache; nothing without repack
    std::int64_t pack_cache_bytes = 0;  // the most that all these files may take
    bool deterministic = false;         // one numeric path for every row count: what amx adds is left out
    int threads = 0;                    // 0 = topology().default_threads
    std::int64_t context_tokens = -1;   // -1 = the trained context, at most kDefaultContextTokens; 0 = the trained
    std::int32_t sequences = 1;         // the cache holds this many contexts
    std::int32_t max_batch_tokens = 512;
    std::int32_t max_logits_rows = 64;  // 0: 1 to 128, as many as kLogitsBytes hold
    Model::Progress progress;
};

// Bounds of what can be asked for. Positions are 32 bits wide.
inline constexpr std::int64_t kMostContextTokens = std::int64_t{1} << 30;
inline constexpr int kMostThreads = 1024;

// A context beyond this costs memory that a user should ask for (8B models: 0.5 GB of f16 KV at 4096).
inline constexpr std::int64_t kDefaultContextTokens = 4096;

struct LoadedModel {
    std::unique_ptr<ModelSource> source;
    std::shared_ptr<const Tokenizer> tokenizer;
    std::unique_ptr<Runner> runner;
    Isa isa = Isa::kScalar;
    int threads = 1;
    std::int64_t context_tokens = 0;
    std::int64_t load_ns = 0;
    std::shared_ptr<const PackCache> pack_cache;  // null: not asked for, or nothing to keep

    // The facts that every run and every bench row states.
    std::string weight_type() const { return source->weight_type(); }
    std::string compute_type() const { return runner->backend().compute_type_name(); }
    std::string kv_type() const;
    std::string_view pack_cache_outcome() const;  // "off", "used", "written", "unavailable"
};

// Unknown names among the options are kUsage errors; a model whose weights and cache exceed the available memory is
// kDoesNotFit with both numbers, before anything is read.
Result<LoadedModel> load_model(const LoadOptions& options);

Result<KvType> kv_type_from_name(std::string_view name);

}  // namespace frontier
