// The values of a template: Python's types as far as Jinja shows them. All but namespaces and loops are immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja_limits.h"
#include "text/jinja_text.h"

namespace frontier::jinja {

enum class Kind : std::uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kList,
    kTuple,
    kRange,      // sequence without concatenation
    kView,       // dict.items() and its like: iterable with a length, no index
    kGenerator,  // iterable once, no length
    kDict,
    kNamespace,
    kLoop,
    kMacro,
    kFunction,
    kMethod
};

// The callable globals of a chat template.
enum class Function : std::uint8_t { kRange, kDict, kNamespace, kRaiseException, kStrftimeNow, kJoiner };

struct Object {
    virtual ~Object() = default;
};
struct SequenceObject;
struct DictObject;
struct NamespaceObject;
struct StringObject;

class Value {
public:
    Value() = default;  // undefined, without a name
    static Value undefined(std::string message);
    static Value none(bool untrusted = false) { return Value(Kind::kNone, untrusted); }
    static Value boolean(bool value, bool untrusted = false);
    static Value integer(std::int64_t value, bool untrusted = false);
    static Value real(double value, bool untrusted = false);
    static Value string(Text text, bool markup = false);  // uncharged; Interpreter::make_string charges
    static Value string(std::string_view trusted);
    static Value function(Function function);
    static Value object(Kind kind, std::shared_ptr<Object> object);

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool is_number() const { return kind_ == Kind::kBool || kind_ == Kind::kInt || kind_ == Kind::kFloat; }
    bool is_integral() const { return kind_ == Kind::kBool || kind_ == Kind::kInt; }
    bool is_sequence_object() const { return kind_ >= Kind::kList && kind_ <= Kind::kGenerator; }
    // Scalars only: this number or constant was given by the caller.
    bool untrusted() const { return untrusted_; }

    bool as_bool() const { return integer_ != 0; }
    std::int64_t as_int() const { return integer_; }  // kBool, kInt
    double as_double() const { return kind_ == Kind::kFloat ? real_ : static_cast<double>(integer_); }
    Function as_function() const { return static_cast<Function>(integer_); }
    const Text& text() const;  // kString
    const std::string& bytes() const { return text().bytes(); }
    bool markup() const;
    const SequenceObject& sequence() const;
    const DictObject& dict() const;
    NamespaceObject& name_space() const;
    template <typename T>
    T& as() const {
        return static_cast<T&>(*object_);
    }
    bool same_object(const Value& other) const { return object_ == other.object_; }
    const std::shared_ptr<Object>& object() const { return object_; }
    // Why it is undefined, for the error of whoever uses it.
    std::string undefined_message() const;

    // Levels of containers below and including this value.
    int depth() const;

private:
    explicit Value(Kind kind, bool untrusted = false) : kind_(kind), untrusted_(untrusted) {}

    Kind kind_ = Kind::kUndefined;
    bool untrusted_ = false;
    union {
        std::int64_t integer_ = 0;
        double real_;
    };
    std::shared_ptr<Object> object_;
};

struct UndefinedObject : Object {
    std::string message;
};
struct StringObject : Object {
    Text text;
    bool markup = false;  // made by `safe` or `escape`: joining it with + escapes the other side
};
struct SequenceObject : Object {
    std::vector<Value> items;
    int depth = 1;
    std::uint64_t nodes = 1;  // scalars below, counted as often as they are referred to; saturates
    std::string label;        // repr of a range; type name of a view
    bool consumed = false;    // generators
};
// Keys keep their order of insertion; a later value for the same key replaces the earlier one in place.
struct DictObject : Object {
    std::vector<std::pair<Value, Value>> entries;
    std::unordered_map<std::string, std::size_t> string_keys;
    int depth = 1;

    const Value* find(std::string_view key) const;
    const Value* find(const Value& key) const;  // any hashable kind
    void insert(Value key, Value value);
};
struct NamespaceObject : Object {
    std::vector<std::pair<std::string, Value>> attributes;
    bool untrusted_names = false;

    const Value* find(std::string_view name) const;
    void assign(std::string_view name, Value value);
};
struct LoopObject : Object {
    std::shared_ptr<SequenceObject> items;
    std::size_t index = 0;
    std::optional<std::vector<Value>> last_changed;
};
// The method `name` of `self`, or a joiner() with `self` as its separator.
struct MethodObject : Object {
    Value self;
    std::string name;
    int depth = 1;
    bool used = false;  // joiner: called before
};

// Names as Python's type() shows them in errors.
std::string_view type_name(const Value& value);
bool truthy(const Value& value);
bool is_hashable(const Value& value);

// A list, tuple or other sequence; fails when nested too deeply or too large for the budget.
Result<Value> make_sequence(Meter& meter, Kind kind, std::vector<Value> items, std::string label = {});
Result<Value> make_dict(Meter& meter, std::vector<std::pair<Value, Value>> entries);

Result<bool> equal(Meter& meter, const Value& a, const Value& b, int depth = 0);
// a < b by Python's rules; TypeErrors are errors. `case_insensitive` folds strings as Jinja's sort does.
Result<bool> less(Meter& meter, const Value& a, const Value& b, int depth = 0);

// str() and repr(). Undefined prints as nothing.
Status append_str(Meter& meter, Text& out, const Value& value);
Status append_repr(Meter& meter, Text& out, const Value& value, int depth = 0);
std::string format_double(double value);

struct JsonStyle {
    bool ensure_ascii = false;
    bool sort_keys = false;
    std::optional<std::string> indent;  // one level of indentation
    std::string item_separator = ", ";
    std::string key_separator = ": ";
};
// json.dumps.
Status append_json(Meter& meter, Text& out, const Value& value, const JsonStyle& style, int depth = 0);

}  // namespace frontier::jinja
