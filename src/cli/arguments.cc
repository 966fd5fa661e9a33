#include "cli/arguments.h"

#include <algorithm>

namespace frontier {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_value(const CLI::App& command, const std::string& name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_min() > 0;
}

std::unexpected<Error> not_a_command(const CLI::App& app, const std::string& found) {
    const bool nested = app.get_parent() != nullptr;
    std::string names;
    for (const CLI::App* command : commands_of(app)) names += (names.empty() ? "" : ", ") + command->get_name();
    return fail(ErrorCode::kUsage, "{}expected a command, one of {}; got {} (see frontier {}--help)",
                nested ? app.get_name() + ": " : "", names, found, nested ? app.get_name() + " " : "");
}

}  // namespace

Result<std::vector<std::string>> prepare_arguments(const CLI::App& app, int argc, const char* const* argv) {
    const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
    std::vector<std::string> prepared;
    const CLI::App* command = &app;
    std::size_t i = 0;
    for (; !commands_of(*command).empty(); ++i) {
        if (i == given.size()) return not_a_command(*command, "none");
        prepared.push_back(given[i]);
        if (given[i].starts_with('-') && command->get_option_no_throw(given[i]) != nullptr)
            return std::vector(given);  // --help, --version
        const auto commands = commands_of(*command);
        const auto chosen = std::ranges::find_if(commands, [&](auto* each) { return each->check_name(given[i]); });
        if (chosen == commands.end()) return not_a_command(*command, fmt::format("'{}'", given[i]));
        command = *chosen;
    }
    for (; i < given.size(); ++i) {
        const std::string& argument = given[i];
        const auto equals = argument.find('=');
        if (argument == "--") {  // all that follows is positional
            prepared.insert(prepared.end(), given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
            break;
        }
        if (argument.starts_with("--") && equals == argument.size() - 1 &&
            takes_value(*command, argument.substr(0, equals))) {
            prepared.push_back(argument.substr(0, equals));
            prepared.emplace_back();
            continue;
        }
        prepared.push_back(argument);
        // The value of this one, whatever it looks like.
        if (argument.starts_with('-') && takes_value(*command, argument) && i + 1 < given.size())
            prepared.push_back(given[++i]);
    }
    return prepared;
}

Status check_parsed(const CLI::App& app) {
    const CLI::App* command = &app;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    const CLI::Option* model = command->get_option_no_throw("--model");
    if (model != nullptr && model->count() > 0 && model->results().front().empty())
        return fail(ErrorCode::kUsage, "MODEL: expected a file, a folder or a name of `frontier list`, got empty text");
    return {};
}

}  // namespace frontier
