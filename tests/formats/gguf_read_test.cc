#include <bit>
#include <cmath>
#include <limits>

#include "formats/gguf.h"
#include "raw_files.h"

namespace frontier {
namespace {

using ::testing::ElementsAre;

Result<GgufFile> parse(const std::string& bytes) {
    return GgufFile::parse(std::as_bytes(std::span(bytes)), "x.gguf");
}

// The refusal of a file made of these parts.
#define EXPECT_GGUF_REFUSED(raw, part)                     \
    do {                                                   \
        const std::string raw_bytes_ = (raw).bytes();      \
        EXPECT_REFUSED(parse(raw_bytes_), "x.gguf", part); \
    } while (false)

TEST(GgufRead, BundledModelAgreesWithItsSources) {
    const auto file = GgufFile::open(bundled("tale-1m-f16.gguf"));
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(file->version(), 3U);
    EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
    ASSERT_EQ(file->tensors().size(), 29U);
    const TensorView* embedding = file->find_tensor("token_embd.weight");
    ASSERT_NE(embedding, nullptr);
    const auto dim = file->get_int("llama.embedding_length").value();
    const auto tokens = file->get_strings("tokenizer.ggml.tokens").value();
    ASSERT_TRUE(dim && tokens);
    EXPECT_THAT(embedding->info.shape, ElementsAre(static_cast<std::int64_t>(tokens->size()), *dim));
    EXPECT_EQ(embedding->data.size(), tokens->size() * static_cast<std::size_t>(*dim) * 2);
    EXPECT_EQ(file->find_tensor("no.such"), nullptr);
    EXPECT_EQ(file->find("no.such"), nullptr);
    // Releasing pages must not change what they hold.
    const std::byte first = embedding->data[0];
    for (std::size_t i = 0; i < file->tensors().size(); ++i) file->release(i);
    EXPECT_EQ(embedding->data[0], first);
}

TEST(GgufRead, OutlivesCopiesAndMoves) {
    std::optional<GgufFile> copy;
    {
        auto file = GgufFile::open(bundled("tale-1m-f16.gguf"));
        ASSERT_TRUE(file);
        copy = *file;
    }
    const GgufFile moved = std::move(*copy);
    copy.reset();
    EXPECT_EQ(moved.get_string("general.architecture").value(), "llama");
    std::size_t sum = 0;
    for (const TensorView& tensor : moved.tensors()) sum += static_cast<std::size_t>(tensor.data.back());
    EXPECT_GT(sum, 0U);
}

TEST(GgufRead, EveryScalarTypeConverts) {
    RawGguf raw;
    raw.entries = {entry_of<std::uint8_t>("u8", 0, 200),
                   entry_of<std::int8_t>("i8", 1, -100),
                   entry_of<std::uint16_t>("u16", 2, 60000),
                   entry_of<std::int16_t>("i16", 3, -30000),
                   entry_of<std::uint32_t>("u32", 4, 4000000000U),
                   entry_of<std::int32_t>("i32", 5, -2000000000),
                   entry_of<float>("f32", 6, 0.5F),
                   entry_of<std::uint8_t>("yes", 7, 1),
                   entry_of<std::uint8_t>("no", 7, 0),
                   text_entry("text", std::string("a\0b", 3)),
                   entry_of<std::uint64_t>("u64", 10, std::numeric_limits<std::int64_t>::max()),
                   entry_of<std::uint64_t>("u64_big", 10, std::uint64_t{1} << 63),
                   entry_of<std::int64_t>("i64", 11, std::numeric_limits<std::int64_t>::min()),
                   entry_of<double>("f64", 12, 0.1),
                   entry_of<float>("nan", 6, std::nanf("")),
                   entry_of<double>("inf", 12, -INFINITY)};
    const std::string bytes = raw.bytes();
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(file->get_int("u8").value(), 200);
    EXPECT_EQ(file->get_int("i8").value(), -100);
    EXPECT_EQ(file->get_int("u16").value(), 60000);
    EXPECT_EQ(file->get_int("i16").value(), -30000);
    EXPECT_EQ(file->get_int("u32").value(), 4000000000);
    EXPECT_EQ(file->get_int("i32").value(), -2000000000);
    EXPECT_EQ(file->get_int("u64").value(), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(file->get_int("i64").value(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(file->get_number("f32").value(), 0.5);
    EXPECT_EQ(file->get_number("f64").value(), 0.1);
    EXPECT_EQ(file->get_number("i8").value(), -100.0);
    EXPECT_EQ(file->get_bool("yes").value(), true);
    EXPECT_EQ(file->get_bool("no").value(), false);
    EXPECT_EQ(file->get_string("text").value(), std::string_view("a\0b", 3));
    EXPECT_EQ(file->get_int("absent").value(), std::nullopt);
    EXPECT_EQ(file->get_floats("absent").value(), std::nullopt);
    EXPECT_REFUSED(file->get_int("u64_big"), "x.gguf", "'u64_big': expected at most 9223372036854775807");
    EXPECT_REFUSED(file->get_int("f32"), "x.gguf", "'f32': expected an integer, got float32");
    EXPECT_REFUSED(file->get_int("yes"), "x.gguf", "'yes': expected an integer, got bool");
    EXPECT_REFUSED(file->get_number("text"), "x.gguf", "'text': expected a number, got string");
    EXPECT_REFUSED(file->get_number("nan"), "x.gguf", "'nan': expected a finite number, got nan");
    EXPECT_REFUSED(file->get_number("inf"), "x.gguf", "'inf': expected a finite number, got -inf");
    EXPECT_REFUSED(file->get_bool("u8"), "x.gguf", "'u8': expected a bool, got uint8");
    EXPECT_REFUSED(file->get_string("u8"), "x.gguf", "'u8': expected a string, got uint8");
    EXPECT_REFUSED(file->get_strings("text"), "x.gguf", "'text': expected an array of strings, got string");
}

template <typename T>
std::string array_entry(std::string_view key, std::uint32_t element_type, const std::vector<T>& values) {
    std::string encoded;
    put(encoded, element_type);
    put(encoded, static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) {
        if constexpr (std::is_arithmetic_v<T>)
            put(encoded, value);
        else
            put_text(encoded, value);
    }
    return entry(key, 9, encoded);
}

TEST(GgufRead, ArraysConvert) {
    RawGguf raw;
    raw.entries = {array_entry<std::string>("texts", 8, {"", "two", std::string(300, 'z')}),
                   array_entry<std::int16_t>("i16", 3, {-1, 0, 32767}),
                   array_entry<std::uint64_t>("u64", 10, {1, std::uint64_t{1} << 63}),
                   array_entry<float>("f32", 6, {-0.5F, INFINITY}),
                   array_entry<double>("f64", 12, {0.25, NAN}),
                   array_entry<std::uint8_t>("bools", 7, {1, 0}),
                   array_entry<std::int32_t>("none", 5, {})};
    const std::string bytes = raw.bytes();
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_THAT(*file->get_strings("texts").value(), ElementsAre("", "two", std::string(300, 'z')));
    EXPECT_THAT(*file->get_ints("i16").value(), ElementsAre(-1, 0, 32767));
    EXPECT_THAT(*file->get_floats("i16").value(), ElementsAre(-1.0F, 0.0F, 32767.0F));
    EXPECT_THAT(*file->get_floats("f32").value(), ElementsAre(-0.5F, INFINITY));
    EXPECT_THAT(*file->get_ints("none").value(), ElementsAre());
    EXPECT_REFUSED(file->get_ints("u64"), "x.gguf", "'u64': element 1 exceeds 9223372036854775807");
    EXPECT_REFUSED(file->get_floats("f64"), "x.gguf", "'f64': element 1 is not a number");
    EXPECT_REFUSED(file->get_ints("f32"), "x.gguf", "'f32': expected an array of integers, got array of 2 float32");
    EXPECT_REFUSED(file->get_floats("texts"), "x.gguf", "expected an array of numbers, got array of 3 string");
    EXPECT_REFUSED(file->get_ints("bools"), "x.gguf", "expected an array of integers, got array of 2 bool");
    EXPECT_REFUSED(file->get_strings("i16"), "x.gguf", "expected an array of strings, got array of 3 int16");
}

TEST(GgufRead, TensorsOfEveryTypeAndVersion2) {
    RawGguf raw;
    raw.version = 2;
    std::uint64_t offset = 0;
    for (int i = 0; i < kDTypeCount; ++i) {
        const DTypeInfo& info = dtype_info(static_cast<DType>(i));
        raw.tensors.push_back({std::string(info.name), {512, 3}, info.gguf_id, offset});
        offset += static_cast<std::uint64_t>(row_bytes(info.type, 512 * 3) + 31) / 32 * 32;
    }
    raw.data_bytes = offset;
    const std::string bytes = raw.bytes();
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(file->version(), 2U);
    ASSERT_EQ(file->tensors().size(), static_cast<std::size_t>(kDTypeCount));
    for (int i = 0; i < kDTypeCount; ++i) {
        const TensorView& tensor = file->tensors()[static_cast<std::size_t>(i)];
        EXPECT_EQ(tensor.info.type, static_cast<DType>(i));
        EXPECT_THAT(tensor.info.shape, ElementsAre(3, 512));
        EXPECT_EQ(tensor.data.size(), static_cast<std::size_t>(tensor.info.bytes()));
    }
    EXPECT_EQ(file->tensors().back().data.data() - file->tensors().front().data.data(),
              static_cast<std::ptrdiff_t>(raw.tensors.back().offset));
}

TEST(GgufRead, AlignmentKeyMovesTheData) {
    RawGguf raw;
    raw.alignment = 256;
    raw.entries = {entry_of<std::uint32_t>("general.alignment", 4, 256)};
    raw.tensors = {{"a", {4}, 0, 0}, {"b", {4}, 0, 256}};
    raw.data_bytes = 256 + 16;
    const std::string bytes = raw.bytes();
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ((file->tensors()[0].data.data() - std::as_bytes(std::span(bytes)).data()) % 256, 0);
    raw.tensors[1].offset = 32;
    EXPECT_GGUF_REFUSED(raw, "tensor 'b': offset 32 is not a multiple of the alignment 256");
    for (const std::uint32_t bad : {0U, 4U, 24U, 33U}) {
        raw.entries = {entry_of<std::uint32_t>("general.alignment", 4, bad)};
        EXPECT_GGUF_REFUSED(raw, fmt::format("expected a power of two of at least 8, got {}", bad));
    }
    raw.entries = {entry_of<std::uint64_t>("general.alignment", 10, 32)};
    EXPECT_GGUF_REFUSED(raw, "general.alignment: expected uint32, got uint64");
}

TEST(GgufRead, OtherFilesAreNamedForWhatTheyAre) {
    RawGguf raw;
    raw.magic = "PK\x03\x04";
    EXPECT_GGUF_REFUSED(raw, "not a GGUF file: starts with 'PK\\x03\\x04', expected 'GGUF'");
    raw.magic = "FUGG";
    EXPECT_GGUF_REFUSED(raw, "big-endian");
    raw.magic = "tjgg";
    EXPECT_GGUF_REFUSED(raw, "from before GGUF");
    EXPECT_REFUSED(parse("version https://git-lfs.github.com/spec/v1\n"), "x.gguf", "Git LFS pointer");
    raw.magic = "GGUF";
    raw.version = 1;
    EXPECT_GGUF_REFUSED(raw, "GGUF version 1, supported are 2 and 3");
    raw.version = 0x03000000;
    EXPECT_GGUF_REFUSED(raw, "big-endian GGUF file (version reads 0x3000000)");
    raw.version = 4;
    EXPECT_GGUF_REFUSED(raw, "GGUF version 4");
    EXPECT_REFUSED(parse(""), "x.gguf", "the file ends inside the header: 4 bytes needed at byte 0, file has 0 bytes");
    EXPECT_FALSE(GgufFile::open("/no/such/file.gguf"));
    EXPECT_FALSE(GgufFile::open("/tmp"));
}

TEST(GgufRead, CountsThatTheFileCannotHold) {
    RawGguf raw;
    raw.declared_entries = std::uint64_t{1} << 60;
    EXPECT_GGUF_REFUSED(raw, "declares 1152921504606846976 metadata entries, but only 0 bytes follow");
    raw.declared_entries = {};
    raw.declared_tensors = UINT64_MAX;
    EXPECT_GGUF_REFUSED(raw, "declares 18446744073709551615 tensors");
    raw.declared_tensors = {};

    std::string huge_array;
    put(huge_array, std::uint32_t{6});
    put(huge_array, UINT64_MAX / 2);
    raw.entries = {entry("scores", 9, huge_array)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'scores' declares 9223372036854775807 elements of float32, but only 0");
    huge_array = {};
    put(huge_array, std::uint32_t{8});
    put(huge_array, std::uint64_t{2});
    put(huge_array, std::uint64_t{1} << 40);
    put(huge_array, std::uint64_t{0});
    raw.entries = {entry("tokens", 9, huge_array)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'tokens': element 0 of 2 ends past the file's");
    std::string long_text;
    put(long_text, UINT64_MAX);
    raw.entries = {entry("text", 8, long_text)};
    EXPECT_GGUF_REFUSED(raw, "ends inside metadata key 'text': 18446744073709551615 bytes needed");
}

TEST(GgufRead, BadMetadata) {
    RawGguf raw;
    raw.entries = {entry_of<std::uint32_t>("a", 4, 1), entry_of<std::uint32_t>("a", 4, 2)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'a' occurs twice");
    raw.entries = {entry_of<std::uint32_t>("a", 13, 1)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'a' has the unknown value type 13, known are 0 to 12");
    raw.entries = {entry_of<std::uint8_t>("a", 7, 2)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'a': a bool is 0 or 1, got 2");
    raw.entries = {entry_of<std::uint32_t>("", 4, 1)};
    EXPECT_GGUF_REFUSED(raw, "the key of metadata entry 0 is empty");
    raw.entries = {entry_of<std::uint32_t>("a\nb", 4, 1)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'a\\x0ab' holds control characters");
    raw.entries = {entry_of<std::uint32_t>(std::string(65536, 'k'), 4, 1)};
    EXPECT_GGUF_REFUSED(raw, "is 65536 bytes long, at most 65535 are allowed");
    std::string nested;
    put(nested, std::uint32_t{9});
    put(nested, std::uint64_t{1});
    put(nested, std::uint32_t{9});
    put(nested, std::uint64_t{0});
    raw.entries = {entry("a", 9, nested)};
    EXPECT_GGUF_REFUSED(raw, "metadata key 'a' is an array of arrays");
    // Names in errors are cut, so that the line stays readable.
    raw.entries = {entry_of<std::uint32_t>(std::string(60000, '\xFF'), 13, 1)};
    EXPECT_GGUF_REFUSED(raw, "... (60000 bytes)'");
}

TEST(GgufRead, BadTensors) {
    const auto with = [](RawTensor tensor) {
        RawGguf raw;
        raw.tensors = {{"first", {8}, 0, 0}, std::move(tensor)};
        raw.data_bytes = 1024;
        return raw;
    };
    EXPECT_GGUF_REFUSED(with({"t", {}, 0, 32}), "tensor 't' has 0 dimensions, expected 1 to 4");
    EXPECT_GGUF_REFUSED(with({"t", {1, 1, 1, 1, 1}, 0, 32}), "tensor 't' has 5 dimensions");
    EXPECT_GGUF_REFUSED(with({"t", {8, 0}, 0, 32}), "tensor 't': dimension 1 is 0");
    EXPECT_GGUF_REFUSED(with({"t", {8, UINT64_MAX}, 0, 32}), "tensor 't': dimension 1 is 18446744073709551615");
    EXPECT_GGUF_REFUSED(with({"t", {1ULL << 31, 1ULL << 31, 4}, 0, 32}),
                        "tensor 't': shape [4, 2147483648, 2147483648] "
                        "overflows 64 bits");
    EXPECT_GGUF_REFUSED(with({"t", {33}, 2, 32}), "tensor 't': rows of 33 elements, but Q4_0 comes in blocks of 32");
    EXPECT_GGUF_REFUSED(with({"t", {128, 2}, 12, 32}), "rows of 128 elements, but Q4_K comes in blocks of 256");
    EXPECT_GGUF_REFUSED(with({"t", {256}, 19, 32}), "tensor 't' has the unsupported type 19 (IQ1_S)");
    EXPECT_GGUF_REFUSED(with({"t", {256}, 4242, 32}), "tensor 't' has the unsupported type 4242");
    EXPECT_GGUF_REFUSED(with({"t", {8}, 0, 33}), "tensor 't': offset 33 is not a multiple of the alignment 32");
    EXPECT_GGUF_REFUSED(with({"t", {8}, 0, UINT64_MAX - 31}),
                        "tensor 't': offset 18446744073709551584 with 32 bytes "
                        "overflows 64 bits");
    EXPECT_GGUF_REFUSED(with({"t", {8}, 0, 0}), "tensors 'first' and 't' overlap");
    EXPECT_GGUF_REFUSED(with({"first", {8}, 0, 32}), "tensor 'first' occurs twice");
    EXPECT_GGUF_REFUSED(with({"", {8}, 0, 32}), "the name of tensor 1 is empty");
    EXPECT_GGUF_REFUSED(with({std::string(256, 'n'), {8}, 0, 32}), "is 256 bytes long, at most 255 are allowed");
    EXPECT_GGUF_REFUSED(with({"a\x1B[2J", {8}, 0, 32}), "tensor 'a\\x1b[2J' has control characters");
    RawGguf raw = with({"t", {256, 1000}, 0, 32});
    const std::size_t data_start = raw.bytes().size() - 1024;
    EXPECT_GGUF_REFUSED(raw, fmt::format("tensor 't': data ends at byte {}, file has {} bytes",
                                         data_start + 32 + 256 * 1000 * 4, data_start + 1024));
    // The last byte of the file may be the last byte of a tensor.
    raw = with({"t", {8}, 0, 1024 - 32});
    std::string bytes = raw.bytes();
    EXPECT_TRUE(parse(bytes)) << parse(bytes).error().text;
    bytes.pop_back();
    EXPECT_FALSE(parse(bytes));
}

TEST(GgufRead, TokenizerOnlyFileNeedsNoPadding) {
    RawGguf raw;
    raw.entries = {text_entry("tokenizer.ggml.model", "gpt2")};
    const std::string bytes = raw.bytes();
    ASSERT_NE(bytes.size() % 32, 0U);
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_TRUE(file->tensors().empty());
}

}  // namespace
}  // namespace frontier
