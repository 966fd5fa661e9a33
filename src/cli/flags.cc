#include "cli/flags.h"

#include "base/log.h"
#include "cli/console.h"
#include "platform/clock.h"
#include "platform/topology.h"

namespace frontier {

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
    command.add_option("-t,--threads", flags.threads, "worker threads (0: all physical cores)");
    command.add_option("--isa", flags.isa, "instruction set: scalar, avx2, avx512 (default: the best of this machine)")
        ->envname("FRONTIER_ISA");
    command
        .add_option("--dtype", flags.dtype,
                    "what matrix products compute in: auto (int8 for quantised weights, f32 otherwise), f32 "
                    "(dequantises too: the reference), bf16, f16")
        ->capture_default_str();
    command.add_option("--kv-type", flags.kv_type, "KV cache: f16 or f32")->capture_default_str();
    command.add_flag("--no-repack", flags.no_repack,
                     "leave the weights in the mapped file: slower, but processes share them and models larger than "
                     "memory run");
    command.add_option(
        "-c,--ctx,--ctx-size", flags.ctx,
        "context in tokens, prompt and output together (0: as trained; default: as trained, at most 4096)");
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
    options.context_tokens = flags.ctx;
    ProgressLine line;
    options.progress = [&line](std::int64_t done_bytes, std::int64_t total_bytes) {
        line.show(fmt::format(
            "loading {:.0f}% of {:.1f} MB",
            100.0 * static_cast<double>(done_bytes) / static_cast<double>(std::max<std::int64_t>(1, total_bytes)),
            static_cast<double>(total_bytes) * 1e-6));
    };
    return load_model(options);
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
    facts["peak_resident_bytes"] = memory_state().peak_resident_bytes;
    return facts;
}

}  // namespace frontier
