// Filters over lists and dicts: length, join, sort, unique, batch and so on.
#include <algorithm>
#include <span>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

Result<Value> fold_case(Interpreter& interpreter, const Value& value) {
    if (!value.is(Kind::kString)) return value;
    return change_case(interpreter, value.text(), Casing::kLower, false);
}

Result<Value> get_path(Interpreter& interpreter, const Value& object, const Value& path) {
    if (path.is_integral()) return interpreter.get_item(object, path);
    if (!path.is(Kind::kString)) return bad_input("an attribute is a name or an index, not a {}", type_name(path));
    const std::string_view names = path.bytes();
    Value value = object;
    for (std::size_t begin = 0; begin <= names.size();) {
        const std::size_t dot = std::min(names.find('.', begin), names.size());
        const std::string_view part = names.substr(begin, dot - begin);
        const bool is_index =
            !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
        Value key = Value::string(part);
        if (is_index) {
            std::int64_t index = 0;
            for (const char c : part) index = index * 10 + (c - '0');
            key = Value::integer(index);
        }
        FR_ASSIGN(value, interpreter.get_item(value, key));
        begin = dot + 1;
    }
    return value;
}

Status sort_by_keys(Interpreter& interpreter, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
    // A merge sort of our own: comparisons may fail, and must not be relied upon to be consistent.
    FR_TRY(interpreter.meter().allocate(keyed.size() * sizeof(keyed[0])));
    std::vector<std::pair<Value, Value>> merged(keyed.size());
    for (std::size_t width = 1; width < keyed.size(); width *= 2) {
        for (std::size_t begin = 0; begin < keyed.size(); begin += 2 * width) {
            const std::size_t middle = std::min(begin + width, keyed.size());
            const std::size_t end = std::min(begin + 2 * width, keyed.size());
            std::size_t left = begin;
            std::size_t right = middle;
            for (std::size_t to = begin; to < end; ++to) {
                bool take_right = left == middle;
                if (!take_right && right < end) {
                    FR_ASSIGN(take_right, reverse ? less(interpreter.meter(), keyed[left].first, keyed[right].first)
                                                  : less(interpreter.meter(), keyed[right].first, keyed[left].first));
                }
                merged[to] = std::move(take_right ? keyed[right++] : keyed[left++]);
            }
        }
        keyed.swap(merged);
    }
    return {};
}

namespace {

using KeyedItems = std::vector<std::pair<Value, Value>>;

// The sort key of Jinja's filters: an attribute (several, separated by commas, where allowed), without regard to case.
Result<Value> sort_key(Interpreter& interpreter, const Value& item, const Value* attribute, bool case_sensitive) {
    if (attribute == nullptr || attribute->is(Kind::kNone)) {
        return case_sensitive ? item : fold_case(interpreter, item);
    }
    if (!attribute->is(Kind::kString) || attribute->bytes().find(',') == std::string::npos) {
        FR_ASSIGN(const Value key, get_path(interpreter, item, *attribute));
        return case_sensitive ? key : fold_case(interpreter, key);
    }
    std::vector<Value> parts;
    const std::string_view names = attribute->bytes();
    for (std::size_t begin = 0; begin <= names.size();) {
        const std::size_t comma = std::min(names.find(',', begin), names.size());
        FR_ASSIGN(Value part, get_path(interpreter, item, Value::string(names.substr(begin, comma - begin))));
        if (!case_sensitive) {
            FR_ASSIGN(part, fold_case(interpreter, part));
        }
        parts.push_back(std::move(part));
        begin = comma + 1;
    }
    return interpreter.make_list(std::move(parts));
}

Result<KeyedItems> key_items(Interpreter& interpreter, const Value& subject, const Value* attribute,
                             bool case_sensitive) {
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    KeyedItems keyed;
    for (const Value& item : items->items) {
        FR_ASSIGN(Value key, sort_key(interpreter, item, attribute, case_sensitive));
        FR_TRY(interpreter.meter().allocate(2 * sizeof(Value)));
        keyed.emplace_back(std::move(key), item);
    }
    return keyed;
}

std::vector<Value> values_of(KeyedItems& keyed) {
    std::vector<Value> values;
    values.reserve(keyed.size());
    for (auto& [key, value] : keyed) values.push_back(std::move(value));
    return values;
}

bool flag(const BoundArgs& bound, std::size_t index) {
    return bound.given[index] && truthy(bound.values[index]);
}

Result<Value> length(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("length", args, {}));
    switch (subject.kind()) {
        case Kind::kUndefined:
            return Value::integer(0);
        case Kind::kString:
            FR_TRY(interpreter.meter().scan(subject.bytes().size()));
            return Value::integer(static_cast<std::int64_t>(count_characters(subject.bytes())));
        case Kind::kDict:
            return Value::integer(static_cast<std::int64_t>(subject.dict().entries.size()));
        case Kind::kLoop:
            return Value::integer(static_cast<std::int64_t>(subject.as<LoopObject>().items->items.size()));
        case Kind::kList:
        case Kind::kTuple:
        case Kind::kRange:
        case Kind::kView:
            return Value::integer(static_cast<std::int64_t>(subject.sequence().items.size()));
        default:
            return bad_input("a value of type {} has no length", type_name(subject));
    }
}

Result<Value> first(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("first", args, {}));
    if (subject.is(Kind::kString)) return interpreter.get_item(subject, Value::integer(0));
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    if (items->items.empty()) return Value::undefined("No first item, sequence was empty.");
    return items->items.front();
}

Result<Value> last(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("last", args, {}));
    if (subject.is(Kind::kGenerator)) return bad_input("last: a generator cannot be reversed");
    if (subject.is(Kind::kString)) return interpreter.get_item(subject, Value::integer(-1));
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    if (items->items.empty()) return Value::undefined("No last item, sequence was empty.");
    return items->items.back();
}

Result<Value> join(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("join", args, {"d", "attribute"}));
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    Text separator;
    if (bound.given[0]) {
        FR_ASSIGN(separator, interpreter.to_text(bound.values[0]));
    }
    Text out;
    bool is_first = true;
    for (const Value& item : items->items) {
        Value value = item;
        if (bound.given[1] && !bound.values[1].is(Kind::kNone)) {
            FR_ASSIGN(value, get_path(interpreter, item, bound.values[1]));
        }
        if (!is_first) {
            FR_TRY(interpreter.meter().scan(separator.cost_bytes()));
            out.append(separator);
        }
        is_first = false;
        FR_TRY(append_str(interpreter.meter(), out, value));
    }
    return interpreter.make_string(std::move(out));
}

Result<Value> list(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("list", args, {}));
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    return interpreter.make_list(items->items);
}

Result<Value> reverse(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("reverse", args, {}));
    if (subject.is(Kind::kString)) {
        return slice_value(interpreter, subject, Value::none(), Value::none(), Value::integer(-1));
    }
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    std::vector<Value> reversed(items->items.rbegin(), items->items.rend());
    return interpreter.make_generator(std::move(reversed));
}

Result<Value> sort(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("sort", args, {"reverse", "case_sensitive", "attribute"}));
    FR_ASSIGN(KeyedItems keyed, key_items(interpreter, subject, bound.find(2), flag(bound, 1)));
    FR_TRY(sort_by_keys(interpreter, keyed, flag(bound, 0)));
    return interpreter.make_list(values_of(keyed));
}

Result<Value> dictsort(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("dictsort", args, {"case_sensitive", "by", "reverse"}));
    if (!subject.is(Kind::kDict)) return bad_input("dictsort needs a dict, not {}", type_name(subject));
    bool by_value = false;
    if (bound.given[1]) {
        FR_ASSIGN(const Text* by, to_string_argument(bound.values[1], "dictsort"));
        if (by->bytes() != "key" && by->bytes() != "value") return bad_input("dictsort: by is 'key' or 'value'");
        by_value = by->bytes() == "value";
    }
    KeyedItems keyed;
    for (const auto& [key, value] : subject.dict().entries) {
        FR_ASSIGN(Value sort_by, sort_key(interpreter, by_value ? value : key, nullptr, flag(bound, 0)));
        FR_ASSIGN(Value pair, make_sequence(interpreter.meter(), Kind::kTuple, {key, value}));
        keyed.emplace_back(std::move(sort_by), std::move(pair));
    }
    FR_TRY(sort_by_keys(interpreter, keyed, flag(bound, 2)));
    return interpreter.make_list(values_of(keyed));
}

Result<Value> items(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("items", args, {}));
    if (subject.is(Kind::kUndefined)) return interpreter.make_generator({});
    if (!subject.is(Kind::kDict)) return bad_input("items needs a mapping, not {}", type_name(subject));
    std::vector<Value> pairs;
    for (const auto& [key, value] : subject.dict().entries) {
        FR_ASSIGN(Value pair, make_sequence(interpreter.meter(), Kind::kTuple, {key, value}));
        pairs.push_back(std::move(pair));
    }
    return interpreter.make_generator(std::move(pairs));
}

Result<Value> unique(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("unique", args, {"case_sensitive", "attribute"}));
    FR_ASSIGN(const KeyedItems keyed, key_items(interpreter, subject, bound.find(1), flag(bound, 0)));
    DictObject seen;
    std::vector<Value> kept;
    for (const auto& [key, value] : keyed) {
        if (!is_hashable(key)) return bad_input("unhashable type: '{}'", type_name(key));
        if (!key.is(Kind::kString)) FR_TRY(interpreter.meter().spend(seen.entries.size()));
        if (seen.find(key) != nullptr) continue;
        FR_TRY(interpreter.meter().allocate(4 * sizeof(Value)));
        seen.insert(key, Value::none());
        kept.push_back(value);
    }
    return interpreter.make_generator(std::move(kept));
}

Result<Value> extreme(Interpreter& interpreter, const Value& subject, const CallArgs& args, bool maximum) {
    FR_ASSIGN(const BoundArgs bound, bind(maximum ? "max" : "min", args, {"case_sensitive", "attribute"}));
    FR_ASSIGN(const KeyedItems keyed, key_items(interpreter, subject, bound.find(1), flag(bound, 0)));
    if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
    std::size_t best = 0;
    for (std::size_t i = 1; i < keyed.size(); ++i) {
        FR_ASSIGN(const bool better, maximum ? less(interpreter.meter(), keyed[best].first, keyed[i].first)
                                             : less(interpreter.meter(), keyed[i].first, keyed[best].first));
        if (better) best = i;
    }
    return keyed[best].second;
}

Result<Value> max(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    return extreme(interpreter, subject, args, true);
}
Result<Value> min(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    return extreme(interpreter, subject, args, false);
}

Result<Value> sum(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("sum", args, {"attribute", "start"}));
    FR_ASSIGN(const auto items_of, interpreter.iterate(subject));
    Value total = bound.given[1] ? bound.values[1] : Value::integer(0);
    if (total.is(Kind::kString)) return bad_input("sum cannot add strings; use join");
    for (const Value& item : items_of->items) {
        Value value = item;
        if (bound.given[0] && !bound.values[0].is(Kind::kNone)) {
            FR_ASSIGN(value, get_path(interpreter, item, bound.values[0]));
        }
        FR_ASSIGN(total, apply_binary(interpreter, Operator::kAdd, total, value));
    }
    return total;
}

// batch(linecount, fill_with=None): rows of that many items.
Result<Value> batch(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("batch", args, {"linecount", "fill_with"}, 1));
    FR_ASSIGN(const std::int64_t width, to_integer(bound.values[0], "batch"));
    if (width < 1 || width > kMaxRangeItems) return bad_input("batch: {} items in a row", width);
    FR_ASSIGN(const auto source, interpreter.iterate(subject));
    std::vector<Value> rows;
    const auto step = static_cast<std::size_t>(width);
    for (std::size_t begin = 0; begin < source->items.size(); begin += step) {
        const std::size_t end = std::min(begin + step, source->items.size());
        std::vector<Value> row(source->items.begin() + static_cast<std::ptrdiff_t>(begin),
                               source->items.begin() + static_cast<std::ptrdiff_t>(end));
        if (bound.given[1] && !bound.values[1].is(Kind::kNone)) row.resize(step, bound.values[1]);
        FR_ASSIGN(Value list_value, interpreter.make_list(std::move(row)));
        rows.push_back(std::move(list_value));
    }
    return interpreter.make_generator(std::move(rows));
}

// slice(slices, fill_with=None): that many columns.
Result<Value> slice(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("slice", args, {"slices", "fill_with"}, 1));
    FR_ASSIGN(const std::int64_t count, to_integer(bound.values[0], "slice"));
    if (count < 1 || count > kMaxRangeItems) return bad_input("slice: {} columns", count);
    FR_ASSIGN(const auto source, interpreter.iterate(subject));
    const auto slices = static_cast<std::size_t>(count);
    const std::size_t per_slice = source->items.size() / slices;
    const std::size_t with_extra = source->items.size() % slices;
    std::vector<Value> columns;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < slices; ++i) {
        const std::size_t end = begin + per_slice + (i < with_extra ? 1 : 0);
        std::vector<Value> column(source->items.begin() + static_cast<std::ptrdiff_t>(begin),
                                  source->items.begin() + static_cast<std::ptrdiff_t>(end));
        if (bound.given[1] && !bound.values[1].is(Kind::kNone) && i >= with_extra) column.push_back(bound.values[1]);
        begin = end;
        FR_ASSIGN(Value list_value, interpreter.make_list(std::move(column)));
        columns.push_back(std::move(list_value));
    }
    return interpreter.make_generator(std::move(columns));
}

constexpr NamedFilter kSequenceFilters[] = {
    {"length", length}, {"count", length}, {"first", first},     {"last", last},
    {"join", join},     {"list", list},    {"reverse", reverse}, {"sort", sort},
    {"unique", unique}, {"items", items},  {"max", max},         {"dictsort", dictsort},
    {"min", min},       {"sum", sum},      {"batch", batch},     {"slice", slice},
};

}  // namespace

std::span<const NamedFilter> sequence_filters() {
    return kSequenceFilters;
}

}  // namespace frontier::jinja
