#include "text/jinja_value.h"

#include <algorithm>
#include <cmath>

namespace frontier::jinja {

Value Value::undefined(std::string message) {
    Value value;
    auto object = std::make_shared<UndefinedObject>();
    object->message = std::move(message);
    value.object_ = std::move(object);
    return value;
}

Value Value::boolean(bool value, bool untrusted) {
    Value out(Kind::kBool, untrusted);
    out.integer_ = value ? 1 : 0;
    return out;
}

Value Value::integer(std::int64_t value, bool untrusted) {
    Value out(Kind::kInt, untrusted);
    out.integer_ = value;
    return out;
}

Value Value::real(double value, bool untrusted) {
    Value out(Kind::kFloat, untrusted);
    out.real_ = value;
    return out;
}

Value Value::string(Text text, bool markup) {
    auto object = std::make_shared<StringObject>();
    object->text = std::move(text);
    object->markup = markup;
    return Value::object(Kind::kString, std::move(object));
}

Value Value::string(std::string_view trusted) {
    return string(Text(std::string(trusted)));
}

Value Value::function(Function function) {
    Value out(Kind::kFunction);
    out.integer_ = static_cast<std::int64_t>(function);
    return out;
}

Value Value::object(Kind kind, std::shared_ptr<Object> object) {
    Value out(kind);
    out.object_ = std::move(object);
    return out;
}

const Text& Value::text() const {
    return as<StringObject>().text;
}
bool Value::markup() const {
    return as<StringObject>().markup;
}
const SequenceObject& Value::sequence() const {
    return as<SequenceObject>();
}
const DictObject& Value::dict() const {
    return as<DictObject>();
}
NamespaceObject& Value::name_space() const {
    return as<NamespaceObject>();
}

std::string Value::undefined_message() const {
    return object_ ? as<UndefinedObject>().message : "the value is undefined";
}

int Value::depth() const {
    if (is_sequence_object()) return sequence().depth;
    if (kind_ == Kind::kDict) return dict().depth;
    if (kind_ == Kind::kMethod) return as<MethodObject>().depth;
    if (kind_ == Kind::kLoop) return as<LoopObject>().items->depth + 1;
    return 0;
}

const Value* DictObject::find(std::string_view key) const {
    const auto found = string_keys.find(std::string(key));
    return found == string_keys.end() ? nullptr : &entries[found->second].second;
}

namespace {
// Whether two keys that are not strings are the same; keys are scalars or, rarely, tuples of them.
bool same_key(const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
        if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
        return a.as_double() == b.as_double();
    }
    if (a.kind() != b.kind()) return false;
    if (a.is(Kind::kNone) || a.is(Kind::kUndefined)) return true;
    if (a.is(Kind::kString)) return a.bytes() == b.bytes();
    if (a.is(Kind::kTuple)) {
        const auto& left = a.sequence().items;
        const auto& right = b.sequence().items;
        return std::equal(left.begin(), left.end(), right.begin(), right.end(), same_key);
    }
    return a.same_object(b);
}
}  // namespace

const Value* DictObject::find(const Value& key) const {
    if (key.is(Kind::kString)) return find(std::string_view(key.bytes()));
    for (const auto& [candidate, value] : entries) {
        if (!candidate.is(Kind::kString) && same_key(candidate, key)) return &value;
    }
    return nullptr;
}

void DictObject::insert(Value key, Value value) {
    if (const Value* existing = find(key)) {
        *const_cast<Value*>(existing) = std::move(value);
        return;
    }
    if (key.is(Kind::kString)) string_keys.emplace(key.bytes(), entries.size());
    entries.emplace_back(std::move(key), std::move(value));
}

const Value* NamespaceObject::find(std::string_view name) const {
    for (const auto& [key, value] : attributes) {
        if (key == name) return &value;
    }
    return nullptr;
}

void NamespaceObject::assign(std::string_view name, Value value) {
    for (auto& [key, existing] : attributes) {
        if (key == name) {
            existing = std::move(value);
            return;
        }
    }
    attributes.emplace_back(std::string(name), std::move(value));
}

std::string_view type_name(const Value& value) {
    switch (value.kind()) {
        case Kind::kUndefined:
            return "undefined";
        case Kind::kNone:
            return "none";
        case Kind::kBool:
            return "bool";
        case Kind::kInt:
            return "int";
        case Kind::kFloat:
            return "float";
        case Kind::kString:
            return "str";
        case Kind::kList:
            return "list";
        case Kind::kTuple:
            return "tuple";
        case Kind::kRange:
            return "range";
        case Kind::kView:
            return "dict view";
        case Kind::kGenerator:
            return "generator";
        case Kind::kDict:
            return "dict";
        case Kind::kNamespace:
            return "namespace";
        case Kind::kLoop:
            return "loop";
        case Kind::kMacro:
            return "macro";
        case Kind::kFunction:
            return "function";
        case Kind::kMethod:
            return "method";
    }
    return "?";
}

bool truthy(const Value& value) {
    switch (value.kind()) {
        case Kind::kUndefined:
        case Kind::kNone:
            return false;
        case Kind::kBool:
        case Kind::kInt:
            return value.as_int() != 0;
        case Kind::kFloat:
            return value.as_double() != 0;
        case Kind::kString:
            return !value.text().empty();
        case Kind::kList:
        case Kind::kTuple:
        case Kind::kRange:
        case Kind::kView:
            return !value.sequence().items.empty();
        case Kind::kDict:
            return !value.dict().entries.empty();
        default:
            return true;
    }
}

bool is_hashable(const Value& value) {
    switch (value.kind()) {
        case Kind::kList:
        case Kind::kDict:
        case Kind::kView:
            return false;
        case Kind::kTuple: {
            if (value.sequence().nodes > kMaxKeyNodes) return false;
            const auto& items = value.sequence().items;
            return std::all_of(items.begin(), items.end(), is_hashable);
        }
        default:
            return true;
    }
}

namespace {
Result<int> depth_above(int depth) {
    if (depth >= kMaxValueDepth) return bad_input("containers nest deeper than {} levels", kMaxValueDepth);
    return depth + 1;
}
}  // namespace

Result<Value> make_sequence(Meter& meter, Kind kind, std::vector<Value> items, std::string label) {
    FR_TRY(meter.allocate(kObjectOverheadBytes + sizeof(SequenceObject) + items.size() * sizeof(Value)));
    FR_TRY(meter.spend(items.size()));
    int depth = 0;
    std::uint64_t nodes = 1;
    for (const Value& item : items) {
        depth = std::max(depth, item.depth());
        nodes = std::min(nodes + (item.is(Kind::kTuple) ? item.sequence().nodes : 1), kMaxKeyNodes + 1);
    }
    auto object = std::make_shared<SequenceObject>();
    object->nodes = nodes;
    FR_ASSIGN(object->depth, depth_above(depth));
    object->items = std::move(items);
    object->label = std::move(label);
    return Value::object(kind, std::move(object));
}

Result<Value> make_dict(Meter& meter, std::vector<std::pair<Value, Value>> entries) {
    // A string key is stored a second time in the index.
    constexpr std::size_t kEntryBytes = 4 * sizeof(Value) + sizeof(std::string);
    FR_TRY(meter.allocate(kObjectOverheadBytes + sizeof(DictObject) + entries.size() * kEntryBytes));
    FR_TRY(meter.spend(entries.size()));
    auto object = std::make_shared<DictObject>();
    int depth = 0;
    std::size_t other_keys = 0;
    for (auto& [key, value] : entries) {
        if (!is_hashable(key)) return bad_input("unhashable type: '{}'", type_name(key));
        depth = std::max({depth, key.depth(), value.depth()});
        if (key.is(Kind::kString)) {
            FR_TRY(meter.allocate(key.bytes().size()));
        } else {
            FR_TRY(meter.spend(++other_keys));  // looked up one by one
        }
        object->insert(std::move(key), std::move(value));
    }
    FR_ASSIGN(object->depth, depth_above(depth));
    return Value::object(Kind::kDict, std::move(object));
}

namespace {
Result<bool> equal_items(Meter& meter, const std::vector<Value>& a, const std::vector<Value>& b, int depth) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        FR_ASSIGN(const bool same, equal(meter, a[i], b[i], depth));
        if (!same) return false;
    }
    return true;
}

Result<bool> equal_dicts(Meter& meter, const DictObject& a, const DictObject& b, int depth) {
    if (a.entries.size() != b.entries.size()) return false;
    for (const auto& [key, value] : a.entries) {
        FR_TRY(meter.spend(1));
        const Value* other = b.find(key);
        if (other == nullptr) return false;
        FR_ASSIGN(const bool same, equal(meter, value, *other, depth));
        if (!same) return false;
    }
    return true;
}
}  // namespace

Result<bool> equal(Meter& meter, const Value& a, const Value& b, int depth) {
    FR_TRY(meter.spend(1));
    if (depth > kMaxValueDepth) return bad_input("values nest too deeply to compare");
    if (a.is_number() && b.is_number()) {
        if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
        return a.as_double() == b.as_double();
    }
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Kind::kUndefined:
        case Kind::kNone:
            return true;
        case Kind::kString:
            FR_TRY(meter.scan(std::min(a.bytes().size(), b.bytes().size())));
            return a.bytes() == b.bytes();
        case Kind::kList:
        case Kind::kTuple:
        case Kind::kRange:
            return equal_items(meter, a.sequence().items, b.sequence().items, depth + 1);
        case Kind::kDict:
            return equal_dicts(meter, a.dict(), b.dict(), depth + 1);
        case Kind::kFunction:
            return a.as_function() == b.as_function();
        default:
            return a.same_object(b);
    }
}

Result<bool> less(Meter& meter, const Value& a, const Value& b, int depth) {
    FR_TRY(meter.spend(1));
    if (depth > kMaxValueDepth) return bad_input("values nest too deeply to compare");
    if (a.is(Kind::kUndefined)) return bad_input("{}", a.undefined_message());
    if (b.is(Kind::kUndefined)) return bad_input("{}", b.undefined_message());
    if (a.is_number() && b.is_number()) {
        if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int();
        return a.as_double() < b.as_double();
    }
    if (a.is(Kind::kString) && b.is(Kind::kString)) {
        FR_TRY(meter.scan(std::min(a.bytes().size(), b.bytes().size())));
        return a.bytes() < b.bytes();  // the order of UTF-8 bytes is that of code points
    }
    if (a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
        const auto& left = a.sequence().items;
        const auto& right = b.sequence().items;
        for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
            FR_ASSIGN(const bool same, equal(meter, left[i], right[i], depth + 1));
            if (!same) return less(meter, left[i], right[i], depth + 1);
        }
        return left.size() < right.size();
    }
    return bad_input("'{}' and '{}' cannot be ordered", type_name(a), type_name(b));
}

}  // namespace frontier::jinja
