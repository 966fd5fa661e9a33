// Stop strings over a stream of text pieces: text that may be the beginning of a stop string is held back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace frontier {

class StopMatcher {
public:
    // Empty stop strings are ignored.
    explicit StopMatcher(std::vector<std::string> stops);

    // Adds text; returns what may be shown now. Once a stop string is complete, the text before its first occurrence
    // has been returned, the rest is dropped and stopped() holds. Of several, the one that is complete first wins (of
    // those complete at the same byte, the longest), so that the result does not depend on how the text was cut.
    std::string push(std::string_view text);
    // The text still held back, when the stream ends without a stop string.
    std::string finish();
    bool stopped() const { return stopped_; }

private:
    std::vector<std::string> stops_;
    std::string held_;
    bool stopped_ = false;
};

}  // namespace frontier
