// A status line that stays in the last row of the terminal while text scrolls above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/console.h"

namespace frontier {

// Reserves the last row of the terminal on stdout by a scroll region (DECSTBM); nothing when stdout is no terminal that
// can do so. The destructor gives the row back; until then signals only set the interrupt flag. One at a time.
class LiveStatus {
public:
    LiveStatus() = default;
    ~LiveStatus() { end(); }
    LiveStatus(const LiveStatus&) = delete;
    LiveStatus& operator=(const LiveStatus&) = delete;

    void begin();
    bool active() const { return rows_ > 0; }
    // Whether show() would draw now: at most ten times a second.
    bool due() const;
    void show(std::string_view text);  // ASCII; cut to the width
    void end();

private:
    int rows_ = 0;  // of the terminal, 0 = not active
    int cols_ = 0;
    std::int64_t last_ns_ = 0;
    std::optional<PatientSignals> patience_;
};

}  // namespace frontier
