// The frontier binary: parses the command line, runs one command, turns errors into one line and an exit code.
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "model/model_store.h"
#include "platform/map_faults.h"

namespace frontier {
namespace {

// FRONTIER_MODELS: folders with models, separated by colons, searched before the bundled ones.
void read_model_path() {
    const char* value = std::getenv("FRONTIER_MODELS");
    if (value == nullptr) return;
    std::vector<std::string> folders;
    std::string_view rest = value;
    while (!rest.empty()) {
        const auto end = std::min(rest.find(':'), rest.size());
        if (end > 0) folders.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    set_model_search_path(std::move(folders));
}

// In a signal handler: only write and _exit.
void end_with_map_fault(const char* path) {
    const auto say = [](const char* text) { return write(STDERR_FILENO, text, std::strlen(text)) >= 0; };
    const auto say_visibly = [](const char* text) {
        bool written = true;
        for (; *text != '\0' && written; ++text) {
            constexpr char kDigits[] = "0123456789abcdef";
            const auto byte = static_cast<unsigned char>(*text);
            const char escaped[] = {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
            const bool plain = byte >= ' ' && byte <= '~';
            written = write(STDERR_FILENO, plain ? text : escaped, plain ? 1 : sizeof escaped) > 0;
        }
        return written;
    };
    const bool said = say("frontier: error: ") && say_visibly(path != nullptr ? path : "a mapped file") &&
                      say(": expected the file to stay as it was when opened, found it cut short or unreadable\n");
    _exit(said ? static_cast<int>(ErrorCode::kBadInput) : static_cast<int>(ErrorCode::kFailed));
}

int report(const Error& error) {
    print_error(error);
    return static_cast<int>(error.code);
}

int run_program(int argc, char** argv) {
    CLI::App app("Runs language models as fast as this machine allows, and measures it.", "frontier");
    app.set_version_flag("--version", FRONTIER_VERSION);
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::simple);
    app.footer(
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 bad input, 4 does not fit, 5 a comparison failed, 130 interrupted.");
    Action chosen;
    add_run_command(app, chosen);
    add_tokenize_commands(app, chosen);
    add_inspect_command(app, chosen);
    add_list_command(app, chosen);
    add_synth_command(app, chosen);
    add_bench_commands(app, chosen);
    add_eval_commands(app, chosen);
    auto arguments = prepare_arguments(app, argc, argv);
    if (!arguments.has_value()) return report(arguments.error());
    std::ranges::reverse(*arguments);  // as the library wants them
    try {
        app.parse(std::move(*arguments));
    } catch (const CLI::Success& e) {  // --help, --version
        std::ostringstream text;
        const int code = app.exit(e, text, text);
        print_text(text.str());
        return code;
    } catch (const CLI::ParseError& e) {
        return report(Error{ErrorCode::kUsage, fmt::format("{} (see frontier --help)", e.what())});
    }
    if (const Status checked = check_parsed(app); !checked.has_value()) return report(checked.error());
    const Status status = chosen();
    return status.has_value() ? 0 : report(status.error());
}

}  // namespace
}  // namespace frontier

int main(int argc, char** argv) {
    using namespace frontier;
    prepare_streams();
    init_logging(isatty(STDERR_FILENO) != 0);
    on_map_fault(end_with_map_fault);
    try {
        read_model_path();
        return run_program(argc, argv);
    } catch (const std::bad_alloc&) {
        return report(Error{ErrorCode::kDoesNotFit, "out of memory"});
    } catch (const std::exception& e) {
        return report(Error{ErrorCode::kFailed, fmt::format("unexpected: {}", e.what())});
    }
}
