#include "cli/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "platform/clock.h"
#include "platform/topology.h"
#include "text/unicode.h"

namespace frontier {
namespace {

std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_terminated{false};
std::atomic<Patience> g_patience{Patience::kNone};
// A byte for every signal, so that a wait for input ends whichever thread the handler ran in.
int g_wake_pipe[2] = {-1, -1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<Patience>::is_always_lock_free,
              "the handler may only touch lock-free atomics");

extern "C" void on_interrupt(int signal) {
    const int saved_errno = errno;
    bool again = false;
    if (signal == SIGINT) {
        again = g_interrupted.exchange(true) && g_patience.load() == Patience::kNone;
    } else {
        // Stored first: who resets the interrupt looks at it afterwards.
        again = g_terminated.exchange(true) && g_patience.load() != Patience::kAll;
        again = (g_interrupted.exchange(true) && g_patience.load() == Patience::kNone) || again;
    }
    if (again) _exit(static_cast<int>(ErrorCode::kInterrupted));
    const char byte = 0;
    if (write(g_wake_pipe[1], &byte, 1) < 0) errno = saved_errno;  // full: a wake-up waits already
    errno = saved_errno;
}

// 0 or the error.
int write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {  // another process made our terminal or pipe non-blocking
            pollfd wait{descriptor, POLLOUT, 0};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
        // A stopped terminal must not keep a program that was told to end.
        if (!text.empty() && termination_requested()) return EINTR;
    }
    return 0;
}

void write_stdout(std::string_view text) {
    const int error = write_all(STDOUT_FILENO, text);
    if (error == 0) return;
    if (error == EINTR) _exit(static_cast<int>(ErrorCode::kInterrupted));
    print_error(Error{ErrorCode::kFailed, fmt::format("stdout: {}", std::strerror(error))});
    _exit(static_cast<int>(ErrorCode::kFailed));
}

bool is_invisible(char32_t code) {
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x2028 || code == 0x2029 ||
           // Bidi_Control of Unicode
           code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

// The beginning and the end of valid UTF-8 that is longer than a few lines of a terminal.
std::string without_middle(const std::string& text) {
    constexpr std::size_t kMostBytes = 480;
    constexpr std::size_t kHeadBytes = 320;
    if (text.size() <= kMostBytes) return text;
    constexpr std::string_view kGap = " ... ";
    const auto inside_character = [&](std::size_t at) {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    std::size_t head = kHeadBytes;
    while (inside_character(head)) --head;
    std::size_t tail = text.size() - (kMostBytes - kHeadBytes - kGap.size());
    while (inside_character(tail)) ++tail;
    return fmt::format("{}{}{}", std::string_view(text).substr(0, head), kGap, std::string_view(text).substr(tail));
}

std::unexpected<Error> too_large(const std::string& name, std::int64_t limit_bytes, const std::string& found) {
    return bad_input("{}: expected at most {} bytes of text{}, found {}", name, limit_bytes,
                     limit_bytes < kMaxInputBytes ? " (an eighth of the memory available)" : "", found);
}

Result<std::string> read_descriptor(int descriptor, const std::string& name) {
    // Text, token ids and what the tokenizer keeps between them come to a multiple of the text.
    const std::int64_t limit_bytes = std::min(kMaxInputBytes, memory_state().available_bytes / 8);
    std::string text;
    struct stat status = {};
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        if (status.st_size > limit_bytes) return too_large(name, limit_bytes, fmt::format("{}", status.st_size));
        text.reserve(static_cast<std::size_t>(status.st_size));
    }
    // From here on a growing text is given the address space of the largest one: it is never copied again, and pages
    // count only when written.
    constexpr std::size_t kLargeBytes = 4 << 20;
    char buffer[1 << 16];
    for (;;) {
        const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return bad_input("{}: cannot be read: {}", name, std::strerror(errno));
        if (count == 0) return text;
        const std::size_t size = text.size() + static_cast<std::size_t>(count);
        if (static_cast<std::int64_t>(size) > limit_bytes) return too_large(name, limit_bytes, "more");
        if (size > text.capacity() && size > kLargeBytes) text.reserve(static_cast<std::size_t>(limit_bytes));
        text.append(buffer, static_cast<std::size_t>(count));
    }
}

// Waits until standard input has something; false when a signal came first.
bool wait_for_input() {
    for (;;) {
        if (g_interrupted.load() || termination_requested()) return false;
        pollfd wait[2] = {{STDIN_FILENO, POLLIN, 0}, {g_wake_pipe[0], POLLIN, 0}};
        if (poll(wait, 2, -1) < 0 && errno != EINTR) return true;  // the read will tell
        char dropped[64];
        while (::read(g_wake_pipe[0], dropped, sizeof dropped) > 0) continue;
        if (g_interrupted.load() || termination_requested()) return false;
        if (wait[0].revents != 0) return true;
    }
}

}  // namespace

void prepare_streams() {
    // The wrong direction on purpose: reading from a missing stdin and writing to a missing stdout fail as they should.
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            _exit(static_cast<int>(ErrorCode::kFailed));
    std::signal(SIGXFSZ, SIG_IGN);
}

std::string visible(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const Utf8Char next = next_utf8(text);
        const auto size = static_cast<std::size_t>(next.size_bytes);
        if (!next.valid) {
            for (const char c : text.substr(0, size)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else if (is_invisible(next.code)) {
            const auto code = static_cast<std::uint32_t>(next.code);
            out += code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
        } else {
            out += text.substr(0, size);
        }
        text.remove_prefix(size);
    }
    return out;
}

bool stdout_is_terminal() {
    return isatty(STDOUT_FILENO) != 0;
}
bool stderr_is_terminal() {
    return isatty(STDERR_FILENO) != 0;
}
bool stdin_is_terminal() {
    return isatty(STDIN_FILENO) != 0;
}

void print_text(std::string_view text) {
    write_stdout(text);
}

void print_json(const Json& document) {
    write_stdout(dump_json(document) + "\n");
}

void print_error(const Error& error) {
    write_all(STDERR_FILENO, "frontier: error: " + without_middle(visible(error.text)) + "\n");
}

void print_note(std::string_view text) {
    if (stderr_is_terminal()) write_all(STDERR_FILENO, std::string(text) + "\n");
}

void print_warning(std::string_view text) {
    write_all(STDERR_FILENO, "frontier: warning: " + without_middle(visible(text)) + "\n");
}

Result<std::string> read_input(const std::string& path) {
    if (path == "-" || path == "/dev/stdin") return read_descriptor(STDIN_FILENO, "standard input");
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return bad_input("{}: cannot be opened: {}", path, std::strerror(errno));
    auto text = read_descriptor(descriptor, path);
    close(descriptor);
    return text;
}

std::optional<InputLine> read_line(std::string_view prompt) {
    interrupt_flag();
    write_stdout(prompt);
    InputLine line;
    for (;;) {
        if (!wait_for_input()) return InputLine{.interrupted = true};
        char c = 0;
        const ssize_t count = ::read(STDIN_FILENO, &c, 1);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return line.text.empty() ? std::nullopt : std::optional(line);
        if (c == '\n') return line;
        line.text += c;
    }
}

ProgressLine::~ProgressLine() {
    clear();
}

void ProgressLine::clear() {
    if (shown_) write_all(STDERR_FILENO, "\r\x1b[K");
    shown_ = false;
}

void ProgressLine::show(std::string_view text) {
    constexpr std::int64_t kRedrawIntervalNs = 50'000'000;  // faster than the eye follows, slow enough to cost nothing
    const std::int64_t now = now_ns();
    if (!stderr_is_terminal() || (shown_ && now - last_ns_ < kRedrawIntervalNs)) return;
    write_all(STDERR_FILENO, "\r\x1b[K" + visible(text));
    shown_ = true;
    last_ns_ = now;
}

std::atomic<bool>& interrupt_flag() {
    static const bool installed = [] {
        if (pipe2(g_wake_pipe, O_NONBLOCK | O_CLOEXEC) != 0) return false;  // then signals end the program as usual
        struct sigaction action = {};
        action.sa_handler = on_interrupt;
        sigemptyset(&action.sa_mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&action.sa_mask, signal);
        action.sa_flags = 0;  // no SA_RESTART: a write to a stopped terminal returns
        sigaction(SIGINT, &action, nullptr);
        sigaction(SIGTERM, &action, nullptr);
        struct sigaction hangup = {};
        sigaction(SIGHUP, nullptr, &hangup);
        if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup keeps its meaning
        return true;
    }();
    static_cast<void>(installed);
    return g_interrupted;
}

bool termination_requested() {
    return g_terminated.load();
}

PatientSignals::PatientSignals(Patience patience) {
    interrupt_flag();
    g_patience.store(patience);
}

PatientSignals::~PatientSignals() {
    g_patience.store(Patience::kNone);
}

}  // namespace frontier
