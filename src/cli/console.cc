#include "cli/console.h"

#include <unistd.h>
#include <csignal>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "platform/clock.h"

namespace frontier {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the handler may only touch lock-free atomics");

extern "C" void on_interrupt(int) {
    if (g_interrupted.exchange(true)) _exit(130);
}

void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return;  // nowhere left to complain
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::string on_one_line(std::string_view text) {
    std::string line(text);
    for (char& c : line)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
    return line;
}

Result<std::string> read_stream(std::FILE* stream, const std::string& name) {
    std::string text;
    char buffer[1 << 16];
    std::size_t count = 0;
    while ((count = std::fread(buffer, 1, sizeof buffer, stream)) > 0) text.append(buffer, count);
    if (std::ferror(stream) != 0) return bad_input("{}: cannot be read: {}", name, std::strerror(errno));
    return text;
}

}  // namespace

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
    write_all(STDOUT_FILENO, text);
}

void print_json(const Json& document) {
    write_all(STDOUT_FILENO, dump_json(document) + "\n");
}

void print_error(const Error& error) {
    write_all(STDERR_FILENO, "frontier: error: " + on_one_line(error.text) + "\n");
}

void print_note(std::string_view text) {
    if (stderr_is_terminal()) write_all(STDERR_FILENO, std::string(text) + "\n");
}

void print_warning(std::string_view text) {
    write_all(STDERR_FILENO, "frontier: warning: " + on_one_line(text) + "\n");
}

Result<std::string> read_input(const std::string& path) {
    if (path == "-" || path == "/dev/stdin") return read_stream(stdin, "standard input");
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return bad_input("{}: cannot be opened: {}", path, std::strerror(errno));
    auto text = read_stream(file, path);
    std::fclose(file);
    return text;
}

std::optional<InputLine> read_line(std::string_view prompt) {
    write_all(STDOUT_FILENO, prompt);
    InputLine line;
    for (;;) {
        char c = 0;
        const ssize_t count = ::read(STDIN_FILENO, &c, 1);
        if (count < 0 && errno == EINTR) {
            line.interrupted = true;
            line.text.clear();
            return line;
        }
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
    write_all(STDERR_FILENO, "\r\x1b[K" + on_one_line(text));
    shown_ = true;
    last_ns_ = now;
}

std::atomic<bool>& interrupt_flag() {
    static const bool installed = [] {
        struct sigaction action = {};
        action.sa_handler = on_interrupt;
        sigemptyset(&action.sa_mask);
        action.sa_flags = 0;  // no SA_RESTART: a read from the terminal returns
        sigaction(SIGINT, &action, nullptr);
        sigaction(SIGTERM, &action, nullptr);
        return true;
    }();
    static_cast<void>(installed);
    return g_interrupted;
}

}  // namespace frontier
