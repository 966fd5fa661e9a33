// frontier tokenize, detokenize: text to ids and back; also on files that hold only a tokenizer.
#include <charconv>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/flags.h"

namespace frontier {
namespace {

struct TokenizeFlags {
    ModelFlags model;
    std::optional<std::string> prompt;
    std::optional<std::string> file;
    bool no_special = false;
    bool parse_special = false;
};

struct DetokenizeFlags {
    ModelFlags model;
    std::vector<std::string> ids;
    bool with_special = false;
};

Status tokenize(const TokenizeFlags& flags) {
    FR_TRY(apply_log_level(flags.model));
    if (flags.prompt.has_value() && flags.file.has_value())
        return fail(ErrorCode::kUsage, "-p and -f: expected one of them, got both");
    FR_ASSIGN(const auto source, open_model(flags.model.model));
    FR_ASSIGN(const auto tokenizer, source->tokenizer());
    std::string text;
    if (flags.prompt.has_value()) {
        text = *flags.prompt;
    } else {
        FR_ASSIGN(text, read_input(flags.file.value_or("-")));
    }
    FR_ASSIGN(const auto ids,
              tokenizer->encode(text, {.add_special = !flags.no_special, .parse_special = flags.parse_special}));
    // No text, no tokens: a caller that counts must not be given a BOS for nothing.
    const bool empty = text.empty();
    if (flags.model.json) {
        Json report{{"ids", Json::array()}, {"pieces", Json::array()}};
        for (const TokenId id : ids) {
            if (empty) break;
            report["ids"].push_back(id);
            report["pieces"].push_back(tokenizer->token_bytes(id, true));
        }
        print_json(report);
        return {};
    }
    std::string out;
    for (const TokenId id : ids)
        if (!empty) out += fmt::format("{:>7}  {}\n", id, visible(dump_json(tokenizer->token_bytes(id, true))));
    print_text(out);
    return {};
}

Status detokenize(const DetokenizeFlags& flags) {
    FR_TRY(apply_log_level(flags.model));
    FR_ASSIGN(const auto source, open_model(flags.model.model));
    FR_ASSIGN(const auto tokenizer, source->tokenizer());
    std::vector<TokenId> ids;
    for (const std::string& text : flags.ids) {
        TokenId id = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
        if (error != std::errc() || end != text.data() + text.size())
            return fail(ErrorCode::kUsage, "ID: expected a token id, got '{}'", text);
        if (id < 0 || id >= tokenizer->vocab_size())
            return bad_input("token id {} is outside the vocabulary of {} entries", id, tokenizer->vocab_size());
        ids.push_back(id);
    }
    const std::string text = tokenizer->decode(ids, flags.with_special);
    if (flags.model.json)
        print_json({{"text", text}});
    else
        print_text(text + (stdout_is_terminal() ? "\n" : ""));
    return {};
}

}  // namespace

void add_tokenize_commands(CLI::App& app, Action& chosen) {
    auto flags = std::make_shared<TokenizeFlags>();
    CLI::App* command = app.add_subcommand("tokenize", "Text to token ids");
    add_file_flags(*command, flags->model);
    command->add_option("-p,--prompt", flags->prompt, "the text");
    command->add_option("-f,--file", flags->file,
                        "read the text from a file, byte for byte; - is standard input (default)");
    command->add_flag("--no-special", flags->no_special, "add no BOS or EOS");
    command->add_flag("--parse-special", flags->parse_special, "control tokens written out in the text count as such");
    command->callback([&chosen, flags] { chosen = [flags] { return tokenize(*flags); }; });

    auto reverse = std::make_shared<DetokenizeFlags>();
    command = app.add_subcommand("detokenize", "Token ids to text: detokenize [MODEL] ID...");
    command->add_option("-m,--model", reverse->model.model, "see `frontier run --help` (default: the bundled model)");
    command->add_flag("--json", reverse->model.json, "print one JSON document on stdout and nothing else");
    command->add_option("--log-level", reverse->model.log_level, "trace, debug, info, warning, error or off");
    command->add_flag("--with-special", reverse->with_special, "show control tokens");
    command->add_option("ARGS", reverse->ids, "MODEL (left out: the bundled model), then token ids");
    command->callback([&chosen, reverse] {
        // The first argument is a MODEL unless it is a number.
        if (reverse->model.model.empty() && !reverse->ids.empty() &&
            reverse->ids.front().find_first_not_of("-0123456789") != std::string::npos) {
            reverse->model.model = reverse->ids.front();
            reverse->ids.erase(reverse->ids.begin());
        }
        chosen = [reverse] { return detokenize(*reverse); };
    });
}

}  // namespace frontier
