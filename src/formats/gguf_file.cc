// Opening single and split files, and typed access to the metadata.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/gguf.h"
#include "formats/gguf_parse.h"
#include "formats/printable.h"

namespace frontier {
namespace {

// "name-00002-of-00003.gguf", as llama.cpp's gguf-split names its files.
struct SplitName {
    std::string prefix;
    std::uint64_t number = 0;  // counted from 1
    std::uint64_t count = 0;

    std::string path_of(std::uint64_t shard_number) const {
        return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, shard_number, count);
    }
};

std::optional<std::uint64_t> five_digits(std::string_view text) {
    std::uint64_t number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return number;
}

std::optional<SplitName> split_name(std::string_view path) {
    constexpr std::string_view kTemplate = "-00001-of-00003.gguf";
    if (path.size() <= kTemplate.size()) return std::nullopt;
    const std::string_view tail = path.substr(path.size() - kTemplate.size());
    if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
    const auto number = five_digits(tail.substr(1, 5));
    const auto count = five_digits(tail.substr(10, 5));
    if (!number || !count) return std::nullopt;
    return SplitName{std::string(path.substr(0, path.size() - kTemplate.size())), *number, *count};
}

std::optional<std::int64_t> as_int64(const GgufValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value.value)) return *number;
    if (const auto* number = std::get_if<std::uint64_t>(&value.value))
        if (*number <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(*number);
    return std::nullopt;
}

std::unexpected<Error> wrong_type(std::string_view where, std::string_view key, std::string_view expected,
                                  const GgufValue& value) {
    return bad_input("{}: metadata key '{}': expected {}, got {}", where, printable(key), expected,
                     gguf_type_text(value));
}

// A key of the split bookkeeping as a non-negative number; absent keys give nullopt.
Result<std::optional<std::uint64_t>> split_field(const ParsedGguf& parsed, std::string_view key,
                                                 std::string_view where) {
    const auto it = parsed.metadata_index.find(key);
    if (it == parsed.metadata_index.end()) return std::nullopt;
    const GgufValue& value = parsed.metadata[it->second].second;
    const std::optional<std::int64_t> number = as_int64(value);
    if (!number || *number < 0) return wrong_type(where, key, "an integer of at least 0", value);
    return static_cast<std::uint64_t>(*number);
}

Status expect_split_field(const ParsedGguf& parsed, std::string_view key, std::uint64_t expected,
                          std::string_view where) {
    FR_ASSIGN(const std::optional<std::uint64_t> actual, split_field(parsed, key, where));
    if (!actual) return bad_input("{}: metadata key '{}' is missing, expected {}", where, key, expected);
    if (*actual != expected) return bad_input("{}: {} is {}, expected {}", where, key, *actual, expected);
    return {};
}

template <typename T>
T element(const GgufArray& array, std::size_t index) {
    T value{};
    std::memcpy(&value, array.data.data() + index * sizeof(T), sizeof(T));
    return value;
}

// Calls use(index, number) with each element in its own type; false for arrays of other types.
template <typename Use>
bool for_each_integer(const GgufArray& array, const Use& use) {
    const auto run = [&]<typename T>(T) {
        for (std::size_t i = 0; i < array.count; ++i) use(i, element<T>(array, i));
        return true;
    };
    switch (array.element_type) {
        case GgufType::kUint8:
            return run(std::uint8_t{});
        case GgufType::kInt8:
            return run(std::int8_t{});
        case GgufType::kUint16:
            return run(std::uint16_t{});
        case GgufType::kInt16:
            return run(std::int16_t{});
        case GgufType::kUint32:
            return run(std::uint32_t{});
        case GgufType::kInt32:
            return run(std::int32_t{});
        case GgufType::kUint64:
            return run(std::uint64_t{});
        case GgufType::kInt64:
            return run(std::int64_t{});
        default:
            return false;
    }
}

template <typename Use>
bool for_each_number(const GgufArray& array, const Use& use) {
    if (array.element_type == GgufType::kFloat32) {
        for (std::size_t i = 0; i < array.count; ++i) use(i, element<float>(array, i));
        return true;
    }
    if (array.element_type == GgufType::kFloat64) {
        for (std::size_t i = 0; i < array.count; ++i) use(i, element<double>(array, i));
        return true;
    }
    return for_each_integer(array, use);
}

}  // namespace

std::int64_t GgufFile::file_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& shard : shards_) bytes += static_cast<std::int64_t>(shard->file.bytes().size());
    return bytes;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string where) {
    FR_ASSIGN(ParsedGguf parsed, parse_gguf(bytes, where));
    GgufFile file;
    file.where_ = std::move(where);
    FR_TRY(file.adopt_first(std::move(parsed)));
    return file;
}

Result<GgufFile> GgufFile::open(const std::string& path) {
    FR_ASSIGN(MappedFile opened, MappedFile::open(path));
    FR_ASSIGN(ParsedGguf parsed, parse_gguf(opened.bytes(), path));
    FR_ASSIGN(const std::optional<std::uint64_t> count, split_field(parsed, "split.count", path));
    GgufFile file;
    if (count.value_or(1) <= 1) {
        file.where_ = path;
        file.shards_.push_back(std::make_shared<Shard>(Shard{std::move(opened), 0}));
        FR_TRY(file.adopt_first(std::move(parsed)));
        return file;
    }

    const std::optional<SplitName> name = split_name(path);
    if (!name || name->count != *count || name->number < 1 || name->number > *count)
        return bad_input(
            "{}: one of {} split files, but not named ...-0000N-of-{:05}.gguf, so the others cannot be found", path,
            *count, *count);
    file.where_ = name->path_of(1);
    for (std::uint64_t number = 1; number <= *count; ++number) {
        // The file that was opened to learn of the split is not read a second time.
        if (number == name->number) {
            // Once only: the numbers differ.  NOLINTNEXTLINE(bugprone-use-after-move)
            FR_TRY(file.add_shard(std::move(opened), std::move(parsed), number - 1, *count));
            continue;
        }
        const std::string shard_path = name->path_of(number);
        auto shard = MappedFile::open(shard_path);
        if (!shard) return bad_input("{}: file {} of {}: {}", path, number, *count, shard.error().text);
        FR_ASSIGN(ParsedGguf shard_parsed, parse_gguf(shard->bytes(), shard_path));
        FR_TRY(file.add_shard(std::move(*shard), std::move(shard_parsed), number - 1, *count));
    }
    FR_ASSIGN(const std::optional<std::int64_t> total, file.get_int("split.tensors.count"));
    if (total && *total != static_cast<std::int64_t>(file.tensors_.size()))
        return bad_input("{}: split.tensors.count is {}, but the {} files hold {} tensors", file.where_, *total, *count,
                         file.tensors_.size());
    return file;
}

Status GgufFile::add_shard(MappedFile mapped, ParsedGguf&& parsed, std::uint64_t number, std::uint64_t count) {
    FR_TRY(expect_split_field(parsed, "split.count", count, mapped.path()));
    FR_TRY(expect_split_field(parsed, "split.no", number, mapped.path()));
    const std::string shard_path = mapped.path();
    shards_.push_back(std::make_shared<Shard>(Shard{std::move(mapped), tensors_.size()}));
    if (number == 0) return adopt_first(std::move(parsed));
    return adopt_tensors(std::move(parsed), shard_path);
}

Status GgufFile::adopt_first(ParsedGguf&& parsed) {
    version_ = parsed.version;
    metadata_ = std::move(parsed.metadata);
    metadata_index_ = std::move(parsed.metadata_index);
    return adopt_tensors(std::move(parsed), where_);
}

Status GgufFile::adopt_tensors(ParsedGguf&& parsed, std::string_view shard_where) {
    for (TensorView& tensor : parsed.tensors) {
        if (!tensor_index_.emplace(tensor.info.name, tensors_.size()).second)
            return bad_input("{}: tensor '{}' is in an earlier split file, too", shard_where,
                             printable(tensor.info.name));
        tensors_.push_back(std::move(tensor));
    }
    return {};
}

std::string GgufFile::identity() const {
    std::string lines;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
        const MappedFile& file = shards_[i]->file;
        const std::size_t end = i + 1 < shards_.size() ? shards_[i + 1]->first_tensor : tensors_.size();
        std::size_t header_bytes = file.bytes().size();
        for (std::size_t t = shards_[i]->first_tensor; t < end; ++t) {
            const auto offset = static_cast<std::size_t>(tensors_[t].data.data() - file.bytes().data());
            header_bytes = std::min(header_bytes, offset);
        }
        lines += file.identity(header_bytes) + "\n";
    }
    return lines;
}

const GgufValue* GgufFile::find(std::string_view key) const {
    const auto it = metadata_index_.find(key);
    return it == metadata_index_.end() ? nullptr : &metadata_[it->second].second;
}

Result<std::optional<std::int64_t>> GgufFile::get_int(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const std::optional<std::int64_t> number = as_int64(*value);
    if (number) return number;
    if (const auto* big = std::get_if<std::uint64_t>(&value->value))
        return bad_input("{}: metadata key '{}': expected at most {}, got {}", where_, printable(key), INT64_MAX, *big);
    return wrong_type(where_, key, "an integer", *value);
}

Result<std::optional<double>> GgufFile::get_number(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<std::int64_t>(&value->value)) return static_cast<double>(*number);
    if (const auto* number = std::get_if<std::uint64_t>(&value->value)) return static_cast<double>(*number);
    const auto* number = std::get_if<double>(&value->value);
    if (number == nullptr) return wrong_type(where_, key, "a number", *value);
    if (!std::isfinite(*number))
        return bad_input("{}: metadata key '{}': expected a finite number, got {}", where_, printable(key), *number);
    return *number;
}

Result<std::optional<bool>> GgufFile::get_bool(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* flag = std::get_if<bool>(&value->value);
    if (flag == nullptr) return wrong_type(where_, key, "a bool", *value);
    return *flag;
}

Result<std::optional<std::string_view>> GgufFile::get_string(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* text = std::get_if<std::string_view>(&value->value);
    if (text == nullptr) return wrong_type(where_, key, "a string", *value);
    return *text;
}

Result<std::optional<std::vector<std::string_view>>> GgufFile::get_strings(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* array = std::get_if<GgufArray>(&value->value);
    if (array == nullptr || array->element_type != GgufType::kString)
        return wrong_type(where_, key, "an array of strings", *value);
    return array->strings;
}

Result<std::optional<std::vector<float>>> GgufFile::get_floats(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::vector<float> numbers;
    std::optional<std::size_t> first_nan;
    const auto* array = std::get_if<GgufArray>(&value->value);
    if (array != nullptr && array->element_type != GgufType::kString) numbers.resize(array->count);
    const bool right_type = array != nullptr && for_each_number(*array, [&](std::size_t i, auto number) {
                                numbers[i] = static_cast<float>(number);
                                if (!first_nan && std::isnan(numbers[i])) first_nan = i;
                            });
    if (!right_type) return wrong_type(where_, key, "an array of numbers", *value);
    if (first_nan)
        return bad_input("{}: metadata key '{}': element {} is not a number (NaN)", where_, printable(key), *first_nan);
    return numbers;
}

Result<std::optional<std::vector<std::int64_t>>> GgufFile::get_ints(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::vector<std::int64_t> numbers;
    std::optional<std::size_t> first_too_large;
    const auto* array = std::get_if<GgufArray>(&value->value);
    if (array != nullptr && array->element_type != GgufType::kString) numbers.resize(array->count);
    const bool right_type = array != nullptr && for_each_integer(*array, [&](std::size_t i, auto number) {
                                if (std::in_range<std::int64_t>(number))
                                    numbers[i] = static_cast<std::int64_t>(+number);
                                else if (!first_too_large)
                                    first_too_large = i;
                            });
    if (!right_type) return wrong_type(where_, key, "an array of integers", *value);
    if (first_too_large)
        return bad_input("{}: metadata key '{}': element {} exceeds {}", where_, printable(key), *first_too_large,
                         INT64_MAX);
    return numbers;
}

const TensorView* GgufFile::find_tensor(std::string_view name) const {
    const auto it = tensor_index_.find(name);
    return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

void GgufFile::release(std::size_t index) const {
    if (shards_.empty()) return;  // parsed from memory
    // The last shard that starts at or before the tensor; a shard without tensors starts where the next one does.
    const auto after =
        std::ranges::upper_bound(shards_, index, {}, [](const auto& shard) { return shard->first_tensor; });
    const MappedFile& file = (*std::prev(after))->file;
    const std::span<const std::byte> data = tensors_[index].data;
    file.release(static_cast<std::size_t>(data.data() - file.bytes().data()), data.size());
}

}  // namespace frontier
