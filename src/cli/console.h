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

// Makes sure that descriptors 0 to 2 are taken, so that no file opened later is mistaken for a standard stream, and
// that exceeding a limit on file sizes is an error of the write instead of a signal. First thing in main.
void prepare_streams();

// Text that stands in a file or a file's name, for a line people read: control characters (C0, DEL, C1), line
// separators, marks that turn the direction of writing, and bytes that are no UTF-8 appear as \xNN and \uNNNN.
std::string visible(std::string_view text);

// stdout as it stands, unbuffered by us: text appears at once. A closed pipe ends the program as usual (SIGPIPE); any
// other failure ends it at once with an error line and exit code 1, because the caller's work has lost its purpose.
void print_text(std::string_view text);
void print_json(const Json& document);  // one line
// "frontier: error: ..." on stderr: one visible() line whatever the text holds, its middle left out where it is long.
void print_error(const Error& error);
// A remark for people: on stderr, only when it is a terminal.
void print_note(std::string_view text);
// Something the user should know although the run goes on; on stderr always, as one line like errors.
void print_warning(std::string_view text);

// A text of 1 GiB has some 250 million tokens, a thousand times the longest context of any model.
inline constexpr std::int64_t kMaxInputBytes = std::int64_t{1} << 30;
// Every byte of a file; "-" and "/dev/stdin" read standard input. kBadInput when it cannot be read, and when it is
// larger than kMaxInputBytes or an eighth of the memory available.
Result<std::string> read_input(const std::string& path);
// One line from the terminal without its newline; nullopt at the end of input. An interrupt gives "" with
// `interrupted` set, and stays in interrupt_flag().
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

// SIGINT, SIGTERM and SIGHUP set a flag instead of ending the program; the first call installs the handlers. A second
// signal while the flag is still set ends the program at once, unless a PatientSignals lives.
std::atomic<bool>& interrupt_flag();
// SIGTERM or SIGHUP came: the program should end, not only what it does at the moment.
bool termination_requested();

enum class Patience : std::uint8_t {
    kNone,        // a second signal ends the program
    kInterrupts,  // any number of SIGINT only sets the flag
    kAll          // every signal only sets the flag: something must be cleaned up
};
// One at a time.
class PatientSignals {
public:
    explicit PatientSignals(Patience patience);
    ~PatientSignals();
    PatientSignals(const PatientSignals&) = delete;
    PatientSignals& operator=(const PatientSignals&) = delete;
};

}  // namespace frontier
