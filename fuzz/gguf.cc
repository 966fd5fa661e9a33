// GGUF from memory: refused with a one-line error, or every view it hands out can be read.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "formats/gguf.h"

namespace {

using namespace frontier;

volatile unsigned sink = 0;

void touch(std::span<const std::byte> data) {
    if (!data.empty()) sink = sink + std::to_integer<unsigned>(data.front()) + std::to_integer<unsigned>(data.back());
}
void touch(std::string_view text) {
    touch(std::as_bytes(std::span(text)));
}

template <typename T>
void check(const Result<T>& result) {
    if (result) return;
    if (result.error().code != ErrorCode::kBadInput) std::abort();
    if (result.error().text.find('\n') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = GgufFile::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzz.gguf");
    check(file);
    if (!file) return 0;
    for (const auto& [key, value] : file->metadata()) {
        if (file->find(key) != &value) std::abort();
        check(file->get_int(key));
        check(file->get_number(key));
        check(file->get_bool(key));
        check(file->get_floats(key));
        check(file->get_ints(key));
        if (const auto text = file->get_string(key); text && *text) touch(**text);
        if (const auto texts = file->get_strings(key); texts && *texts)
            for (const std::string_view text : **texts) touch(text);
    }
    for (const TensorView& tensor : file->tensors()) {
        if (static_cast<std::int64_t>(tensor.data.size()) != tensor.info.bytes()) std::abort();
        if (tensor.info.rows() * tensor.info.cols() != tensor.info.elements()) std::abort();
        touch(tensor.data);
        if (file->find_tensor(tensor.info.name) != &tensor) std::abort();
    }
    return 0;
}
