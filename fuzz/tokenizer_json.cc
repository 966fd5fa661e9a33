// Any bytes as tokenizer.json: an error or a tokenizer that encodes and decodes without fault, and whose streamed text
// is what decode() says. What follows a line "-----" is the text to encode.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace frontier;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    constexpr std::string_view kBorder = "\n-----\n";
    const std::size_t border = input.find(kBorder);
    const std::string_view json = input.substr(0, border);
    const std::string_view text =
        border == std::string_view::npos ? "Hello, \xC3\xA9 123" : input.substr(border + kBorder.size());
    // The same bytes serve as the configuration, so that its reader is met too.
    auto spec = parse_tokenizer_json(json, size % 2 == 0 ? "" : json, "fuzz");
    if (!spec) return 0;
    auto tokenizer = Tokenizer::create(std::move(*spec));
    if (!tokenizer) return 0;
    const Tokenizer& t = **tokenizer;
    const auto plain = t.encode(text);
    if (!plain) return 0;  // steps of the file grow the text or the work out of proportion
    for (const TokenId id : *plain) FR_CHECK(id >= 0 && id < t.vocab_size());
    const TextSpan spans[] = {{text.substr(0, text.size() / 2), false}, {text.substr(text.size() / 2), true}};
    const auto encoded = t.encode_spans(spans);
    if (!encoded) return 0;
    const std::vector<TokenId>& ids = *encoded;
    StreamDecoder decoder(*tokenizer, true, true);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    streamed += decoder.finish();
    FR_CHECK(streamed == t.decode(ids, true));
    FR_CHECK(valid_utf8_prefix(streamed) == streamed.size());
    return 0;
}
