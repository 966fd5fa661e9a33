#include "cli/chat.h"

#include <vector>

#include "cli/console.h"
#include "cli/generation.h"
#include "platform/clock.h"

namespace frontier {
namespace {

constexpr std::string_view kHelp =
    "/clear forgets the conversation, /exit (or Ctrl-D) leaves, /help shows this, Ctrl-C stops an answer\n";

// What Linux keeps of a line typed on a terminal (N_TTY_BUF_SIZE, less the newline); the rest is dropped unseen.
constexpr std::int64_t kTerminalLineBytes = 4095;

// The line without blanks at its end when it is a slash and letters, else "": paths and the like are text.
std::string slash_command(std::string_view line) {
    const auto end = line.find_last_not_of(" \t");
    line = line.substr(0, end == std::string_view::npos ? 0 : end + 1);
    if (line.size() < 2 || line[0] != '/') return {};
    for (const char c : line.substr(1))
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')) return {};
    return std::string(line);
}

class Chat {
public:
    Chat(LoadedModel& loaded, const Request& request, const ChatSettings& settings, ChatTemplate chat_template)
        : loaded_(loaded),
          request_(request),
          settings_(settings),
          template_(std::move(chat_template)),
          engine_(*loaded.runner, loaded.tokenizer, {.context_tokens = loaded.context_tokens}) {
        engine_.keep_cache(true);
        clear();
    }

    void clear() {
        messages_.clear();
        if (!settings_.system.empty()) messages_.push_back({"system", settings_.system});
    }

    // Answers one line; faults of the request are shown and leave the conversation as it was.
    void turn(const std::string& line) {
        GenerateOptions options;
        options.received_ns = now_ns();
        messages_.push_back({"user", line});
        auto ids = prompt_ids(line);
        if (!ids.has_value()) return give_up(ids.error());
        Request request = request_;
        request.prompt = std::move(ids).value();
        request_.sampling.seed += 1;
        auto generation = generate(engine_, std::move(request), print_text, options);
        interrupt_flag().store(false);
        if (!generation.has_value()) return give_up(generation.error());
        print_text("\n");
        messages_.push_back({"assistant", generation->text});
        print_note(figures_text(*generation, figures_of(*generation, loaded_), loaded_));
        if (generation->finish == FinishReason::kContext)
            print_warning(fmt::format("the context of {} tokens is full: the answer ends here (/clear, or raise --ctx)",
                                      loaded_.context_tokens));
    }

private:
    Result<std::vector<TokenId>> prompt_ids(const std::string& line) const {
        if (settings_.plain)
            return loaded_.tokenizer->encode(line, {.add_special = true, .parse_special = settings_.parse_special});
        return chat_prompt(loaded_, template_, messages_);
    }

    void give_up(const Error& error) {
        messages_.pop_back();
        print_error(error);
    }

    LoadedModel& loaded_;
    Request request_;
    ChatSettings settings_;
    ChatTemplate template_;
    Engine engine_;
    std::vector<ChatMessage> messages_;
};

}  // namespace

Status run_chat(LoadedModel& loaded, const Request& request, const ChatSettings& settings) {
    FR_ASSIGN(ChatTemplate chat_template, chat_template_of(loaded));
    Chat chat(loaded, request, settings, std::move(chat_template));
    const PatientSignals signals(Patience::kInterrupts);
    print_text(kHelp);
    for (;;) {
        const std::optional<InputLine> line = read_line("> ");
        if (termination_requested()) {
            print_note("");  // the prompt stands on a line of its own
            return fail(ErrorCode::kInterrupted, "terminated");
        }
        if (!line.has_value()) break;
        if (line->interrupted) {
            interrupt_flag().store(false);
            print_text("\n");
            continue;
        }
        const std::string command = slash_command(line->text);
        if (command == "/exit" || command == "/quit") break;
        if (command == "/clear") {
            chat.clear();
        } else if (!command.empty()) {
            if (command != "/help") print_text(fmt::format("{}: no such command\n", command));
            print_text(kHelp);
        } else if (std::ssize(line->text) >= kTerminalLineBytes) {
            print_warning(
                fmt::format("the terminal passes on at most {} bytes a line, so the end is missing and the "
                            "line is not used: give longer texts with -f FILE",
                            kTerminalLineBytes));
        } else if (!line->text.empty()) {
            chat.turn(line->text);
        }
    }
    print_text("\n");
    return {};
}

}  // namespace frontier
