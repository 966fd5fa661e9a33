#include "text/jinja_eval.h"

#include <algorithm>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

Result<BoundArgs> bind(std::string_view function, const CallArgs& args, std::initializer_list<std::string_view> names,
                       std::size_t required) {
    if (args.positional.size() > names.size()) {
        return bad_input("{} takes at most {} arguments, {} given", function, names.size(), args.positional.size());
    }
    BoundArgs bound{args.positional, std::vector<bool>(args.positional.size(), true)};
    bound.values.resize(names.size());
    bound.given.resize(names.size(), false);
    for (const auto& [name, value] : args.named) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) return bad_input("{} has no argument '{}'", function, name);
        const auto index = static_cast<std::size_t>(found - names.begin());
        if (bound.given[index]) return bad_input("{}: the argument '{}' is given twice", function, name);
        bound.values[index] = value;
        bound.given[index] = true;
    }
    for (std::size_t i = 0; i < required; ++i) {
        if (!bound.given[i]) return bad_input("{} needs the argument '{}'", function, *(names.begin() + i));
    }
    return bound;
}

Interpreter::Interpreter(const Limits& limits, Context context, std::optional<std::int64_t> now_unix_s)
    : meter_(limits), context_(std::move(context)), now_unix_s_(now_unix_s), scope_(std::make_shared<Scope>()) {}

// Namespaces and captured scopes may refer to each other in cycles; emptying them one by one breaks these.
Interpreter::~Interpreter() {
    for (const auto& name_space : namespaces_) name_space->attributes.clear();
    for (const auto& scope : captured_) scope->variables.clear();
}

Result<Value> Interpreter::make_string(Text text, bool markup) {
    FR_TRY(meter_.check_string(text.size()));
    FR_TRY(meter_.allocate(kObjectOverheadBytes + sizeof(StringObject) + text.cost_bytes()));
    return Value::string(std::move(text), markup);
}

Result<Text> Interpreter::to_text(const Value& value) {
    Text out;
    FR_TRY(append_str(meter_, out, value));
    FR_TRY(meter_.allocate(out.cost_bytes()));
    return out;
}

Result<std::shared_ptr<SequenceObject>> Interpreter::iterate(const Value& value) {
    switch (value.kind()) {
        case Kind::kUndefined:
            return std::make_shared<SequenceObject>();
        case Kind::kList:
        case Kind::kTuple:
        case Kind::kRange:
        case Kind::kView:
            FR_TRY(meter_.spend(1));
            return std::static_pointer_cast<SequenceObject>(value.object());
        case Kind::kGenerator: {
            auto& generator = value.as<SequenceObject>();
            if (generator.consumed) return std::make_shared<SequenceObject>();
            generator.consumed = true;
            return std::static_pointer_cast<SequenceObject>(value.object());
        }
        case Kind::kDict: {
            FR_TRY(meter_.allocate(value.dict().entries.size() * sizeof(Value)));
            auto keys = std::make_shared<SequenceObject>();
            for (const auto& [key, item] : value.dict().entries) keys->items.push_back(key);
            keys->depth = value.dict().depth;
            return keys;
        }
        case Kind::kString: {
            auto characters = std::make_shared<SequenceObject>();
            const Text& text = value.text();
            for (std::size_t i = 0; i < text.size();) {
                const std::size_t size = character_at(text.bytes(), i).size_bytes;
                FR_ASSIGN(Value character, make_string(text.slice(i, i + size)));
                characters->items.push_back(std::move(character));
                i += size;
            }
            return characters;
        }
        default:
            return bad_input("a value of type {} cannot be iterated over", type_name(value));
    }
}

Result<bool> Interpreter::contains(const Value& container, const Value& item) {
    if (container.is(Kind::kString)) {
        if (!item.is(Kind::kString)) return bad_input("'in <string>' needs a string, not {}", type_name(item));
        FR_TRY(meter_.scan(container.bytes().size() + item.bytes().size()));
        return find_bytes(container.bytes(), item.bytes(), 0) != std::string::npos;
    }
    if (container.is(Kind::kDict)) {
        if (!is_hashable(item)) return bad_input("unhashable type: '{}'", type_name(item));
        FR_TRY(meter_.spend(item.is(Kind::kString) ? 1 : container.dict().entries.size()));
        return container.dict().find(item) != nullptr;
    }
    FR_ASSIGN(const auto sequence, iterate(container));
    for (const Value& candidate : sequence->items) {
        FR_ASSIGN(const bool same, equal(meter_, candidate, item));
        if (same) return true;
    }
    return false;
}

namespace {
std::string object_name(const Value& object) {
    return fmt::format("'{} object'", type_name(object));
}
}  // namespace

Result<Value> Interpreter::get_attribute(const Value& object, std::string_view name) {
    if (object.is(Kind::kUndefined)) return bad_input("{}", object.undefined_message());
    FR_ASSIGN(std::optional<Value> attribute, find_attribute(*this, object, name));
    if (attribute) return std::move(*attribute);
    if (object.is(Kind::kDict)) {
        FR_TRY(meter_.scan(name.size()));
        if (const Value* item = object.dict().find(name)) return *item;
    }
    return Value::undefined(fmt::format("{} has no attribute '{}'", object_name(object), name.substr(0, 100)));
}

Result<Value> Interpreter::get_item(const Value& object, const Value& key) {
    if (object.is(Kind::kUndefined)) return bad_input("{}", object.undefined_message());
    if (object.is(Kind::kDict) && is_hashable(key)) {
        FR_TRY(meter_.spend(key.is(Kind::kString) ? 1 + key.bytes().size() / 64 : object.dict().entries.size()));
        if (const Value* item = object.dict().find(key)) return *item;
    }
    const bool indexed = object.is(Kind::kList) || object.is(Kind::kTuple) || object.is(Kind::kRange);
    if (key.is_integral() && indexed) {
        const auto& items = object.sequence().items;
        const auto size = static_cast<std::int64_t>(items.size());
        const std::int64_t index = key.as_int() < 0 ? key.as_int() + size : key.as_int();
        if (index >= 0 && index < size) return items[static_cast<std::size_t>(index)];
    }
    if (key.is_integral() && object.is(Kind::kString)) {
        const std::string& bytes = object.bytes();
        FR_TRY(meter_.scan(bytes.size()));
        std::int64_t index = key.as_int();
        if (index < 0) index += static_cast<std::int64_t>(count_characters(bytes));
        if (index >= 0) {
            const std::size_t begin = offset_of_character(bytes, static_cast<std::size_t>(index));
            if (begin < bytes.size()) {
                return make_string(object.text().slice(begin, begin + character_at(bytes, begin).size_bytes));
            }
        }
    }
    if (key.is(Kind::kString)) {
        FR_ASSIGN(std::optional<Value> attribute, find_attribute(*this, object, key.bytes()));
        if (attribute) return std::move(*attribute);
        return Value::undefined(
            fmt::format("{} has no attribute '{}'", object_name(object), key.bytes().substr(0, 100)));
    }
    return Value::undefined(fmt::format("{} has no such element", object_name(object)));
}

Result<Value> Interpreter::call(const Value& callee, CallArgs args) {
    const Level level(*this);
    if (depth_ > meter_.limits().max_depth) return bad_input("calls nest deeper than {} levels", depth_ - 1);
    switch (callee.kind()) {
        case Kind::kUndefined:
            return bad_input("{}", callee.undefined_message());
        case Kind::kMacro:
            return call_macro(callee.as<MacroObject>(), std::move(args));
        case Kind::kMethod:
            return call_method(*this, callee.as<MethodObject>(), args);
        case Kind::kFunction:
            return call_function(callee.as_function(), args);
        default:
            return bad_input("a value of type {} cannot be called", type_name(callee));
    }
}

Result<Value> Interpreter::evaluate(const Expr& expr) {
    if (expr.kind == ExprKind::kConstant) return expr.constant;
    const Level level(*this);
    line_ = expr.line;
    if (depth_ > meter_.limits().max_depth) return bad_input("evaluation nests deeper than {} levels", depth_ - 1);
    FR_TRY(meter_.spend(1));
    return evaluate_inner(expr);
}

Result<Value> Interpreter::evaluate_inner(const Expr& expr) {
    switch (expr.kind) {
        case ExprKind::kConstant:
            return expr.constant;
        case ExprKind::kName:
            return evaluate_name(expr);
        case ExprKind::kList:
        case ExprKind::kTuple:
            return evaluate_items(expr);
        case ExprKind::kDict:
            return evaluate_dict(expr);
        case ExprKind::kAttribute: {
            FR_ASSIGN(const Value object, evaluate(*expr.children[0]));
            return get_attribute(object, expr.name);
        }
        case ExprKind::kSubscript:
            return evaluate_subscript(expr);
        case ExprKind::kCall:
            return evaluate_call(expr);
        case ExprKind::kFilter: {
            FR_ASSIGN(const Value subject, evaluate(*expr.children[0]));
            return evaluate_filter(expr, subject);
        }
        case ExprKind::kTest:
            return evaluate_test(expr);
        case ExprKind::kNot: {
            FR_ASSIGN(const Value operand, evaluate(*expr.children[0]));
            return Value::boolean(!truthy(operand));
        }
        case ExprKind::kNegate:
        case ExprKind::kPlus: {
            FR_ASSIGN(const Value operand, evaluate(*expr.children[0]));
            return negate(operand, expr.kind == ExprKind::kNegate);
        }
        case ExprKind::kAnd:
        case ExprKind::kOr: {
            FR_ASSIGN(Value left, evaluate(*expr.children[0]));
            if (truthy(left) != (expr.kind == ExprKind::kAnd)) return left;
            return evaluate(*expr.children[1]);
        }
        case ExprKind::kConditional: {
            FR_ASSIGN(const Value condition, evaluate(*expr.children[0]));
            if (truthy(condition)) return evaluate(*expr.children[1]);
            if (expr.children[2]) return evaluate(*expr.children[2]);
            return Value::undefined("the inline if has no else and its condition is false");
        }
        case ExprKind::kCompare:
            return evaluate_compare(expr);
        case ExprKind::kConcat:
            return evaluate_concat(expr);
        case ExprKind::kBinary: {
            FR_ASSIGN(const Value left, evaluate(*expr.children[0]));
            FR_ASSIGN(const Value right, evaluate(*expr.children[1]));
            return apply_binary(*this, expr.operators[0], left, right);
        }
        case ExprKind::kSlice:
            break;
    }
    return bad_input("a slice is possible in a subscript only");
}

Result<Value> Interpreter::evaluate_name(const Expr& expr) {
    for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
        FR_TRY(meter_.spend(scope->variables.size() / 8));
        for (const auto& [name, value] : scope->variables) {
            if (name == expr.name) return value;
        }
    }
    const auto found = context_.find(expr.name);
    if (found != context_.end()) return found->second;
    static const std::unordered_map<std::string_view, Function> kGlobals = {
        {"range", Function::kRange},
        {"dict", Function::kDict},
        {"namespace", Function::kNamespace},
        {"raise_exception", Function::kRaiseException},
        {"strftime_now", Function::kStrftimeNow},
        {"joiner", Function::kJoiner},
    };
    const auto global = kGlobals.find(expr.name);
    if (global != kGlobals.end()) return Value::function(global->second);
    if (expr.name == "cycler" || expr.name == "lipsum") {
        return bad_input("the function '{}' is not supported in chat templates", expr.name);
    }
    return Value::undefined(fmt::format("'{}' is undefined", expr.name.substr(0, 100)));
}

Result<Value> Interpreter::evaluate_items(const Expr& expr) {
    std::vector<Value> items;
    items.reserve(expr.children.size());
    for (const ExprPtr& child : expr.children) {
        FR_ASSIGN(Value item, evaluate(*child));
        items.push_back(std::move(item));
    }
    return make_sequence(meter_, expr.kind == ExprKind::kList ? Kind::kList : Kind::kTuple, std::move(items));
}

Result<Value> Interpreter::evaluate_dict(const Expr& expr) {
    std::vector<std::pair<Value, Value>> entries;
    for (std::size_t i = 0; i + 1 < expr.children.size(); i += 2) {
        FR_ASSIGN(Value key, evaluate(*expr.children[i]));
        FR_ASSIGN(Value value, evaluate(*expr.children[i + 1]));
        entries.emplace_back(std::move(key), std::move(value));
    }
    return make_dict(meter_, std::move(entries));
}

Result<Value> Interpreter::evaluate_subscript(const Expr& expr) {
    FR_ASSIGN(const Value object, evaluate(*expr.children[0]));
    const Expr& index = *expr.children[1];
    if (index.kind == ExprKind::kSlice) return evaluate_slice(object, index);
    FR_ASSIGN(const Value key, evaluate(index));
    return get_item(object, key);
}

Result<Value> Interpreter::evaluate_slice(const Value& object, const Expr& slice) {
    Value parts[3] = {Value::none(), Value::none(), Value::none()};
    for (std::size_t i = 0; i < 3; ++i) {
        if (slice.children[i]) {
            FR_ASSIGN(parts[i], evaluate(*slice.children[i]));
        }
    }
    return slice_value(*this, object, parts[0], parts[1], parts[2]);
}

Result<CallArgs> Interpreter::evaluate_arguments(const Expr& expr) {
    CallArgs args;
    for (const ExprPtr& argument : expr.arguments) {
        FR_ASSIGN(Value value, evaluate(*argument));
        args.positional.push_back(std::move(value));
    }
    for (const auto& [name, argument] : expr.keywords) {
        FR_ASSIGN(Value value, evaluate(*argument));
        args.named.emplace_back(name, std::move(value));
    }
    if (expr.star_arguments) {
        FR_ASSIGN(const Value value, evaluate(*expr.star_arguments));
        FR_ASSIGN(const auto sequence, iterate(value));
        FR_TRY(meter_.allocate(sequence->items.size() * sizeof(Value)));
        args.positional.insert(args.positional.end(), sequence->items.begin(), sequence->items.end());
    }
    if (expr.star_keywords) {
        FR_ASSIGN(const Value value, evaluate(*expr.star_keywords));
        if (!value.is(Kind::kDict)) return bad_input("the argument after ** is a {}, not a dict", type_name(value));
        for (const auto& [key, item] : value.dict().entries) {
            if (!key.is(Kind::kString)) return bad_input("keyword arguments need names that are strings");
            FR_TRY(meter_.allocate(sizeof(Value) + key.bytes().size()));
            const bool twice = std::any_of(args.named.begin(), args.named.end(),
                                           [&](const auto& named) { return named.first == key.bytes(); });
            FR_TRY(meter_.spend(args.named.size()));
            if (twice) return bad_input("the argument '{}' is given twice", key.bytes());
            args.untrusted_names |= key.text().any_untrusted();
            args.named.emplace_back(key.bytes(), item);
        }
    }
    return args;
}

Result<Value> Interpreter::evaluate_call(const Expr& expr) {
    FR_ASSIGN(const Value callee, evaluate(*expr.children[0]));
    FR_ASSIGN(CallArgs args, evaluate_arguments(expr));
    line_ = expr.line;
    return call(callee, std::move(args));
}

Result<Value> Interpreter::evaluate_filter(const Expr& expr, const Value& subject) {
    FR_ASSIGN(const CallArgs args, evaluate_arguments(expr));
    line_ = expr.line;
    return call_filter(expr.name, subject, args);
}

Result<Value> Interpreter::apply_filters(const Expr& expr, const Value& input) {
    Value subject = input;
    if (expr.children[0]) {
        FR_ASSIGN(subject, apply_filters(*expr.children[0], input));
    }
    return evaluate_filter(expr, subject);
}

Result<Value> Interpreter::evaluate_test(const Expr& expr) {
    FR_ASSIGN(const Value subject, evaluate(*expr.children[0]));
    FR_ASSIGN(const CallArgs args, evaluate_arguments(expr));
    line_ = expr.line;
    FR_ASSIGN(const bool holds, call_test(expr.name, subject, args));
    return Value::boolean(holds);
}

Result<Value> Interpreter::call_filter(const std::string& name, const Value& subject, const CallArgs& args) {
    FR_TRY(meter_.spend(1));
    const Filter filter = find_filter(name);
    if (filter == nullptr) return bad_input("no filter named '{}'", name.substr(0, 100));
    return filter(*this, subject, args);
}

Result<Value> Interpreter::evaluate_compare(const Expr& expr) {
    FR_ASSIGN(Value left, evaluate(*expr.children[0]));
    for (std::size_t i = 0; i < expr.operators.size(); ++i) {
        FR_ASSIGN(Value right, evaluate(*expr.children[i + 1]));
        FR_ASSIGN(const bool holds, apply_comparison(*this, expr.operators[i], left, right));
        if (!holds) return Value::boolean(false);
        left = std::move(right);
    }
    return Value::boolean(true);
}

Result<Value> Interpreter::evaluate_concat(const Expr& expr) {
    Text out;
    for (const ExprPtr& child : expr.children) {
        FR_ASSIGN(const Value value, evaluate(*child));
        FR_TRY(output(out, value));  // charged at once, because the next operand may hold a concatenation of its own
    }
    FR_TRY(meter_.allocate(kObjectOverheadBytes + sizeof(StringObject)));
    return Value::string(std::move(out));
}

}  // namespace frontier::jinja
