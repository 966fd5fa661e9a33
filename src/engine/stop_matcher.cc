#include "engine/stop_matcher.h"

#include <algorithm>

namespace frontier {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
    std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::push(std::string_view text) {
    if (stopped_) return {};
    held_ += text;
    std::size_t first_stop = std::string::npos;
    std::size_t first_end = std::string::npos;
    for (const std::string& stop : stops_) {
        const std::size_t begin = held_.find(stop);
        if (begin == std::string::npos) continue;
        const std::size_t end = begin + stop.size();
        if (end < first_end || (end == first_end && begin < first_stop)) {
            first_stop = begin;
            first_end = end;
        }
    }
    if (first_stop != std::string::npos) {
        stopped_ = true;
        std::string shown = held_.substr(0, first_stop);
        held_.clear();
        return shown;
    }
    // The longest suffix of the held text that begins some stop string stays.
    std::size_t keep = 0;
    for (const std::string& stop : stops_) {
        for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
            if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) {
                keep = length;
                break;
            }
        }
    }
    std::string shown = held_.substr(0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return shown;
}

std::string StopMatcher::finish() {
    std::string rest = std::move(held_);
    held_.clear();
    return stopped_ ? std::string() : rest;
}

}  // namespace frontier
