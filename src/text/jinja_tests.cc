// The tests of `is`.
#include <algorithm>
#include <unordered_map>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

namespace {

using Test = Result<bool> (*)(Interpreter&, const Value& subject, const CallArgs& args);

bool is_iterable(const Value& value) {
    return value.is_sequence_object() || value.is(Kind::kString) || value.is(Kind::kDict) ||
           value.is(Kind::kUndefined) || value.is(Kind::kLoop);
}

// What has a length and could be indexed, as the reference defines it.
bool is_sequence(const Value& value) {
    return value.is(Kind::kList) || value.is(Kind::kTuple) || value.is(Kind::kRange) || value.is(Kind::kString) ||
           value.is(Kind::kDict) || value.is(Kind::kUndefined);
}

template <bool (*passes)(const Value&)>
Result<bool> unary(Interpreter&, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("a test", args, {}));
    return passes(subject);
}

template <Operator op>
Result<bool> comparison(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("a comparison", args, {"other"}, 1));
    return apply_comparison(interpreter, op, subject, bound.values[0]);
}

Result<Value> remainder(Interpreter& interpreter, const Value& subject, const Value& divisor) {
    if (subject.is(Kind::kUndefined)) return bad_input("{}", subject.undefined_message());
    if (!subject.is_number()) return bad_input("a {} is not divisible", type_name(subject));
    return apply_binary(interpreter, Operator::kModulo, subject, divisor);
}

Result<bool> odd(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("odd", args, {}));
    FR_ASSIGN(const Value rest, remainder(interpreter, subject, Value::integer(2)));
    return rest.as_double() == 1;
}

Result<bool> even(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("even", args, {}));
    FR_ASSIGN(const Value rest, remainder(interpreter, subject, Value::integer(2)));
    return rest.as_double() == 0;
}

Result<bool> divisible_by(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("divisibleby", args, {"num"}, 1));
    FR_ASSIGN(const Value rest, remainder(interpreter, subject, bound.values[0]));
    return rest.as_double() == 0;
}

// Identity, as far as values have one here: equal constants of one type, or the same object.
Result<bool> same_as(Interpreter&, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("sameas", args, {"other"}, 1));
    const Value& other = bound.values[0];
    if (subject.kind() != other.kind()) return false;
    if (subject.is_integral()) return subject.as_int() == other.as_int();
    if (subject.is(Kind::kFloat)) return subject.as_double() == other.as_double();
    if (subject.is(Kind::kNone)) return true;
    return subject.same_object(other);
}

Result<bool> is_cased_text(Interpreter& interpreter, const Value& subject, std::string_view method) {
    FR_ASSIGN(Text text, interpreter.to_text(subject));
    FR_ASSIGN(const Value holds, call_text_method(interpreter, Value::string(std::move(text)), method, {}));
    return holds.as_bool();
}

Result<bool> lower(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("lower", args, {}));
    return is_cased_text(interpreter, subject, "islower");
}

Result<bool> upper(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("upper", args, {}));
    return is_cased_text(interpreter, subject, "isupper");
}

Result<bool> names_filter(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("filter", args, {}));
    FR_ASSIGN(const Text name, interpreter.to_text(subject));
    return has_filter(name.bytes());
}

Result<bool> names_test(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("test", args, {}));
    FR_ASSIGN(const Text name, interpreter.to_text(subject));
    return has_test(name.bytes());
}

bool is_defined(const Value& value) {
    return !value.is(Kind::kUndefined);
}
bool is_undefined(const Value& value) {
    return value.is(Kind::kUndefined);
}
bool is_none(const Value& value) {
    return value.is(Kind::kNone);
}
bool is_string(const Value& value) {
    return value.is(Kind::kString);
}
bool is_number(const Value& value) {
    return value.is_number();
}
bool is_integer(const Value& value) {
    return value.is(Kind::kInt);
}
bool is_float(const Value& value) {
    return value.is(Kind::kFloat);
}
bool is_mapping(const Value& value) {
    return value.is(Kind::kDict);
}
bool is_boolean(const Value& value) {
    return value.is(Kind::kBool);
}
bool is_true(const Value& value) {
    return value.is(Kind::kBool) && value.as_bool();
}
bool is_false(const Value& value) {
    return value.is(Kind::kBool) && !value.as_bool();
}
bool is_callable(const Value& value) {
    // An undefined value has a call operator, which raises.
    return value.is(Kind::kMacro) || value.is(Kind::kFunction) || value.is(Kind::kMethod) ||
           value.is(Kind::kUndefined) || value.is(Kind::kLoop);
}
bool is_escaped(const Value& value) {
    return value.is(Kind::kString) && value.markup();
}

const std::unordered_map<std::string_view, Test>& tests() {
    static const std::unordered_map<std::string_view, Test> kTests = {
        {"defined", unary<is_defined>},
        {"undefined", unary<is_undefined>},
        {"none", unary<is_none>},
        {"string", unary<is_string>},
        {"number", unary<is_number>},
        {"integer", unary<is_integer>},
        {"float", unary<is_float>},
        {"mapping", unary<is_mapping>},
        {"iterable", unary<is_iterable>},
        {"sequence", unary<is_sequence>},
        {"boolean", unary<is_boolean>},
        {"true", unary<is_true>},
        {"false", unary<is_false>},
        {"callable", unary<is_callable>},
        {"escaped", unary<is_escaped>},
        {"odd", odd},
        {"even", even},
        {"divisibleby", divisible_by},
        {"sameas", same_as},
        {"lower", lower},
        {"upper", upper},
        {"filter", names_filter},
        {"test", names_test},
        {"in", comparison<Operator::kIn>},
        {"eq", comparison<Operator::kEqual>},
        {"equalto", comparison<Operator::kEqual>},
        {"==", comparison<Operator::kEqual>},
        {"ne", comparison<Operator::kNotEqual>},
        {"!=", comparison<Operator::kNotEqual>},
        {"lt", comparison<Operator::kLess>},
        {"lessthan", comparison<Operator::kLess>},
        {"<", comparison<Operator::kLess>},
        {"le", comparison<Operator::kLessEqual>},
        {"<=", comparison<Operator::kLessEqual>},
        {"gt", comparison<Operator::kGreater>},
        {"greaterthan", comparison<Operator::kGreater>},
        {">", comparison<Operator::kGreater>},
        {"ge", comparison<Operator::kGreaterEqual>},
        {">=", comparison<Operator::kGreaterEqual>},
    };
    return kTests;
}

}  // namespace

bool has_test(std::string_view name) {
    return tests().contains(name);
}

Result<bool> Interpreter::call_test(const std::string& name, const Value& subject, const CallArgs& args) {
    FR_TRY(meter_.spend(1));
    const auto found = tests().find(name);
    if (found == tests().end()) return bad_input("no test named '{}'", name.substr(0, 100));
    return found->second(*this, subject, args);
}

}  // namespace frontier::jinja
