// The terminal and the standard streams: text and JSON out, exact bytes in, progress, interrupts.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace frontier {

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();

// stdout, unbuffered by us: text appears at once. A closed pipe ends the program as usual (SIGPIPE).
void print_text(std::string_view text);
void print_json(const Json& document);  // one line
// "frontier: error: ..." on stderr, one line whatever the text holds.
void print_error(const Error& error);
// A remark for people: on stderr, only when it is a terminal.
void print_note(std::string_view text);
// Something the user should know although the run goes on; on stderr always.
void print_warning(std::string_view text);

// Every byte of a file; "-" and "/dev/stdin" read standard input. kBadInput when it cannot be read.
Result<std::string> read_input(const std::string& path);
// One line from the terminal without its newline; nullopt at the end of input. An interrupt gives "" with
// `interrupted` set.
struct InputLine {
    std::string text;
    bool interrupted = false;
};
std::optional<InputLine> read_line(std::string_view prompt);

// A single line on stderr that rewrites itself; nothing when stderr is not a terminal. Cleared on destruction.
class ProgressLine {
public:
    ~ProgressLine();
    void show(std::string_view text);
    void clear();  // before other output

private:
    bool shown_ = false;
    std::int64_t last_ns_ = 0;
};

// SIGINT and SIGTERM set a flag instead of ending the program; the first call installs the handlers. A second signal
// while the flag is still set ends the program at once.
std::atomic<bool>& interrupt_flag();

}  // namespace frontier
