#include "text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace frontier {
namespace {

// Far more than any vocabulary has; keeps ids and table sizes well inside 32 bits.
constexpr std::size_t kMaxPieces = std::size_t{1} << 24;
// Added tokens are sought at every place of the text; real ones have at most about a hundred bytes.
constexpr std::size_t kMaxAddedTokenBytes = 1024;

// Tokens that end a turn or an answer in the models that use them, besides the one the file calls eos.
constexpr std::string_view kEndNames[] = {"<|eot_id|>",    "<|im_end|>",      "<|end|>",    "<end_of_turn>",
                                          "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "<EOT>"};

bool hidden(TokenType type) {
    return type == TokenType::kControl || type == TokenType::kUnknown;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
    auto tokenizer = std::make_shared<TokenizerImpl>(std::move(spec));
    FR_TRY(tokenizer->init());
    return tokenizer;
}

TokenType TokenizerImpl::type(TokenId id) const {
    return spec_.types.empty() ? TokenType::kNormal : spec_.types[static_cast<std::size_t>(id)];
}

Status TokenizerImpl::check_spec() const {
    const std::size_t count = spec_.pieces.size();
    const std::string& where = spec_.where;
    if (count == 0) return bad_input("{}: the vocabulary is empty", where);
    if (count > kMaxPieces)
        return bad_input("{}: vocabulary of {} pieces, at most {} are allowed", where, count, kMaxPieces);
    if (!spec_.types.empty() && spec_.types.size() != count)
        return bad_input("{}: token types: expected {} entries, one per piece, got {}", where, count,
                         spec_.types.size());
    if (spec_.kind == TokenizerKind::kSentencePiece) {
        if (spec_.scores.size() != count)
            return bad_input("{}: scores: expected {} entries, one per piece, got {}", where, count,
                             spec_.scores.size());
        for (std::size_t i = 0; i < count; ++i)
            if (!std::isfinite(spec_.scores[i]))
                return bad_input("{}: scores: entry {} is not a finite number", where, i);
    }
    const auto check_id = [&](std::optional<TokenId> id, std::string_view what) -> Status {
        if (id && (*id < 0 || static_cast<std::size_t>(*id) >= count))
            return bad_input("{}: {} token id {} is outside the vocabulary of {} pieces", where, what, *id, count);
        return {};
    };
    FR_TRY(check_id(spec_.bos, "bos"));
    FR_TRY(check_id(spec_.eos, "eos"));
    FR_TRY(check_id(spec_.unk, "unk"));
    FR_TRY(check_id(spec_.pad, "pad"));
    for (const TokenId id : spec_.end_of_generation) FR_TRY(check_id(id, "end of generation"));
    for (const AddedToken& token : spec_.added_tokens) FR_TRY(check_id(token.id, "added"));
    return {};
}

// What the kind implies where the file gave no steps of its own.
void TokenizerImpl::fill_defaults() {
    using Normal = NormalizerStep::Op;
    if (spec_.kind == TokenizerKind::kSentencePiece && spec_.normalizer.empty()) {
        if (spec_.remove_extra_whitespaces) spec_.normalizer.push_back({.op = Normal::kCollapseSpaces});
        if (spec_.add_space_prefix) spec_.normalizer.push_back({.op = Normal::kPrepend, .content = " "});
        spec_.normalizer.push_back({.op = Normal::kReplace, .pattern = " ", .content = std::string(kSpaceMark)});
        spec_.strip_first_space = spec_.add_space_prefix;
    }
    if (spec_.decode_steps.empty()) {
        if (spec_.kind == TokenizerKind::kByteLevelBpe) {
            spec_.decode_steps.push_back({.op = DecodeStep::Op::kByteLevel});
        } else if (spec_.kind == TokenizerKind::kSentencePiece) {
            spec_.decode_steps.push_back(
                {.op = DecodeStep::Op::kReplace, .pattern = std::string(kSpaceMark), .content = " "});
            spec_.decode_steps.push_back({.op = DecodeStep::Op::kByteFallback});
        }
    }
    // Defaults that a name brings count only where the file has the token.
    if (!spec_.bos) spec_.add_bos = false;
    if (!spec_.eos) spec_.add_eos = false;
    if (spec_.added_tokens.empty() && !spec_.types.empty()) {
        for (std::size_t i = 0; i < spec_.pieces.size(); ++i) {
            const TokenType t = spec_.types[i];
            if (hidden(t) || t == TokenType::kUserDefined)
                spec_.added_tokens.push_back({.id = static_cast<TokenId>(i), .special = hidden(t)});
        }
    }
    for (const std::string_view name : kEndNames) {
        const TokenId id = all_.find(name);
        if (id >= 0 && (hidden(type(id)) || type(id) == TokenType::kUserDefined)) spec_.end_of_generation.push_back(id);
    }
    if (spec_.eos) spec_.end_of_generation.push_back(*spec_.eos);
    std::sort(spec_.end_of_generation.begin(), spec_.end_of_generation.end());
    spec_.end_of_generation.erase(std::unique(spec_.end_of_generation.begin(), spec_.end_of_generation.end()),
                                  spec_.end_of_generation.end());
}

Status TokenizerImpl::init() {
    FR_TRY(check_spec());
    const std::size_t count = spec_.pieces.size();
    all_.reset(&spec_.pieces, count);
    ordinary_.reset(&spec_.pieces, count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto id = static_cast<TokenId>(i);
        if (spec_.pieces[i].empty()) continue;
        all_.insert(id);
        if (!hidden(type(id)) && type(id) != TokenType::kByte) ordinary_.insert(id);
    }
    fill_defaults();
    FR_ASSIGN(normalizer_, Normalizer::create(spec_.normalizer, spec_.where));
    std::vector<SplitStep> steps = spec_.split_steps;
    if (steps.empty() && !spec_.pre_tokenizer.empty()) {
        steps = gguf_split_steps(spec_.pre_tokenizer);
        if (steps.empty()) return bad_input("{}: pre-tokenizer '{}' is not known", spec_.where, spec_.pre_tokenizer);
    }
    FR_ASSIGN(pre_tokenizer_, PreTokenizer::create(steps, spec_.where));
    for (const AddedToken& token : spec_.added_tokens) {
        const std::string& piece = spec_.pieces[static_cast<std::size_t>(token.id)];
        if (piece.size() > kMaxAddedTokenBytes)
            return bad_input("{}: added token {} has {} bytes, at most {} are allowed", spec_.where, token.id,
                             piece.size(), kMaxAddedTokenBytes);
        // Control tokens are sought in the text as it came, so that what is trusted stays known.
        if (in_normalized_text(token)) {
            FR_ASSIGN(const std::string content, normalized_content(token));
            normalized_added_.add(content, token);
        } else {
            added_.add(piece, token);
        }
    }
    byte_ids_ = byte_tokens(spec_, all_);
    if (spec_.kind == TokenizerKind::kSentencePiece) {
        model_ = make_sentencepiece_model(spec_, ordinary_);
    } else {
        FR_ASSIGN(model_, make_bpe_model(spec_, ordinary_, all_));
    }
    return build_bytes();
}

bool TokenizerImpl::in_normalized_text(const AddedToken& token) const {
    return token.normalized && !token.special && !normalizer_.empty();
}

Result<std::string> TokenizerImpl::normalized_content(const AddedToken& token) const {
    const std::string& piece = spec_.pieces[static_cast<std::size_t>(token.id)];
    if (valid_utf8_prefix(piece) != piece.size()) return piece;
    return normalizer_.apply(piece, true);
}

Status TokenizerImpl::build_bytes() {
    std::vector<bool> raw(spec_.pieces.size());  // added tokens stand for themselves, as the text they are found as
    std::unordered_map<TokenId, std::string> normalized;
    for (const AddedToken& token : spec_.added_tokens) {
        raw[static_cast<std::size_t>(token.id)] = true;
        if (!in_normalized_text(token)) continue;
        FR_ASSIGN(normalized[token.id], normalized_content(token));
    }
    bytes_.reserve(spec_.pieces.size());
    for (std::size_t id = 0; id < spec_.pieces.size(); ++id) {
        std::string text = spec_.pieces[id];
        bool found_normalized = false;
        if (raw[id]) {
            const auto found = normalized.find(static_cast<TokenId>(id));
            found_normalized = found != normalized.end();
            if (found_normalized) text = found->second;
        }
        if (!raw[id] || found_normalized) {
            const std::size_t max_bytes = max_grown_bytes(text.size());
            for (std::size_t i = 0; i < spec_.decode_steps.size(); ++i) {
                const DecodeStep& step = spec_.decode_steps[i];
                if (step.op == DecodeStep::Op::kReplace) {
                    if (!replace_all(text, step.pattern, step.content, max_bytes))
                        return bad_input("{}: decoder step {}: expected at most {} bytes for token {}, got more",
                                         spec_.where, i + 1, max_bytes, id);
                } else if (raw[id]) {
                    continue;
                } else if (step.op == DecodeStep::Op::kByteLevel) {
                    std::string decoded;
                    if (append_from_byte_level(decoded, text)) text = std::move(decoded);
                } else if (const int byte = byte_fallback_value(text); byte >= 0) {
                    text.assign(1, static_cast<char>(byte));
                }
            }
        }
        bytes_.push_back(std::move(text));
    }
    return {};
}

Result<std::vector<TokenId>> TokenizerImpl::encode(std::string_view text, const EncodeOptions& options) const {
    Work work;
    if (options.add_special && spec_.add_bos) work.ids.push_back(*spec_.bos);
    const TrustedRange whole{0, text.size()};
    FR_TRY(encode_marked(text, std::span(&whole, options.parse_special ? 1 : 0), work));
    if (options.add_special && spec_.add_eos) work.ids.push_back(*spec_.eos);
    return std::move(work.ids);
}

Result<std::vector<TokenId>> TokenizerImpl::encode_spans(std::span<const TextSpan> spans) const {
    std::string text;
    std::vector<TrustedRange> trusted;
    for (const TextSpan& span : spans) {
        if (span.text.empty()) continue;
        const std::size_t begin = text.size();
        text += span.text;
        if (!span.trusted) continue;
        if (!trusted.empty() && trusted.back().end == begin)
            trusted.back().end = text.size();
        else
            trusted.push_back({begin, text.size()});
    }
    Work work;
    FR_TRY(encode_marked(text, trusted, work));
    return std::move(work.ids);
}

Status TokenizerImpl::encode_marked(std::string_view text, std::span<const TrustedRange> trusted, Work& work) const {
    std::size_t at = 0;
    while (at < text.size()) {
        const auto match = added_.find(text, at, trusted);
        const std::size_t end = match ? match->begin : text.size();
        if (end > at) FR_TRY(encode_fragment(text.substr(at, end - at), at == 0, work));
        if (!match) break;
        work.ids.push_back(match->id);
        at = match->end;
    }
    return {};
}

Status TokenizerImpl::encode_fragment(std::string_view text, bool first_in_text, Work& work) const {
    bool first = true;
    while (!text.empty()) {
        const std::size_t valid = valid_utf8_prefix(text);
        if (valid > 0) FR_TRY(encode_valid(text.substr(0, valid), first, first_in_text && first, work));
        text.remove_prefix(valid);
        std::size_t invalid = 0;
        while (invalid < text.size()) {
            const Utf8Char c = next_utf8(text.substr(invalid));
            if (c.valid) break;
            invalid += static_cast<std::size_t>(c.size_bytes);
        }
        encode_invalid(text.substr(0, invalid), work);
        text.remove_prefix(invalid);
        first = false;
    }
    return {};
}

void TokenizerImpl::encode_invalid(std::string_view bytes, Work& work) const {
    while (!bytes.empty()) {
        const auto size = static_cast<std::size_t>(next_utf8(bytes).size_bytes);
        const std::string_view part = bytes.substr(0, size);
        bytes.remove_prefix(size);
        const auto known = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; };
        if (std::all_of(part.begin(), part.end(), known)) {
            for (const char c : part) work.ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
        } else {
            encode_word(kReplacementChar, work);
        }
    }
}

Status TokenizerImpl::encode_valid(std::string_view text, bool first_in_fragment, bool first_in_text,
                                   Work& work) const {
    std::string normalized;
    if (!normalizer_.empty()) {
        FR_ASSIGN(normalized, normalizer_.apply(text, first_in_fragment));
        text = normalized;
    }
    std::span<const TrustedRange> none;
    std::size_t at = 0;
    while (at < text.size()) {
        const auto match = normalized_added_.find(text, at, none);
        const std::size_t end = match ? match->begin : text.size();
        if (end > at) FR_TRY(encode_words(text.substr(at, end - at), first_in_text && at == 0, work));
        if (!match) break;
        work.ids.push_back(match->id);
        at = match->end;
    }
    return {};
}

Status TokenizerImpl::encode_words(std::string_view text, bool first_in_text, Work& work) const {
    Words& words = work.words;
    FR_TRY(pre_tokenizer_.split(text, first_in_text, words));
    std::string bytes;
    for (const Words::Range range : words.ranges) {
        std::string_view word = words.word(range);
        if (words.byte_level) {
            bytes.clear();
            if (append_from_byte_level(bytes, word)) word = bytes;
        }
        encode_word(word, work);
    }
    return {};
}

void TokenizerImpl::encode_word(std::string_view word, Work& work) const {
    for (; word.size() > kMaxWordBytes; word.remove_prefix(kMaxWordBytes))
        model_->encode(word.substr(0, kMaxWordBytes), work.merge, work.ids);
    model_->encode(word, work.merge, work.ids);
}

std::string TokenizerImpl::token_bytes(TokenId id, bool with_special) const {
    if (id < 0 || id >= vocab_size() || (!with_special && hidden(type(id)))) return {};
    return bytes_[static_cast<std::size_t>(id)];
}

std::string TokenizerImpl::decode(std::span<const TokenId> ids, bool with_special) const {
    std::string text;
    for (const TokenId id : ids) {
        if (id < 0 || id >= vocab_size() || (!with_special && hidden(type(id)))) continue;
        text += bytes_[static_cast<std::size_t>(id)];
    }
    if (spec_.strip_first_space && text.starts_with(' ')) text.erase(0, 1);
    if (valid_utf8_prefix(text) == text.size()) return text;
    return take_valid_utf8(text, true);
}

std::optional<TokenId> TokenizerImpl::find(std::string_view piece) const {
    const TokenId id = all_.find(piece);
    return id < 0 ? std::nullopt : std::optional(id);
}

bool TokenizerImpl::is_control(TokenId id) const {
    return id >= 0 && id < vocab_size() && hidden(type(id));
}

bool TokenizerImpl::ends_generation(TokenId id) const {
    return std::binary_search(spec_.end_of_generation.begin(), spec_.end_of_generation.end(), id);
}

}  // namespace frontier
