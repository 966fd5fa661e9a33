// The tokenizer part of GGUF metadata ("tokenizer.ggml.*").
#pragma once

#include "base/result.h"
#include "formats/gguf.h"
#include "text/tokenizer_spec.h"

namespace frontier {

bool gguf_has_tokenizer(const GgufFile& file);
Result<TokenizerSpec> tokenizer_spec_from_gguf(const GgufFile& file);

}  // namespace frontier
