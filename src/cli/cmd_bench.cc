// frontier bench: what the machine can do, and how near a model comes to it.
#include "cli/command.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "measure/engine_bench.h"
#include "measure/roofline.h"
#include "platform/topology.h"

namespace frontier {
namespace {

struct RooflineFlags {
    ModelFlags common;
    double seconds = RooflineOptions::kDefaultSeconds;
};

struct EngineFlags {
    ModelFlags model;
    EngineBenchOptions bench;
    std::string batches = "1,4,16";
    std::string depths = "0";
};

Status bench_roofline(const RooflineFlags& flags) {
    FR_TRY(apply_log_level(flags.common));
    RooflineOptions options;
    options.max_threads = flags.common.threads == 0 ? topology().default_threads : flags.common.threads;
    options.seconds_per_point = flags.seconds;
    Roofline roofline;
    {
        ProgressLine line;
        options.progress = [&line](std::string_view text) { line.show(text); };
        options.interrupted = &interrupt_flag();
        FR_ASSIGN(roofline, measure_roofline(options));
    }
    bool cached = is_full_extent(options);
    if (cached) {
        const Status stored = store_cached_roofline(roofline);
        if (!stored.has_value()) print_warning(fmt::format("the roofline is not cached: {}", stored.error().text));
        cached = stored.has_value();
    }
    if (flags.common.json) {
        Json document = roofline_to_json(roofline);
        document["cached"] = cached;
        print_json(document);
        return {};
    }
    std::string out = fmt::format("{}\n\nread bandwidth\n", roofline.machine);
    for (const BandwidthPoint& point : roofline.bandwidth)
        out += fmt::format("  {:<5} {:>9.1f} MB  {} thread{}  {:>8.1f} GB/s\n", point.level,
                           static_cast<double>(point.working_set_bytes) * 1e-6, point.threads,
                           point.threads == 1 ? " " : "s", point.gb_per_s);
    out += "\narithmetic (a multiply-add is two operations)\n";
    for (const ArithmeticPoint& point : roofline.arithmetic)
        out += fmt::format("  {:<7} {:<9} {} thread{}  {:>8.1f} GFLOP/s\n", isa_name(point.isa), point.operation,
                           point.threads, point.threads == 1 ? " " : "s", point.gflops);
    if (!is_full_extent(options))
        out += fmt::format(
            "\nnot kept: shares of the limit need at least {} thread{} and {} seconds per point, the defaults\n",
            topology().default_threads, topology().default_threads == 1 ? "" : "s", RooflineOptions::kDefaultSeconds);
    print_text(out);
    return {};
}

void print_row(const EngineBenchRow& row) {
    const auto value = [](const std::optional<double>& number, const char* unit, double factor) {
        return number.has_value() ? fmt::format("{:.1f}{}", *number * factor, unit) : std::string("-");
    };
    print_text(fmt::format("{:<8} batch {:>3}  depth {:>6}  {:>9.1f} tokens/s  {:>10}  {:>9.1f} GFLOP/s  {:>6}  {}\n",
                           row.test, row.batch, row.depth_tokens, row.tokens_per_s, value(row.gb_per_s, " GB/s", 1),
                           row.gflops, value(row.roofline_share, "%", 100), row.logits_hash));
}

Status bench_engine(const EngineFlags& flags) {
    EngineBenchOptions bench = flags.bench;
    FR_ASSIGN(bench.batches, whole_number_list("--batch", flags.batches));
    FR_ASSIGN(bench.depths_tokens, whole_number_list("--depth", flags.depths));
    bench.context_tokens = std::max<std::int64_t>(0, flags.model.ctx);
    FR_ASSIGN(const EngineBenchNeeds needs, engine_bench_needs(bench));
    ModelFlags model = flags.model;
    model.ctx = needs.context_tokens;
    LoadOptions options;
    options.sequences = needs.sequences;
    options.max_batch_tokens = needs.max_batch_tokens;
    options.max_logits_rows = needs.max_logits_rows;
    FR_ASSIGN(LoadedModel loaded, load_with_progress(model, options));
    if (const std::string warning = engine_bench_warning(loaded.source->config(), bench); !warning.empty())
        print_warning(warning);
    const std::optional<Roofline> roofline = load_cached_roofline();
    ProgressLine line;
    bench.interrupted = &interrupt_flag();
    bench.progress = [&line](std::string_view text) { line.show(text); };
    const bool json = flags.model.json;
    if (!json) {
        print_text(
            fmt::format("{}: weights {}, compute {}, KV {}, isa {}, {} threads, {} prompt and {} generated tokens, "
                        "medians of {}\n",
                        visible(loaded.source->where()), loaded.weight_type(), loaded.compute_type(), loaded.kv_type(),
                        isa_name(loaded.isa), loaded.threads, bench.prompt_tokens, bench.gen_tokens, bench.repeat));
        if (!roofline.has_value()) print_text("shares of the limit need `frontier bench roofline` once\n");
    }
    return run_engine_bench(loaded, bench, roofline, [json, &line](const EngineBenchRow& row) {
        line.clear();
        if (json)
            print_json(to_json(row));
        else
            print_row(row);
    });
}

}  // namespace

void add_bench_commands(CLI::App& app, Action& chosen) {
    CLI::App* bench = app.add_subcommand("bench", "Measure the machine and the engine");
    bench->require_subcommand(1);

    auto roofline = std::make_shared<RooflineFlags>();
    CLI::App* command =
        bench->add_subcommand("roofline", "Read bandwidth and arithmetic peaks; cached for this machine");
    command->add_flag("--json", roofline->common.json, "print one JSON document on stdout and nothing else");
    command->add_option("--log-level", roofline->common.log_level, "trace, debug, info, warning, error or off");
    whole_numbers(
        command->add_option("-t,--threads", roofline->common.threads, "measure 1 to this many (0: all physical cores)"),
        0, kMostThreads);
    real_numbers(command
                     ->add_option("--seconds", roofline->seconds,
                                  "per point; with less than the default, as with fewer threads, nothing is cached")
                     ->capture_default_str(),
                 0.01, 60);
    command->callback([&chosen, roofline] { chosen = [roofline] { return bench_roofline(*roofline); }; });

    auto engine = std::make_shared<EngineFlags>();
    command = bench->add_subcommand("engine", "Prefill and decode speed in this process; JSON lines with --json");
    add_model_flags(*command, engine->model);
    EngineBenchOptions& options = engine->bench;
    const auto number = [command](const char* name, auto& value, const char* help, std::uint64_t most = INT64_MAX) {
        whole_numbers(command->add_option(name, value, help)->capture_default_str(), 0, most);
    };
    number("--prompt-tokens", options.prompt_tokens, "prefill this many (0: no prefill row)");
    number("--gen-tokens", options.gen_tokens, "decode this many after the prompt (0: no decode row)");
    command->add_option("--batch", engine->batches, "sequences at once, a list")->capture_default_str();
    command->add_option("--depth", engine->depths, "tokens in the cache before the prompt, a list, e.g. 0,4096")
        ->capture_default_str();
    number("--repeat", options.repeat, "timed repetitions of each");
    number("--warmup", options.warmup, "untimed repetitions before them");
    number("-s,--seed", options.seed, "of the token ids", UINT64_MAX);
    command->callback([&chosen, engine] { chosen = [engine] { return bench_engine(*engine); }; });
}

}  // namespace frontier
