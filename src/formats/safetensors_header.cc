#include "formats/safetensors_header.h"

#include <nlohmann/json.hpp>

#include "formats/printable.h"

namespace frontier {
namespace {

// More than any framework stores: torch allows 64, models use up to 5.
constexpr std::size_t kMaxDims = 8;

// What the two handlers share: the error, and the skipping of values that nobody asked for.
class EventReader : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit EventReader(std::string_view where) : where_(where) {}

    bool null() override { return skipping() || on_other("null"); }
    bool boolean(bool) override { return skipping() || on_other("a boolean"); }
    bool number_integer(number_integer_t) override { return skipping() || on_other("a negative number"); }
    bool number_unsigned(number_unsigned_t value) override { return skipping() || on_number(value); }
    bool number_float(number_float_t, const string_t&) override { return skipping() || on_other("a fraction"); }
    bool string(string_t& value) override { return skipping() || on_string(value); }
    bool binary(binary_t&) override { return on_other("binary data"); }
    bool key(string_t& name) override { return skip_depth_ > 0 || on_key(name); }
    bool start_object(std::size_t) override { return enter() || on_start_object(); }
    bool start_array(std::size_t) override { return enter() || on_start_array(); }
    bool end_object() override { return leave() || on_end_object(); }
    bool end_array() override { return leave() || on_end_array(); }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
        // The library's text starts with an identifier in brackets and then repeats the position.
        std::string_view message = e.what();
        if (const auto end = message.rfind(": "); end != std::string_view::npos) message.remove_prefix(end + 2);
        return refuse(fmt::format("invalid JSON at byte {}: {}", position, printable(message)));
    }

    Status run(std::string_view json) {
        // The library takes a zero byte for the end of the text and would not look at what follows.
        if (const auto zero = json.find('\0'); zero != std::string_view::npos)
            return bad_input("{}: invalid JSON at byte {}: a zero byte", where_, zero);
        try {
            if (nlohmann::json::sax_parse(json, this)) return {};
        } catch (const std::exception& e) {
            return bad_input("{}: invalid JSON: {}", where_, printable(e.what()));
        }
        return bad_input("{}: {}", where_, error_.empty() ? "invalid JSON" : error_);
    }

protected:
    virtual bool on_number(std::uint64_t) { return on_other("a number"); }
    virtual bool on_string(std::string&) { return on_other("a string"); }
    virtual bool on_start_object() { return on_other("an object"); }
    virtual bool on_start_array() { return on_other("an array"); }
    virtual bool on_end_object() = 0;
    virtual bool on_end_array() { return true; }
    virtual bool on_key(std::string& name) = 0;
    // A value of a kind that has no place here.
    virtual bool on_other(std::string_view actual) = 0;

    bool refuse(std::string text) {
        error_ = std::move(text);
        return false;
    }
    // The next value, whatever it holds, is passed over.
    void skip_next() { skip_value_ = true; }

private:
    bool skipping() {
        if (skip_depth_ > 0) return true;
        return std::exchange(skip_value_, false);
    }
    bool enter() {
        if (skip_depth_ == 0 && !std::exchange(skip_value_, false)) return false;
        ++skip_depth_;
        return true;
    }
    bool leave() {
        if (skip_depth_ == 0) return false;
        --skip_depth_;
        return true;
    }

    std::string_view where_;
    std::string error_;
    bool skip_value_ = false;
    std::size_t skip_depth_ = 0;
};

class HeaderReader final : public EventReader {
public:
    using EventReader::EventReader;
    std::vector<SafetensorsEntry> entries;

private:
    enum class Level { kOutside, kTensors, kFields, kArray };
    enum Field : unsigned { kNone = 0, kDtype = 1, kShape = 2, kOffsets = 4, kAll = 7 };

    bool on_start_object() override {
        if (level_ == Level::kOutside) {
            level_ = Level::kTensors;
            return true;
        }
        if (level_ != Level::kTensors) return on_other("an object");
        level_ = Level::kFields;
        seen_ = 0;
        field_ = kNone;
        return true;
    }

    bool on_key(std::string& name) override {
        if (level_ == Level::kTensors) {
            if (name == "__metadata__") {
                skip_next();
            } else {
                if (name.empty()) return refuse("a tensor has an empty name");
                entries.emplace_back().name = std::move(name);
            }
            return true;
        }
        field_ = name == "dtype" ? kDtype : name == "shape" ? kShape : name == "data_offsets" ? kOffsets : kNone;
        if (field_ == kNone) {
            skip_next();
            return true;
        }
        if ((seen_ & field_) != 0) return refuse(fmt::format("{}: field '{}' occurs twice", tensor(), name));
        seen_ |= field_;
        return true;
    }

    bool on_string(std::string& value) override {
        if (level_ != Level::kFields || field_ != kDtype) return on_other("a string");
        entries.back().dtype = std::move(value);
        return true;
    }

    bool on_start_array() override {
        if (level_ != Level::kFields || (field_ != kShape && field_ != kOffsets)) return on_other("an array");
        level_ = Level::kArray;
        offsets_seen_ = 0;
        return true;
    }

    bool on_number(std::uint64_t value) override {
        if (level_ != Level::kArray) return on_other("a number");
        SafetensorsEntry& entry = entries.back();
        if (field_ == kShape) {
            if (entry.shape.size() == kMaxDims)
                return refuse(fmt::format("{}: more than {} dimensions", tensor(), kMaxDims));
            if (value > static_cast<std::uint64_t>(INT64_MAX))
                return refuse(fmt::format("{}: extent {} exceeds {}", tensor(), value, INT64_MAX));
            entry.shape.push_back(static_cast<std::int64_t>(value));
            return true;
        }
        if (offsets_seen_ == 2) return refuse(fmt::format("{}: data_offsets holds more than 2 numbers", tensor()));
        (offsets_seen_++ == 0 ? entry.begin : entry.end) = value;
        return true;
    }

    bool on_end_array() override {
        level_ = Level::kFields;
        if (field_ == kOffsets && offsets_seen_ != 2)
            return refuse(fmt::format("{}: data_offsets holds {} numbers, expected 2", tensor(), offsets_seen_));
        return true;
    }

    bool on_end_object() override {
        if (level_ == Level::kFields) {
            level_ = Level::kTensors;
            if (seen_ != kAll) {
                const char* missing = (seen_ & kDtype) == 0   ? "dtype"
                                      : (seen_ & kShape) == 0 ? "shape"
                                                              : "data_offsets";
                return refuse(fmt::format("{}: field '{}' is missing", tensor(), missing));
            }
        } else {
            level_ = Level::kOutside;
        }
        return true;
    }

    bool on_other(std::string_view actual) override {
        if (level_ == Level::kOutside) return refuse(fmt::format("the header is {}, expected an object", actual));
        if (level_ == Level::kTensors)
            return refuse(
                fmt::format("{}: expected an object with dtype, shape and data_offsets, got {}", tensor(), actual));
        if (field_ == kDtype) return refuse(fmt::format("{}: dtype: expected a string, got {}", tensor(), actual));
        const char* name = field_ == kShape ? "shape" : "data_offsets";
        return refuse(fmt::format("{}: {}: expected an array of integers of at least 0, got {}{}", tensor(), name,
                                  actual, level_ == Level::kArray ? " in it" : ""));
    }

    std::string tensor() const { return fmt::format("tensor '{}'", printable(entries.back().name)); }

    Level level_ = Level::kOutside;
    unsigned field_ = kNone;
    unsigned seen_ = 0;
    int offsets_seen_ = 0;
};

class IndexReader final : public EventReader {
public:
    using EventReader::EventReader;
    std::vector<std::pair<std::string, std::string>> weight_map;
    bool found = false;

private:
    enum class Level { kOutside, kTop, kMap };

    bool on_start_object() override {
        if (level_ == Level::kOutside) {
            level_ = Level::kTop;
            return true;
        }
        if (level_ != Level::kTop) return on_other("an object");
        level_ = Level::kMap;
        return true;
    }

    bool on_key(std::string& name) override {
        if (level_ == Level::kMap) {
            weight_map.emplace_back().first = std::move(name);
        } else if (name != "weight_map") {
            skip_next();
        } else {
            if (found) return refuse("'weight_map' occurs twice");
            found = true;
        }
        return true;
    }

    bool on_string(std::string& file) override {
        if (level_ != Level::kMap) return on_other("a string");
        // A shard lies beside its index; anything else would let a downloaded index name files of this machine.
        if (file.empty() || file.size() > 255 || file == "." || file == ".." ||
            file.find_first_of("/\\") != std::string::npos || has_control_bytes(file))
            return refuse(fmt::format("tensor '{}': shard '{}' is not a plain file name",
                                      printable(weight_map.back().first), printable(file)));
        weight_map.back().second = std::move(file);
        return true;
    }

    bool on_end_object() override {
        level_ = level_ == Level::kMap ? Level::kTop : Level::kOutside;
        return true;
    }

    bool on_other(std::string_view actual) override {
        if (level_ == Level::kOutside) return refuse(fmt::format("the index is {}, expected an object", actual));
        if (level_ == Level::kTop) return refuse(fmt::format("weight_map: expected an object, got {}", actual));
        return refuse(fmt::format("tensor '{}': expected the name of a shard, got {}",
                                  printable(weight_map.back().first), actual));
    }

    Level level_ = Level::kOutside;
};

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view json, std::string_view where) {
    HeaderReader reader(where);
    FR_TRY(reader.run(json));
    return std::move(reader.entries);
}

Result<std::vector<std::pair<std::string, std::string>>> parse_safetensors_index(std::string_view json,
                                                                                 std::string_view where) {
    IndexReader reader(where);
    FR_TRY(reader.run(json));
    if (!reader.found || reader.weight_map.empty())
        return bad_input("{}: 'weight_map' is {}, expected the tensors and their shards", where,
                         reader.found ? "empty" : "missing");
    return std::move(reader.weight_map);
}

}  // namespace frontier
