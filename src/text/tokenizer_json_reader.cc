#include "text/tokenizer_json_reader.h"

#include <optional>

namespace frontier {
namespace {

// Json keeps an object's members in file order and searches them one by one, so large objects would cost their size
// squared. Apart from the vocabulary no object of these files has more than some dozens.
constexpr std::size_t kMaxMembers = 1024;

// Receives the parser's events and builds the document.
class Builder {
public:
    // `split_model`: take model.vocab and model.merges apart. `skipped`: members of the root that are dropped.
    Builder(std::string_view where, bool split_model, std::vector<std::string_view> skipped, TokenizerJson& out)
        : where_(where), split_model_(split_model), skipped_(std::move(skipped)), out_(out) {}

    const std::optional<Error>& error() const { return error_; }

    bool null() { return value(nullptr, "null"); }
    bool boolean(bool v) { return value(v, "a boolean"); }
    bool number_integer(std::int64_t v) {
        if (mode_ == Mode::kVocab) return vocab_id(v);
        return value(v, "a number");
    }
    bool number_unsigned(std::uint64_t v) {
        if (mode_ == Mode::kVocab) return vocab_id(v > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(v));
        return value(v, "a number");
    }
    bool number_float(double v, const std::string&) { return value(v, "a number"); }
    bool string(std::string& v) {
        if (mode_ == Mode::kMerges) return merge_part(v);
        return value(v, "a string");
    }
    bool binary(std::vector<std::uint8_t>&) { return stop("binary data cannot be in JSON"); }

    bool start_object(std::size_t) { return open(Json::object(), "an object"); }
    bool start_array(std::size_t) { return open(Json::array(), "an array"); }
    bool end_object() { return close(); }
    bool end_array() {
        if (mode_ == Mode::kMerges && depth_ == merges_depth_ + 1) {
            if (merge_parts_ != 2)
                return stop(fmt::format("field 'model.merges': entry {}: expected two pieces, got {}",
                                        out_.merges.size(), merge_parts_));
            out_.merges.push_back(std::move(merge_));
        }
        return close();
    }

    bool key(std::string& name) {
        if (mode_ == Mode::kVocab) {
            out_.vocab.emplace_back(std::move(name), -1);
            return true;
        }
        if (mode_ == Mode::kSkip) return true;
        if (stack_.back()->size() >= kMaxMembers)
            return stop(fmt::format("an object has more than {} members", kMaxMembers));
        if (stack_.size() == 1) root_key_ = name;
        key_ = std::move(name);
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) {
        // The library's text starts with an identifier in brackets, which means nothing to the user.
        std::string_view message = e.what();
        if (const auto end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
        return stop(fmt::format("invalid JSON: {}", message));
    }

private:
    enum class Mode : std::uint8_t { kDocument, kVocab, kMerges, kSkip };

    bool stop(std::string text) {
        if (!error_) error_ = Error{ErrorCode::kBadInput, fmt::format("{}: {}", where_, text)};
        return false;
    }

    bool value(Json v, std::string_view type) {
        switch (mode_) {
            case Mode::kSkip:
                return true;
            case Mode::kVocab:
                return stop(fmt::format("field 'model.vocab': '{}': expected an integer id, got {}",
                                        out_.vocab.back().first, type));
            case Mode::kMerges:
                return stop(fmt::format("field 'model.merges': entry {}: expected a string or a pair, got {}",
                                        out_.merges.size(), type));
            case Mode::kDocument:
                break;
        }
        if (stack_.empty()) {
            out_.rest = std::move(v);
            return true;
        }
        if (stack_.size() == 1 && skipped()) return true;
        place(std::move(v));
        return true;
    }

    bool vocab_id(std::int64_t id) {
        out_.vocab.back().second = id;
        return true;
    }

    bool merge_part(std::string& part) {
        if (depth_ == merges_depth_) {
            out_.merges.push_back(std::move(part));
            return true;
        }
        if (merge_parts_ == 0)
            merge_ = std::move(part);
        else
            merge_.append(" ").append(part);
        ++merge_parts_;
        return true;
    }

    bool skipped() const {
        for (const std::string_view name : skipped_)
            if (root_key_ == name) return true;
        return false;
    }

    Json* place(Json v) {
        Json& parent = *stack_.back();
        if (parent.is_array()) {
            parent.push_back(std::move(v));
            return &parent.back();
        }
        Json& member = parent[key_];
        member = std::move(v);
        return &member;
    }

    bool open(Json container, std::string_view type) {
        if (++depth_ > kMaxJsonDepth) return stop(fmt::format("JSON is nested deeper than {} levels", kMaxJsonDepth));
        if (mode_ == Mode::kMerges && depth_ == merges_depth_ + 1 && container.is_array()) {
            merge_.clear();
            merge_parts_ = 0;
            return true;
        }
        if (mode_ == Mode::kSkip) return true;
        if (mode_ != Mode::kDocument) return value(nullptr, type);
        const bool in_model = split_model_ && stack_.size() == 2 && root_key_ == "model" && stack_.back()->is_object();
        if (in_model && key_ == "vocab" && container.is_object()) {
            if (out_.has_vocab) return stop("field 'model.vocab' is there twice");
            out_.has_vocab = true;
            return enter(Mode::kVocab);
        }
        if (in_model && key_ == "merges" && container.is_array()) {
            merges_depth_ = depth_;
            return enter(Mode::kMerges);
        }
        if (stack_.size() == 1 && skipped()) return enter(Mode::kSkip);
        if (stack_.empty()) {
            out_.rest = std::move(container);
            stack_.push_back(&out_.rest);
        } else {
            // Earlier siblings may move when the parent grows, but those are closed.
            stack_.push_back(place(std::move(container)));
        }
        return true;
    }

    bool enter(Mode mode) {
        mode_ = mode;
        mode_depth_ = depth_;
        return true;
    }

    bool close() {
        const int depth = depth_--;
        if (mode_ != Mode::kDocument) {
            if (depth == mode_depth_) mode_ = Mode::kDocument;
            return true;
        }
        stack_.pop_back();
        return true;
    }

    std::string_view where_;
    bool split_model_;
    std::vector<std::string_view> skipped_;
    TokenizerJson& out_;
    std::optional<Error> error_;
    std::vector<Json*> stack_;  // open containers of the document
    std::string key_;
    std::string root_key_;
    Mode mode_ = Mode::kDocument;
    int depth_ = 0;
    int mode_depth_ = 0;
    int merges_depth_ = 0;
    std::string merge_;
    int merge_parts_ = 0;
};

Status parse_into(std::string_view text, Builder& builder) {
    try {
        // The result repeats what the builder knows.
        (void)Json::sax_parse(text.begin(), text.end(), &builder);
    } catch (const nlohmann::json::exception& e) {
        return bad_input("JSON: {}", e.what());
    }
    if (builder.error()) return std::unexpected(*builder.error());
    return {};
}

}  // namespace

Result<TokenizerJson> read_tokenizer_json(std::string_view text, std::string_view where) {
    TokenizerJson out;
    Builder builder(where, true, {"truncation", "padding"}, out);
    FR_TRY(parse_into(text, builder));
    if (!out.rest.is_object()) return bad_input("{}: expected a JSON object, got {}", where, out.rest.type_name());
    return out;
}

Result<Json> read_tokenizer_config(std::string_view text, std::string_view where) {
    TokenizerJson out;
    Builder builder(where, false, {"added_tokens_decoder", "chat_template", "additional_special_tokens"}, out);
    FR_TRY(parse_into(text, builder));
    if (!out.rest.is_object()) return bad_input("{}: expected a JSON object, got {}", where, out.rest.type_name());
    return std::move(out.rest);
}

}  // namespace frontier
