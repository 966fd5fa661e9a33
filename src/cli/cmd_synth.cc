// frontier synth: a synthetic model as a GGUF file, so that peers can be measured on the same bytes.
#include "cli/command.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "model/synthetic.h"

namespace frontier {
namespace {

struct SynthFlags {
    ModelFlags common;
    std::string spec;
    std::string out;
    std::string vocab;
};

Status synth(const SynthFlags& flags) {
    FR_TRY(apply_log_level(flags.common));
    std::int64_t bytes = 0;
    {
        const PatientSignals signals(Patience::kAll);  // the unfinished file must be removed
        ProgressLine line;
        const auto progress = [&](std::int64_t done_bytes, std::int64_t total_bytes) -> Status {
            if (interrupt_flag().load()) return fail(ErrorCode::kInterrupted, "interrupted");
            bytes = total_bytes;
            line.show(fmt::format(
                "writing {:.0f}% of {:.1f} MB",
                100.0 * static_cast<double>(done_bytes) / static_cast<double>(std::max<std::int64_t>(1, total_bytes)),
                static_cast<double>(total_bytes) * 1e-6));
            return {};
        };
        FR_TRY(write_synthetic_gguf(flags.spec, flags.out, progress, flags.vocab));
    }
    if (flags.common.json)
        print_json({{"path", flags.out}, {"model", flags.spec}, {"tensor_bytes", bytes}});
    else
        print_text(
            fmt::format("{}: {:.1f} MB of random weights\n", visible(flags.out), static_cast<double>(bytes) * 1e-6));
    return {};
}

}  // namespace

void add_synth_command(CLI::App& app, Action& chosen) {
    auto flags = std::make_shared<SynthFlags>();
    std::string shapes;
    for (const SyntheticShape& shape : synthetic_shapes()) shapes += fmt::format(" {}", shape.name);
    std::string quants;
    for (const SyntheticQuant& quant : synthetic_quants()) quants += fmt::format(" {}", quant.name);
    CLI::App* command = app.add_subcommand("synth", "Write a model of random weights as a GGUF file");
    command->add_option("SHAPE[:QUANT]", flags->spec, "SHAPE:" + shapes + "; QUANT:" + quants)->required();
    command->add_option("OUT", flags->out, "the .gguf file to write")->required();
    command->add_option("--vocab", flags->vocab,
                        "a .gguf file whose tokenizer the model gets, padded with unused tokens");
    command->add_flag("--json", flags->common.json, "print one JSON document on stdout and nothing else");
    command->add_option("--log-level", flags->common.log_level, "trace, debug, info, warning, error or off");
    command->callback([&chosen, flags] { chosen = [flags] { return synth(*flags); }; });
}

}  // namespace frontier
