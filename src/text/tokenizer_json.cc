// tokenizer.json of Hugging Face's tokenizers library, https://github.com/huggingface/tokenizers.
#include <algorithm>
#include <utility>

#include "text/piece_index.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json_reader.h"
#include "text/tokenizer_json_steps.h"
#include "text/unicode.h"

namespace frontier {
namespace {

// A tokenizer being read.
struct Reading {
    TokenizerSpec spec;
    PieceIndex index;

    // The id of a token that another part of the file names.
    Result<TokenId> named(std::string_view content, std::string_view where, std::string_view field) const {
        const TokenId id = index.find(content);
        if (id < 0) return bad_input("{}: field '{}': '{}' is not in the vocabulary", where, field, content);
        return id;
    }
};

struct JsonAdded {
    AddedToken token;
    std::string content;
};

Result<std::vector<JsonAdded>> read_added_tokens(const Json& document, const std::string& where) {
    std::vector<JsonAdded> result;
    const Json& list = json_member(document, "added_tokens");
    if (list.is_null()) return result;
    if (!list.is_array())
        return bad_input("{}: field 'added_tokens': expected an array, got {}", where, list.type_name());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Json& entry = list[i];
        const std::string place = fmt::format("{}: added_tokens[{}]", where, i);
        JsonAdded added;
        FR_ASSIGN(const std::int64_t id, json_int(entry, "id", place));
        if (id < 0 || id > INT32_MAX) return bad_input("{}: field 'id': {} is outside 0..{}", place, id, INT32_MAX);
        added.token.id = static_cast<TokenId>(id);
        FR_ASSIGN(added.content, json_string(entry, "content", place));
        FR_ASSIGN(added.token.special, json_bool_or(entry, "special", false, place));
        FR_ASSIGN(added.token.lstrip, json_bool_or(entry, "lstrip", false, place));
        FR_ASSIGN(added.token.rstrip, json_bool_or(entry, "rstrip", false, place));
        FR_ASSIGN(added.token.single_word, json_bool_or(entry, "single_word", false, place));
        FR_ASSIGN(added.token.normalized, json_bool_or(entry, "normalized", !added.token.special, place));
        result.push_back(std::move(added));
    }
    return result;
}

// Puts every piece at its id: each id from 0 on exactly once, each piece once.
Status place_pieces(TokenizerJson& json, std::vector<JsonAdded>& added, Reading& reading) {
    const std::string& where = reading.spec.where;
    std::vector<std::string>& pieces = reading.spec.pieces;
    const std::size_t limit = json.vocab.size() + added.size();
    std::vector<bool> taken(limit);
    pieces.resize(limit);
    std::size_t count = 0;
    for (auto& [piece, id] : json.vocab) {
        if (id < 0 || static_cast<std::size_t>(id) >= limit)
            return bad_input("{}: field 'model.vocab': '{}' has id {}, expected 0..{} as there are {} tokens", where,
                             piece, id, limit - 1, limit);
        const auto at = static_cast<std::size_t>(id);
        if (taken[at])
            return bad_input("{}: field 'model.vocab': id {} belongs to '{}' and '{}'", where, id, pieces[at], piece);
        taken[at] = true;
        pieces[at] = std::move(piece);
        count = std::max(count, at + 1);
    }
    for (std::size_t i = 0; i < added.size(); ++i) {
        const auto at = static_cast<std::size_t>(added[i].token.id);
        if (at >= limit)
            return bad_input("{}: added_tokens[{}]: id {}, expected 0..{} as there are {} tokens", where, i, at,
                             limit - 1, limit);
        if (taken[at] && pieces[at] != added[i].content)
            return bad_input("{}: added_tokens[{}]: id {} belongs to '{}' and '{}'", where, i, at, pieces[at],
                             added[i].content);
        taken[at] = true;
        pieces[at] = added[i].content;
        count = std::max(count, at + 1);
    }
    pieces.resize(count);
    for (std::size_t i = 0; i < count; ++i)
        if (!taken[i]) return bad_input("{}: no token has id {}, although ids go up to {}", where, i, count - 1);
    reading.index.reset(&pieces, count);
    for (std::size_t i = 0; i < count; ++i)
        if (!reading.index.insert(static_cast<TokenId>(i)))
            return bad_input("{}: the token '{}' has the ids {} and {}", where, pieces[i],
                             reading.index.find(pieces[i]), i);
    return {};
}

Status read_model(TokenizerJson& json, Reading& reading) {
    TokenizerSpec& spec = reading.spec;
    const Json& model = json_member(json.rest, "model");
    if (!model.is_object())
        return bad_input("{}: field 'model': expected an object, got {}", spec.where, model.type_name());
    const std::string where = spec.where + ": model";
    // Files before 2020 do not name the type; only BPE has merges.
    FR_ASSIGN(const std::string type, json_string_or(model, "type", json.merges.empty() ? "" : "BPE", where));
    if (type != "BPE") return bad_input("{}: type '{}' is not supported, only BPE is", where, type);
    if (!json.has_vocab) return bad_input("{}: field 'vocab' is missing", where);
    for (const std::string_view field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        FR_ASSIGN(const std::string affix, json_string_or(model, field, "", where));
        if (!affix.empty()) return bad_input("{}: field '{}': '{}' is not supported", where, field, affix);
    }
    FR_ASSIGN(std::vector<JsonAdded> added, read_added_tokens(json.rest, spec.where));
    FR_TRY(place_pieces(json, added, reading));
    spec.merges = std::move(json.merges);
    FR_ASSIGN(spec.byte_fallback, json_bool_or(model, "byte_fallback", false, where));
    FR_ASSIGN(spec.fuse_unknown, json_bool_or(model, "fuse_unk", false, where));
    FR_ASSIGN(spec.ignore_merges, json_bool_or(model, "ignore_merges", false, where));
    FR_ASSIGN(const std::string unk, json_string_or(model, "unk_token", "", where));
    if (!unk.empty()) {
        FR_ASSIGN(spec.unk, reading.named(unk, where, "unk_token"));
    }
    spec.types.assign(spec.pieces.size(), TokenType::kNormal);
    if (spec.byte_fallback)
        for (std::size_t i = 0; i < spec.pieces.size(); ++i)
            if (byte_fallback_value(spec.pieces[i]) >= 0) spec.types[i] = TokenType::kByte;
    for (const JsonAdded& entry : added) {
        const auto at = static_cast<std::size_t>(entry.token.id);
        spec.types[at] = !entry.token.special         ? TokenType::kUserDefined
                         : spec.unk == entry.token.id ? TokenType::kUnknown
                                                      : TokenType::kControl;
        spec.added_tokens.push_back(entry.token);
    }
    return {};
}

// The one token that TemplateProcessing puts before, or after, the text.
struct Frame {
    std::optional<TokenId> before, after;
    bool found = false;
};

Status read_template(const Json& value, const std::string& where, const Reading& reading, Frame& frame) {
    FR_ASSIGN(const Json* single, json_array(value, "single", where));
    frame.found = true;
    bool after = false;
    for (std::size_t i = 0; i < single->size(); ++i) {
        const Json& item = (*single)[i];
        if (!json_member(item, "Sequence").is_null()) {
            after = true;
            continue;
        }
        const std::string place = fmt::format("{}.single[{}]", where, i);
        const Json& special = json_member(item, "SpecialToken");
        if (!special.is_object()) return bad_input("{}: expected a Sequence or a SpecialToken", place);
        FR_ASSIGN(const std::string name, json_string(special, "id", place));
        FR_ASSIGN(const TokenId id, reading.named(name, place, "id"));
        std::optional<TokenId>& slot = after ? frame.after : frame.before;
        if (slot) return bad_input("{}: more than one special token before or after the text is not supported", place);
        slot = id;
    }
    return {};
}

Status read_post_processor(const Json& value, const std::string& where, const Reading& reading, Frame& frame) {
    if (value.is_null()) return {};
    FR_ASSIGN(const std::string type, json_string(value, "type", where));
    if (type == "ByteLevel") return {};  // only moves offsets
    if (type == "TemplateProcessing") return read_template(value, where, reading, frame);
    if (type != "Sequence") return bad_input("{}: post_processor type '{}' is not supported", where, type);
    FR_ASSIGN(const Json* list, json_array(value, "processors", where));
    for (std::size_t i = 0; i < list->size(); ++i)
        FR_TRY(read_post_processor((*list)[i], fmt::format("{}.processors[{}]", where, i), reading, frame));
    return {};
}

// A token of tokenizer_config.json: its text, or an object with "content", or null.
Result<std::optional<TokenId>> config_token(const Json& config, std::string_view field, const std::string& where,
                                            const Reading& reading) {
    const Json& value = json_member(config, field);
    if (value.is_null()) return std::nullopt;
    std::string content;
    if (value.is_object()) {
        FR_ASSIGN(content, json_string(value, "content", fmt::format("{}: {}", where, field)));
    } else {
        FR_ASSIGN(content, json_string(config, field, where));
    }
    if (content.empty()) return std::nullopt;
    FR_ASSIGN(const TokenId id, reading.named(content, where, field));
    return id;
}

// Who adds bos and eos: TemplateProcessing where there is one, else the switches of the configuration. The Llama
// classes of the reference rebuild the template from the switches, so there these win.
Status read_specials(const Json& document, const Json& config, const std::string& config_where, Reading& reading) {
    TokenizerSpec& spec = reading.spec;
    Frame frame;
    FR_TRY(
        read_post_processor(json_member(document, "post_processor"), spec.where + ": post_processor", reading, frame));
    if (!config.is_null()) {
        FR_ASSIGN(spec.bos, config_token(config, "bos_token", config_where, reading));
        FR_ASSIGN(spec.eos, config_token(config, "eos_token", config_where, reading));
        FR_ASSIGN(spec.pad, config_token(config, "pad_token", config_where, reading));
    }
    if (frame.before) {
        spec.bos = frame.before;
        spec.add_bos = true;
    }
    if (frame.after) {
        spec.eos = spec.eos ? spec.eos : frame.after;
        spec.add_eos = spec.eos == frame.after;
        if (!spec.add_eos)
            return bad_input("{}: post_processor: the token after the text is {}, expected eos ({})", spec.where,
                             *frame.after, *spec.eos);
    }
    if (config.is_null()) return {};
    FR_ASSIGN(const std::string tokenizer_class, json_string_or(config, "tokenizer_class", "", config_where));
    const bool switches_win = !frame.found || tokenizer_class.starts_with("Llama") ||
                              tokenizer_class.starts_with("CodeLlama") || tokenizer_class.starts_with("Gemma");
    FR_ASSIGN(const bool add_bos, json_bool_or(config, "add_bos_token", spec.add_bos, config_where));
    FR_ASSIGN(const bool add_eos, json_bool_or(config, "add_eos_token", spec.add_eos, config_where));
    if (switches_win) {
        spec.add_bos = add_bos && spec.bos.has_value();
        spec.add_eos = add_eos && spec.eos.has_value();
    }
    return {};
}

}  // namespace

Result<TokenizerSpec> parse_tokenizer_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                           std::string_view where) {
    Reading reading;
    TokenizerSpec& spec = reading.spec;
    spec.where = std::string(where);
    spec.kind = TokenizerKind::kMergeBpe;
    FR_ASSIGN(TokenizerJson json, read_tokenizer_json(tokenizer_json, where));
    FR_TRY(read_model(json, reading));
    FR_TRY(read_normalizer(json_member(json.rest, "normalizer"), "normalizer", spec));
    FR_TRY(read_pre_tokenizer(json_member(json.rest, "pre_tokenizer"), "pre_tokenizer", spec));
    FR_TRY(read_decoder(json_member(json.rest, "decoder"), "decoder", spec));
    // The configuration lies beside the tokenizer; its errors should name it.
    const std::size_t slash = where.rfind('/');
    const std::string config_where =
        std::string(slash == std::string_view::npos ? "" : where.substr(0, slash + 1)) + "tokenizer_config.json";
    Json config;
    if (!tokenizer_config_json.empty()) {
        FR_ASSIGN(config, read_tokenizer_config(tokenizer_config_json, config_where));
    }
    FR_TRY(read_specials(json.rest, config, config_where, reading));
    return std::move(spec);
}

}  // namespace frontier
