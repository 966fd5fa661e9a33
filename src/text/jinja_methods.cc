// Attributes and methods of dicts, lists and loops, and the global functions.
#include <ctime>

#include <algorithm>
#include <array>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

namespace {

constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values", "copy"};
constexpr std::string_view kListMethods[] = {"count", "index", "copy"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
// What the immutable sandbox hides; using it is an error there too.
constexpr std::string_view kUnsafeMethods[] = {"append", "clear", "extend",     "insert", "pop",    "popitem",
                                               "remove", "sort",  "setdefault", "update", "reverse"};

template <std::size_t N>
bool is_in(const std::string_view (&names)[N], std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool has_method(const Value& object, std::string_view name) {
    switch (object.kind()) {
        case Kind::kString:
            return has_text_method(name);
        case Kind::kDict:
            return is_in(kDictMethods, name);
        case Kind::kList:
            return is_in(kListMethods, name);
        case Kind::kTuple:
        case Kind::kRange:
            return is_in(kTupleMethods, name);
        case Kind::kLoop:
            return name == "cycle" || name == "changed";
        default:
            return false;
    }
}

Value loop_neighbour(const LoopObject& loop, std::ptrdiff_t offset) {
    const auto index = static_cast<std::ptrdiff_t>(loop.index) + offset;
    const auto& items = loop.items->items;
    if (index < 0) return Value::undefined("there is no previous item");
    if (index >= static_cast<std::ptrdiff_t>(items.size())) return Value::undefined("there is no next item");
    return items[static_cast<std::size_t>(index)];
}

std::optional<Value> loop_attribute(const LoopObject& loop, std::string_view name) {
    const auto index = static_cast<std::int64_t>(loop.index);
    const auto length = static_cast<std::int64_t>(loop.items->items.size());
    if (name == "index") return Value::integer(index + 1);
    if (name == "index0") return Value::integer(index);
    if (name == "revindex") return Value::integer(length - index);
    if (name == "revindex0") return Value::integer(length - index - 1);
    if (name == "first") return Value::boolean(index == 0);
    if (name == "last") return Value::boolean(index + 1 == length);
    if (name == "length") return Value::integer(length);
    // Only recursive loops are deeper.
    if (name == "depth") return Value::integer(1);
    if (name == "depth0") return Value::integer(0);
    if (name == "previtem") return loop_neighbour(loop, -1);
    if (name == "nextitem") return loop_neighbour(loop, 1);
    return std::nullopt;
}

}  // namespace

Result<std::optional<Value>> find_attribute(Interpreter& interpreter, const Value& object, std::string_view name) {
    if (object.is(Kind::kNamespace)) {
        FR_TRY(interpreter.meter().spend(1 + object.name_space().attributes.size() / 8));
        if (const Value* value = object.name_space().find(name)) return *value;
    }
    if (object.is(Kind::kLoop)) {
        if (auto attribute = loop_attribute(object.as<LoopObject>(), name)) return attribute;
    }
    if (object.is(Kind::kMacro) && name == "name") {
        return Value::string(object.as<MacroObject>().node->name);
    }
    if (has_method(object, name)) {
        FR_TRY(interpreter.meter().allocate(sizeof(MethodObject)));
        if (object.depth() >= kMaxValueDepth) return bad_input("containers nest deeper than {} levels", kMaxValueDepth);
        auto method = std::make_shared<MethodObject>();
        method->self = object;
        method->name = name;
        method->depth = object.depth() + 1;
        return Value::object(Kind::kMethod, std::move(method));
    }
    const bool is_container = object.is(Kind::kDict) || object.is(Kind::kList);
    const bool dict_only = name == "popitem" || name == "setdefault" || name == "update";
    const bool list_only = name == "append" || name == "extend" || name == "insert" || name == "remove" ||
                           name == "sort" || name == "reverse";
    if (name.starts_with("__") ||
        (is_container && is_in(kUnsafeMethods, name) && !(object.is(Kind::kDict) ? list_only : dict_only))) {
        return Value::undefined(fmt::format("access to '{}' of a {} is not allowed: values are immutable",
                                            name.substr(0, 60), type_name(object)));
    }
    return std::nullopt;
}

namespace {

Result<Value> dict_method(Interpreter& interpreter, const Value& self, std::string_view name, const CallArgs& args) {
    const DictObject& dict = self.dict();
    Meter& meter = interpreter.meter();
    if (name == "get") {
        FR_ASSIGN(const BoundArgs bound, bind("get", args, {"key", "default"}, 1));
        if (!args.named.empty()) return bad_input("get takes no keyword arguments");
        const Value& key = bound.values[0];
        if (!is_hashable(key)) return bad_input("unhashable type: '{}'", type_name(key));
        FR_TRY(meter.spend(key.is(Kind::kString) ? 1 + key.bytes().size() / 64 : dict.entries.size()));
        if (const Value* found = dict.find(key)) return *found;
        return bound.given[1] ? bound.values[1] : Value::none();
    }
    FR_TRY(bind(name, args, {}));
    if (name == "copy") return self;
    std::vector<Value> items;
    FR_TRY(meter.spend(dict.entries.size()));
    for (const auto& [key, value] : dict.entries) {
        if (name == "items") {
            FR_ASSIGN(Value pair, make_sequence(meter, Kind::kTuple, {key, value}));
            items.push_back(std::move(pair));
        } else {
            items.push_back(name == "keys" ? key : value);
        }
    }
    return make_sequence(meter, Kind::kView, std::move(items), fmt::format("dict_{}", name));
}

Result<Value> list_method(Interpreter& interpreter, const Value& self, std::string_view name, const CallArgs& args) {
    if (name == "copy") {
        FR_TRY(bind(name, args, {}));
        return self;
    }
    FR_ASSIGN(const BoundArgs bound, bind(name, args, {"value"}, 1));
    const auto& items = self.sequence().items;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        FR_ASSIGN(const bool same, equal(interpreter.meter(), items[i], bound.values[0]));
        if (same && name == "index") return Value::integer(static_cast<std::int64_t>(i));
        if (same) ++count;
    }
    if (name == "index") return bad_input("index: the value is not in the list");
    return Value::integer(count);
}

Result<Value> loop_method(Interpreter& interpreter, LoopObject& loop, std::string_view name, const CallArgs& args) {
    if (!args.named.empty()) return bad_input("{} takes no keyword arguments", name);
    if (name == "cycle") {
        if (args.positional.empty()) return bad_input("cycle needs at least one item");
        return args.positional[loop.index % args.positional.size()];
    }
    for (const Value& value : args.positional) {
        // The loop keeps what it is given; containers could lead back to it.
        if (!value.is_number() && !value.is(Kind::kString) && !value.is(Kind::kNone) && !value.is(Kind::kUndefined)) {
            return bad_input("changed compares strings and numbers only, not a {}", type_name(value));
        }
    }
    bool changed = !loop.last_changed || loop.last_changed->size() != args.positional.size();
    for (std::size_t i = 0; !changed && i < args.positional.size(); ++i) {
        FR_ASSIGN(const bool same, equal(interpreter.meter(), (*loop.last_changed)[i], args.positional[i]));
        changed = !same;
    }
    if (changed) loop.last_changed = args.positional;
    return Value::boolean(changed);
}

Result<Value> make_range(Interpreter& interpreter, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("range", args, {"start", "stop", "step"}, 1));
    if (!args.named.empty()) return bad_input("range takes no keyword arguments");
    std::int64_t numbers[3] = {0, 0, 1};
    for (std::size_t i = 0; i < args.positional.size(); ++i) {
        FR_ASSIGN(numbers[i], to_integer(args.positional[i], "range"));
    }
    if (args.positional.size() == 1) std::swap(numbers[0], numbers[1]);
    const auto [start, stop, step] = numbers;
    if (step == 0) return bad_input("range: the step is zero");
    std::uint64_t count = 0;
    if (step > 0 ? start < stop : start > stop) {
        const std::uint64_t distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                                : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
        const std::uint64_t stride =
            step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
        count = (distance - 1) / stride + 1;
    }
    if (count > static_cast<std::uint64_t>(kMaxRangeItems)) {
        return bad_input("a range of {} items, allowed are {}", count, kMaxRangeItems);
    }
    std::vector<Value> items;
    items.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        // In unsigned arithmetic, because i * step may pass through values that int64 cannot hold.
        items.push_back(Value::integer(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + i * static_cast<std::uint64_t>(step))));
    }
    std::string label =
        step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
    return make_sequence(interpreter.meter(), Kind::kRange, std::move(items), std::move(label));
}

Result<Value> make_dict_from(Interpreter& interpreter, const CallArgs& args) {
    std::vector<std::pair<Value, Value>> entries;
    if (args.positional.size() > 1) return bad_input("dict takes at most 1 positional argument");
    if (!args.positional.empty()) {
        const Value& source = args.positional[0];
        if (source.is(Kind::kDict)) {
            entries = source.dict().entries;
        } else {
            FR_ASSIGN(const auto pairs, interpreter.iterate(source));
            for (const Value& pair : pairs->items) {
                FR_ASSIGN(const auto items, interpreter.iterate(pair));
                if (items->items.size() != 2) return bad_input("dict needs pairs, found {} items", items->items.size());
                entries.emplace_back(items->items[0], items->items[1]);
            }
        }
    }
    for (const auto& [name, value] : args.named) {
        entries.emplace_back(Value::string(Text(name, args.untrusted_names)), value);
    }
    return make_dict(interpreter.meter(), std::move(entries));
}

Result<Value> namespace_from(Interpreter& interpreter, const CallArgs& args) {
    FR_ASSIGN(const Value dict, make_dict_from(interpreter, args));
    std::vector<std::pair<std::string, Value>> attributes;
    bool untrusted_names = false;
    for (const auto& [key, value] : dict.dict().entries) {
        if (!key.is(Kind::kString)) return bad_input("namespace needs names that are strings");
        untrusted_names |= key.text().any_untrusted();
        attributes.emplace_back(key.bytes(), value);
    }
    return interpreter.make_namespace(std::move(attributes), untrusted_names);
}

Result<Value> strftime_now(Interpreter& interpreter, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("strftime_now", args, {"format"}, 1));
    FR_ASSIGN(const Text* format, to_string_argument(bound.values[0], "strftime_now"));
    constexpr std::size_t kMaxFormatBytes = 1024;  // dates are short
    if (format->size() > kMaxFormatBytes || format->bytes().find('\0') != std::string::npos) {
        return bad_input("strftime_now: the format is longer than {} bytes or holds a zero byte", kMaxFormatBytes);
    }
    const std::time_t now = interpreter.now_unix_s().value_or(std::time(nullptr));
    std::tm local{};
    localtime_r(&now, &local);
    // Any one conversion gives at most some 60 bytes. The extra space tells an empty date from one that does not fit.
    std::string buffer(64 * kMaxFormatBytes, '\0');
    const std::string padded = format->bytes() + " ";
    const std::size_t size = std::strftime(buffer.data(), buffer.size(), padded.c_str(), &local);
    if (size == 0) return bad_input("strftime_now: the date does not fit {} bytes", buffer.size());
    buffer.resize(size - 1);
    return interpreter.make_string(Text(std::move(buffer), format->any_untrusted()));
}

}  // namespace

Result<Value> Interpreter::make_namespace(std::vector<std::pair<std::string, Value>> attributes, bool untrusted_names) {
    if (namespaces_.size() >= kMaxNamespaces) return bad_input("more than {} namespaces", kMaxNamespaces);
    FR_TRY(meter_.allocate(sizeof(NamespaceObject) + attributes.size() * sizeof(attributes[0])));
    auto object = std::make_shared<NamespaceObject>();
    object->attributes = std::move(attributes);
    object->untrusted_names = untrusted_names;
    namespaces_.push_back(object);
    return Value::object(Kind::kNamespace, std::move(object));
}

Result<Value> Interpreter::call_function(Function function, const CallArgs& args) {
    switch (function) {
        case Function::kRange:
            return make_range(*this, args);
        case Function::kDict:
            return make_dict_from(*this, args);
        case Function::kNamespace:
            return namespace_from(*this, args);
        case Function::kStrftimeNow:
            return strftime_now(*this, args);
        case Function::kRaiseException: {
            FR_ASSIGN(const BoundArgs bound, bind("raise_exception", args, {"message"}, 1));
            FR_ASSIGN(const Text message, to_text(bound.values[0]));
            // One line for the user, however long the message.
            std::string line = message.bytes().substr(0, 500);
            std::replace_if(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
            return bad_input("the template refuses the conversation: {}", line);
        }
        case Function::kJoiner: {
            FR_ASSIGN(const BoundArgs bound, bind("joiner", args, {"sep"}));
            auto method = std::make_shared<MethodObject>();
            method->self = bound.given[0] ? bound.values[0] : Value::string(", ");
            if (method->self.depth() >= kMaxValueDepth) return bad_input("joiner: the separator nests too deeply");
            method->depth = method->self.depth() + 1;
            method->name = "joiner";
            FR_TRY(meter_.allocate(sizeof(MethodObject)));
            return Value::object(Kind::kMethod, std::move(method));
        }
    }
    return bad_input("an unknown function");
}

Result<Value> call_method(Interpreter& interpreter, const MethodObject& method, const CallArgs& args) {
    const Value& self = method.self;
    if (method.name == "joiner") {
        auto& state = const_cast<MethodObject&>(method);
        if (!state.used) {
            state.used = true;
            return Value::string("");
        }
        return self;
    }
    switch (self.kind()) {
        case Kind::kString:
            return call_text_method(interpreter, self, method.name, args);
        case Kind::kDict:
            return dict_method(interpreter, self, method.name, args);
        case Kind::kLoop:
            return loop_method(interpreter, self.as<LoopObject>(), method.name, args);
        default:
            return list_method(interpreter, self, method.name, args);
    }
}

}  // namespace frontier::jinja
