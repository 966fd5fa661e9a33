// First stage of reading tokenizer.json: its two large members, model.vocab and model.merges, go straight into vectors,
// since as generic JSON values they would cost more time and memory than everything else together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace frontier {

struct TokenizerJson {
    Json rest;  // the document without the members below
    bool has_vocab = false;
    std::vector<std::pair<std::string, std::int64_t>> vocab;
    std::vector<std::string> merges;  // "left right", whichever way the file writes them
};

Result<TokenizerJson> read_tokenizer_json(std::string_view text, std::string_view where);

// tokenizer_config.json without its bulky members that repeat tokenizer.json or belong to the chat template.
Result<Json> read_tokenizer_config(std::string_view text, std::string_view where);

}  // namespace frontier
