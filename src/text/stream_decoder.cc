#include "text/tokenizer.h"
#include "text/unicode.h"

namespace frontier {

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool with_special, bool at_start)
    : tokenizer_(std::move(tokenizer)),
      with_special_(with_special),
      strip_space_(at_start && tokenizer_->spec().strip_first_space) {}

std::string StreamDecoder::push(TokenId id) {
    const std::string bytes = tokenizer_->token_bytes(id, with_special_);
    if (bytes.empty()) return {};
    const bool strip = strip_space_ && bytes[0] == ' ';
    strip_space_ = false;
    pending_.append(bytes, strip ? 1 : 0);
    return take_valid_utf8(pending_, false);
}

std::string StreamDecoder::finish() {
    return take_valid_utf8(pending_, true);
}

}  // namespace frontier
