// Second stage of reading tokenizer.json: the steps of its normalizer, pre_tokenizer and decoder.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer_spec.h"

namespace frontier {

// `value` is the member of the document, null for none; steps are appended to the spec. A type that is not supported
// is an error that names it and its place.
Status read_normalizer(const Json& value, const std::string& path, TokenizerSpec& spec);
// A ByteLevel step makes the tokenizer a byte-level one.
Status read_pre_tokenizer(const Json& value, const std::string& path, TokenizerSpec& spec);
Status read_decoder(const Json& value, const std::string& path, TokenizerSpec& spec);

// The member, or null.
const Json& json_member(const Json& object, std::string_view name);
// The elements of an array member; anything else is an error.
Result<const Json*> json_array(const Json& object, std::string_view name, const std::string& where);

}  // namespace frontier
