// Filters that apply other filters and tests: map, select, selectattr and their opposites; default, attr, groupby.
#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

namespace {

// map(attribute='a.b', default=x) or map('filter', arguments ...).
Result<Value> map(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    std::vector<Value> out;
    if (args.positional.empty()) {
        FR_ASSIGN(const BoundArgs bound, bind("map", args, {"attribute", "default"}, 1));
        for (const Value& item : items->items) {
            FR_ASSIGN(Value value, get_path(interpreter, item, bound.values[0]));
            const bool has_default = bound.given[1] && !bound.values[1].is(Kind::kNone);
            if (value.is(Kind::kUndefined) && has_default) value = bound.values[1];
            out.push_back(std::move(value));
        }
        return interpreter.make_generator(std::move(out));
    }
    FR_ASSIGN(const Text* name, to_string_argument(args.positional[0], "map"));
    CallArgs rest = args;
    rest.positional.erase(rest.positional.begin());
    for (const Value& item : items->items) {
        FR_ASSIGN(Value value, interpreter.call_filter(name->bytes(), item, rest));
        out.push_back(std::move(value));
    }
    return interpreter.make_generator(std::move(out));
}

Result<Value> choose(Interpreter& interpreter, const Value& subject, const CallArgs& args, bool keep,
                     bool by_attribute) {
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    CallArgs rest = args;
    Value attribute;
    if (by_attribute) {
        if (rest.positional.empty()) return bad_input("selectattr and rejectattr need the name of an attribute");
        attribute = rest.positional[0];
        rest.positional.erase(rest.positional.begin());
    }
    std::string test;
    if (!rest.positional.empty()) {
        FR_ASSIGN(const Text* name, to_string_argument(rest.positional[0], "the name of a test"));
        test = name->bytes();
        rest.positional.erase(rest.positional.begin());
    }
    std::vector<Value> out;
    for (const Value& item : items->items) {
        Value value = item;
        if (by_attribute) {
            FR_ASSIGN(value, get_path(interpreter, item, attribute));
        }
        bool holds = truthy(value);
        if (!test.empty()) {
            FR_ASSIGN(holds, interpreter.call_test(test, value, rest));
        }
        if (holds == keep) out.push_back(item);
    }
    return interpreter.make_generator(std::move(out));
}

Result<Value> select(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    return choose(interpreter, subject, args, true, false);
}
Result<Value> reject(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    return choose(interpreter, subject, args, false, false);
}
Result<Value> selectattr(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    return choose(interpreter, subject, args, true, true);
}
Result<Value> rejectattr(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    return choose(interpreter, subject, args, false, true);
}

Result<Value> default_value(Interpreter&, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("default", args, {"default_value", "boolean"}));
    const bool replace =
        subject.is(Kind::kUndefined) || (bound.given[1] && truthy(bound.values[1]) && !truthy(subject));
    if (!replace) return subject;
    return bound.given[0] ? bound.values[0] : Value::string("");
}

Result<Value> attr(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("attr", args, {"name"}, 1));
    FR_ASSIGN(const Text* name, to_string_argument(bound.values[0], "attr"));
    if (subject.is(Kind::kUndefined)) return bad_input("{}", subject.undefined_message());
    FR_ASSIGN(std::optional<Value> value, find_attribute(interpreter, subject, name->bytes()));
    if (value) return std::move(*value);
    return Value::undefined(fmt::format("no attribute '{}'", name->bytes().substr(0, 100)));
}

// Pairs of (key, items with that key), sorted by key. They print like tuples; `.grouper` and `.list` are not offered.
Result<Value> groupby(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("groupby", args, {"attribute", "default", "case_sensitive"}, 1));
    FR_ASSIGN(const auto items, interpreter.iterate(subject));
    const bool case_sensitive = bound.given[2] && truthy(bound.values[2]);
    std::vector<std::pair<Value, Value>> keyed;
    for (const Value& item : items->items) {
        FR_ASSIGN(Value key, get_path(interpreter, item, bound.values[0]));
        if (key.is(Kind::kUndefined) && bound.given[1]) key = bound.values[1];
        if (!case_sensitive) {
            FR_ASSIGN(key, fold_case(interpreter, key));
        }
        FR_TRY(interpreter.meter().allocate(2 * sizeof(Value)));
        keyed.emplace_back(std::move(key), item);
    }
    FR_TRY(sort_by_keys(interpreter, keyed, false));
    std::vector<Value> groups;
    for (std::size_t begin = 0; begin < keyed.size();) {
        std::vector<Value> members;
        std::size_t end = begin;
        for (; end < keyed.size(); ++end) {
            FR_ASSIGN(const bool same, equal(interpreter.meter(), keyed[begin].first, keyed[end].first));
            if (!same) break;
            members.push_back(keyed[end].second);
        }
        // The key is shown as the first member has it, not folded.
        FR_ASSIGN(Value key, get_path(interpreter, members[0], bound.values[0]));
        if (key.is(Kind::kUndefined) && bound.given[1]) key = bound.values[1];
        FR_ASSIGN(Value list, interpreter.make_list(std::move(members)));
        FR_ASSIGN(Value pair, make_sequence(interpreter.meter(), Kind::kTuple, {std::move(key), std::move(list)}));
        groups.push_back(std::move(pair));
        begin = end;
    }
    return interpreter.make_list(std::move(groups));
}

constexpr NamedFilter kSelectionFilters[] = {
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
    {"default", default_value},
    {"d", default_value},
    {"attr", attr},
    {"groupby", groupby},
};

}  // namespace

std::span<const NamedFilter> selection_filters() {
    return kSelectionFilters;
}

Filter find_filter(std::string_view name) {
    static const auto kFilters = [] {
        std::unordered_map<std::string_view, Filter> filters;
        for (const auto table : {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
            for (const NamedFilter& entry : table) filters.emplace(entry.name, entry.filter);
        }
        return filters;
    }();
    const auto found = kFilters.find(name);
    return found == kFilters.end() ? nullptr : found->second;
}

bool has_filter(std::string_view name) {
    return find_filter(name) != nullptr;
}

}  // namespace frontier::jinja
