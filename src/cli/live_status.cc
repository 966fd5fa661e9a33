#include "cli/live_status.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "platform/clock.h"

namespace frontier {
namespace {

constexpr std::int64_t kRedrawIntervalNs = 100'000'000;
constexpr int kFewestRows = 4;  // below, a row is too much to take

// VT100: save and restore the cursor; the whole screen scrolls again (which moves the cursor home); erase the line.
constexpr std::string_view kSave = "\0337";
constexpr std::string_view kRestore = "\0338";
constexpr std::string_view kWholeRegion = "\033[r";
constexpr std::string_view kEraseLine = "\033[2K";
// One row down, scrolling if need be, and up again, in the same column: the cursor is not in the last row any more.
constexpr std::string_view kLeaveLastRow = "\033D\033[A";

std::string go_to_row(int row) {
    return fmt::format("\033[{};1H", row);
}

struct TerminalSize {
    int rows = 0;
    int cols = 0;
};

TerminalSize terminal_size() {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
    return {size.ws_row, size.ws_col};
}

std::string give_back(int rows) {
    return fmt::format("{}{}{}{}{}", kSave, kWholeRegion, go_to_row(rows), kEraseLine, kRestore);
}

std::string reserve(int rows) {
    return fmt::format("{}{}\033[1;{}r{}", kLeaveLastRow, kSave, rows - 1, kRestore);
}

}  // namespace

void LiveStatus::begin() {
    const char* kind = std::getenv("TERM");
    if (active() || !stdout_is_terminal() || kind == nullptr || std::string_view(kind) == "dumb") return;
    const TerminalSize size = terminal_size();
    if (size.rows < kFewestRows || size.cols < 1) return;
    rows_ = size.rows;
    cols_ = size.cols;
    patience_.emplace(Patience::kAll);  // a second signal would end the program with the row still reserved
    print_text(reserve(rows_));
}

bool LiveStatus::due() const {
    return active() && (last_ns_ == 0 || now_ns() - last_ns_ >= kRedrawIntervalNs);
}

void LiveStatus::show(std::string_view text) {
    if (!due()) return;
    last_ns_ = now_ns();
    std::string out;
    const TerminalSize size = terminal_size();
    if (size.rows >= kFewestRows && size.cols >= 1 && (size.rows != rows_ || size.cols != cols_)) {
        out += give_back(std::min(rows_, size.rows));
        rows_ = size.rows;
        cols_ = size.cols;
        out += reserve(rows_);
    }
    out += fmt::format("{}{}{}{}{}", kSave, go_to_row(rows_), kEraseLine,
                       text.substr(0, static_cast<std::size_t>(cols_ - 1)), kRestore);
    print_text(out);
}

void LiveStatus::end() {
    if (!active()) return;
    print_text(give_back(rows_));
    rows_ = 0;
    patience_.reset();
}

}  // namespace frontier
