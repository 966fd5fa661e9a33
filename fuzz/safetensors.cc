// Safetensors from memory: refused with a one-line error, or every view it hands out can be read. The first byte
// chooses how the header's length comes about, so that mutations of the JSON need not get it right.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "formats/safetensors.h"
#include "formats/safetensors_header.h"

namespace {

using namespace frontier;

volatile unsigned sink = 0;

template <typename T>
void check(const Result<T>& result) {
    if (result) return;
    if (result.error().code != ErrorCode::kBadInput) std::abort();
    if (result.error().text.find('\n') != std::string::npos) std::abort();
}

void parse(std::span<const std::byte> bytes) {
    const auto model = SafetensorsModel::parse(bytes, "fuzz.safetensors");
    check(model);
    if (!model) return;
    for (const TensorView& tensor : model->tensors()) {
        if (static_cast<std::int64_t>(tensor.data.size()) != tensor.info.bytes()) std::abort();
        if (tensor.info.rows() * tensor.info.cols() != tensor.info.elements()) std::abort();
        sink = sink + std::to_integer<unsigned>(tensor.data.front()) + std::to_integer<unsigned>(tensor.data.back());
        if (model->find_tensor(tensor.info.name) != &tensor) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0]) {
        case 'F':  // a whole file
            parse(std::as_bytes(std::span(rest)));
            break;
        case 'I':
            check(parse_safetensors_index(rest, "fuzz.json"));
            break;
        default: {                                             // the header up to its last brace, the data behind it
            const std::uint64_t length = rest.rfind('}') + 1;  // 0 without a brace
            std::string file(sizeof length, '\0');
            std::memcpy(file.data(), &length, sizeof length);
            file += rest;
            parse(std::as_bytes(std::span(file)));
        }
    }
    return 0;
}
