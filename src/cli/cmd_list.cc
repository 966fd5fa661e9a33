// frontier list: the models that can be named without a path.
#include "cli/command.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "model/model_store.h"

namespace frontier {
namespace {

Json entry_json(const ModelListEntry& entry) {
    Json row{{"name", entry.name}, {"path", entry.path}, {"format", entry.format}};
    row["default"] = entry.is_default;
    if (!entry.error.empty()) {
        row["error"] = entry.error;
        return row;
    }
    row["architecture"] = entry.architecture;
    row["parameters"] = entry.parameters;
    row["weight_type"] = entry.weight_type;
    row["bytes"] = entry.bytes;
    return row;
}

Status list(const ModelFlags& flags) {
    FR_TRY(apply_log_level(flags));
    const std::vector<ModelListEntry> models = list_models();
    if (flags.json) {
        Json report{{"models", Json::array()}};
        for (const ModelListEntry& entry : models) report["models"].push_back(entry_json(entry));
        print_json(report);
        return {};
    }
    std::string out = fmt::format("{:<24} {:<12} {:<8} {:>12} {:<10} {:>10}  {}\n", "name", "format", "arch",
                                  "parameters", "weights", "MB", "path");
    for (const ModelListEntry& entry : models) {
        if (!entry.error.empty()) {
            out += fmt::format("{:<24} cannot be used: {}\n", visible(entry.name), visible(entry.error));
            continue;
        }
        out += fmt::format("{:<24} {:<12} {:<8} {:>12} {:<10} {:>10.1f}  {}{}\n", visible(entry.name), entry.format,
                           entry.architecture.empty() ? "-" : visible(entry.architecture), entry.parameters,
                           entry.weight_type, static_cast<double>(entry.bytes) * 1e-6, visible(entry.path),
                           entry.is_default ? "  (default)" : "");
    }
    print_text(out);
    return {};
}

}  // namespace

void add_list_command(CLI::App& app, Action& chosen) {
    auto flags = std::make_shared<ModelFlags>();
    CLI::App* command = app.add_subcommand("list", "The models that can be named without a path");
    command->add_flag("--json", flags->json, "print one JSON document on stdout and nothing else");
    command->add_option("--log-level", flags->log_level, "trace, debug, info, warning, error or off");
    command->callback([&chosen, flags] { chosen = [flags] { return list(*flags); }; });
}

}  // namespace frontier
