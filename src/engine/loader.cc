#include "engine/loader.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "backend/cpu_backend.h"
#include "base/log.h"
#include "platform/cache_folder.h"
#include "platform/clock.h"
#include "platform/topology.h"

namespace frontier {
namespace {

// Packed Q4_K is 2.8% larger than its file; scratch and small tensors share the rest.
constexpr double kPackedOverhead = 1.05;

// What scoring every row of a text may take: a third of the 64 MB that a run may use beyond weights and cache. At 152k
// entries that leaves 39 rows.
constexpr std::int64_t kLogitsBytes = 24'000'000;
constexpr std::int64_t kMostLogitsRows = 128;

std::int32_t logits_rows(std::int32_t asked, std::int64_t vocab_size) {
    if (asked > 0) return asked;
    const std::int64_t row_bytes = vocab_size * static_cast<std::int64_t>(sizeof(float));
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(kLogitsBytes / row_bytes, 1, kMostLogitsRows));
}

Result<ComputeType> compute_type_from_name(std::string_view name) {
    if (name.empty() || name == "auto") return ComputeType::kAuto;
    if (name == "f32") return ComputeType::kF32;
    if (name == "bf16") return ComputeType::kBF16;
    if (name == "f16") return ComputeType::kF16;
    return fail(ErrorCode::kUsage, "--dtype: expected auto, f32, bf16 or f16, got '{}'", name);
}

Result<std::int64_t> context_for(const LoadOptions& options, const ModelConfig& config) {
    const std::int64_t trained = std::max<std::int64_t>(1, config.context_tokens);
    if (options.context_tokens < -1)
        return fail(ErrorCode::kUsage, "--ctx: expected 0 (the trained context) or more tokens, got {}",
                    options.context_tokens);
    if (options.context_tokens == 0) return trained;
    if (options.context_tokens == -1) return std::min(trained, kDefaultContextTokens);
    if (options.context_tokens > kMostContextTokens)
        return fail(ErrorCode::kDoesNotFit, "--ctx: {} tokens asked, the limit is {}", options.context_tokens,
                    kMostContextTokens);
    return options.context_tokens;
}

Status check_fit(const ModelSource& source, const KvCacheConfig& cache, bool repack) {
    // Pages of the map can be dropped and read again: they need not fit.
    const double weights = repack ? static_cast<double>(source.file_bytes()) * kPackedOverhead : 0;
    const double kv = static_cast<double>(kv_page_bytes(cache)) * cache.pages;
    const auto available = static_cast<double>(memory_state().available_bytes);
    if (weights + kv <= available) return {};
    return fail(ErrorCode::kDoesNotFit,
                "{}: needs {:.2f} GB (weights {:.2f} GB, KV cache {:.2f} GB), {:.2f} GB of memory are available",
                source.where(), (weights + kv) * 1e-9, weights * 1e-9, kv * 1e-9, available * 1e-9);
}

std::shared_ptr<PackCache> open_pack_cache(const LoadOptions& options, const ModelSource& source, ComputeType compute) {
    if (!options.pack_cache || !options.repack) return nullptr;
    std::string sources = source.tensor_identity();
    if (sources.empty()) return nullptr;  // made in memory
    const Result<std::string> folder = cache_folder();
    if (!folder.has_value()) {
        spdlog::warn("packed weights are not kept: {}", folder.error().text);
        return nullptr;
    }
    std::error_code error;
    const std::filesystem::path model = std::filesystem::canonical(source.where(), error);
    return std::make_shared<PackCache>(PackCacheOptions{.folder = *folder + "/packed",
                                                        .model = error ? source.where() : model.string(),
                                                        .sources = std::move(sources),
                                                        .compute = compute,
                                                        .limit_bytes = options.pack_cache_bytes});
}

// A thread more than can run at once only takes turns with the others: whoever waits for its chunk then waits for the
// scheduler.
int threads_for(int asked) {
    if (asked == 0) return topology().default_threads;
    const int most = topology().most_threads;
    if (asked > most) spdlog::warn("--threads {}: {} can run at once here, using {}", asked, most, most);
    return std::min(asked, most);
}

}  // namespace

Result<KvType> kv_type_from_name(std::string_view name) {
    if (name == "f16") return KvType::kF16;
    if (name == "f32") return KvType::kF32;
    return fail(ErrorCode::kUsage, "--kv-type: expected f16 or f32, got '{}'", name);
}

std::string LoadedModel::kv_type() const {
    return runner->options().kv_type == KvType::kF16 ? "f16" : "f32";
}

std::string_view LoadedModel::pack_cache_outcome() const {
    if (!pack_cache) return "off";
    switch (pack_cache->outcome()) {
        case PackCache::Outcome::kUsed:
            return "used";
        case PackCache::Outcome::kWritten:
            return "written";
        case PackCache::Outcome::kUnavailable:
            break;
    }
    return "unavailable";
}

Result<LoadedModel> load_model(const LoadOptions& options) {
    const std::int64_t start_ns = now_ns();
    LoadedModel loaded;
    FR_ASSIGN(loaded.isa, choose_isa(options.isa));
    // Steps of many tokens use other kernels on amx, with other roundings; without those kernels it is avx512.
    if (options.deterministic && loaded.isa == Isa::kAmx) loaded.isa = Isa::kAvx512;
    FR_ASSIGN(const ComputeType compute, compute_type_from_name(options.dtype));
    FR_ASSIGN(const KvType kv_type, kv_type_from_name(options.kv_type));
    if (options.threads < 0 || options.threads > kMostThreads)
        return fail(ErrorCode::kUsage, "--threads: expected 1 to {} (0 = all physical cores), got {}", kMostThreads,
                    options.threads);
    loaded.threads = threads_for(options.threads);
    FR_ASSIGN(loaded.source, open_model(options.model));
    if (!loaded.source->has_model())
        return bad_input("{}: holds a tokenizer only, no weights to run", loaded.source->where());
    FR_ASSIGN(loaded.tokenizer, loaded.source->tokenizer());
    const ModelConfig& config = loaded.source->config();
    if (loaded.tokenizer->vocab_size() > config.vocab_size)
        return bad_input("{}: the tokenizer has {} entries, the embedding table {}", loaded.source->where(),
                         loaded.tokenizer->vocab_size(), config.vocab_size);
    FR_ASSIGN(loaded.context_tokens, context_for(options, config));
    const std::int64_t kv_tokens = (loaded.context_tokens + kPageTokens - 1) / kPageTokens * kPageTokens *
                                   std::max<std::int64_t>(1, options.sequences);
    if (!options.repack && loaded.source->format() == "synthetic")
        return fail(ErrorCode::kUsage,
                    "--no-repack: needs a model file, {} is made in memory (frontier synth writes it)",
                    loaded.source->where());
    FR_TRY(check_fit(*loaded.source, kv_cache_config(config, kv_type, kv_tokens), options.repack));

    const std::shared_ptr<PackCache> pack_cache = open_pack_cache(options, *loaded.source, compute);
    loaded.pack_cache = pack_cache;
    auto backend = make_cpu_backend({.isa = loaded.isa,
                                     .compute = compute,
                                     .threads = loaded.threads,
                                     .repack = options.repack,
                                     .pack_cache = pack_cache});
    FR_ASSIGN(auto model, Model::load(*loaded.source, *backend, options.progress));
    if (pack_cache) pack_cache->store();
    FR_ASSIGN(loaded.runner, Runner::create(std::move(backend), std::move(model),
                                            {.max_batch_tokens = options.max_batch_tokens,
                                             .max_logits_rows = logits_rows(options.max_logits_rows, config.vocab_size),
                                             .kv_tokens = kv_tokens,
                                             .kv_type = kv_type}));
    loaded.load_ns = now_ns() - start_ns;
    return loaded;
}

}  // namespace frontier
