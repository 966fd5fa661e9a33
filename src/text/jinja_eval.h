// Runs a syntax tree. One Interpreter renders once, on one thread; nothing it makes outlives it.
//
// Known differences from the reference: integers have 64 bits; map, select and their like run at once and not when
// their result is used, so that an error in an unused one is an error; upper and lower follow Unicode's full mappings
// only for the letters in common use and know no final sigma; functions and methods cannot be printed.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"

namespace frontier::jinja {

struct CallArgs {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
    bool untrusted_names = false;  // some of the names are the caller's (from **dict)
};

// Arguments matched to parameter names: values[i] is meaningful where given[i].
struct BoundArgs {
    std::vector<Value> values;
    std::vector<bool> given;

    const Value* find(std::size_t index) const { return given[index] ? &values[index] : nullptr; }
};
// Fails on too many, unknown or doubled arguments and when one of the first `required` is missing.
Result<BoundArgs> bind(std::string_view function, const CallArgs& args, std::initializer_list<std::string_view> names,
                       std::size_t required = 0);

// Variables of one block. Names point into the syntax tree.
struct Scope {
    std::vector<std::pair<std::string_view, Value>> variables;
    std::shared_ptr<Scope> parent;
};

struct MacroObject : Object {
    const MacroNode* node = nullptr;
    std::weak_ptr<Scope> closure;  // kept alive by the interpreter; owning it would close a cycle
};

class Interpreter {
public:
    using Context = std::unordered_map<std::string, Value>;

    Interpreter(const Limits& limits, Context context, std::optional<std::int64_t> now_unix_s = {});
    ~Interpreter();
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    Result<Text> run(const StmtList& body);
    // Where the last error happened.
    int line() const { return line_; }

    // For filters, tests, methods and functions.
    Meter& meter() { return meter_; }
    std::optional<std::int64_t> now_unix_s() const { return now_unix_s_; }
    Result<Value> make_string(Text text, bool markup = false);
    Result<Value> make_list(std::vector<Value> items) { return make_sequence(meter_, Kind::kList, std::move(items)); }
    Result<Value> make_generator(std::vector<Value> items) {
        return make_sequence(meter_, Kind::kGenerator, std::move(items));
    }
    // What a for loop sees: items, keys of a dict, characters; nothing for undefined. Uses a generator up.
    Result<std::shared_ptr<SequenceObject>> iterate(const Value& value);
    Result<Text> to_text(const Value& value);  // str()
    Result<bool> contains(const Value& container, const Value& item);
    Result<Value> get_attribute(const Value& object, std::string_view name);  // object.name
    Result<Value> get_item(const Value& object, const Value& key);            // object[key]
    Result<Value> call(const Value& callee, CallArgs args);
    Result<Value> call_filter(const std::string& name, const Value& subject, const CallArgs& args);
    Result<bool> call_test(const std::string& name, const Value& subject, const CallArgs& args);
    Result<Value> make_namespace(std::vector<std::pair<std::string, Value>> attributes, bool untrusted_names);

private:
    enum class Flow : std::uint8_t { kNormal, kBreak, kContinue };
    // One level of evaluation on the C++ stack.
    class Level {
    public:
        explicit Level(Interpreter& interpreter) : interpreter_(interpreter) { ++interpreter_.depth_; }
        ~Level() { --interpreter_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

    private:
        Interpreter& interpreter_;
    };
    class ScopeGuard;

    // Statements (jinja_exec.cc).
    Result<Flow> execute(const StmtList& body, Text& out);
    Result<Flow> execute(const Stmt& statement, Text& out);
    Result<Flow> execute_scoped(const StmtList& body, Text& out);
    Result<Flow> execute_for(const Stmt& statement, Text& out);
    Result<std::vector<Value>> filter_items(const Stmt& statement, const std::vector<Value>& items);
    Status execute_set(const Stmt& statement);
    Result<Value> capture(const StmtList& body);
    Status execute_call_block(const Stmt& statement, Text& out);
    Result<Flow> execute_with(const Stmt& statement, Text& out);
    Status assign(const Target& target, const Value& value);
    void assign_name(std::string_view name, Value value);
    Result<Value> make_macro(const MacroNode& node);
    Result<Value> call_macro(const MacroObject& macro, CallArgs args);
    Status output(Text& out, const Value& value);

    // Expressions (jinja_eval.cc).
    Result<Value> evaluate(const Expr& expr);
    Result<Value> evaluate_inner(const Expr& expr);
    Result<Value> evaluate_name(const Expr& expr);
    Result<Value> evaluate_items(const Expr& expr);
    Result<Value> evaluate_dict(const Expr& expr);
    Result<Value> evaluate_subscript(const Expr& expr);
    Result<Value> evaluate_slice(const Value& object, const Expr& slice);
    Result<Value> evaluate_call(const Expr& expr);
    Result<Value> evaluate_filter(const Expr& expr, const Value& subject);
    Result<Value> evaluate_test(const Expr& expr);
    Result<Value> evaluate_compare(const Expr& expr);
    Result<Value> evaluate_concat(const Expr& expr);
    Result<CallArgs> evaluate_arguments(const Expr& expr);
    // A filter chain below null, for blocks: `input` takes the place of the null.
    Result<Value> apply_filters(const Expr& expr, const Value& input);
    Result<Value> call_function(Function function, const CallArgs& args);

    Meter meter_;
    Context context_;
    std::optional<std::int64_t> now_unix_s_;
    std::shared_ptr<Scope> scope_;
    std::vector<std::shared_ptr<Scope>> captured_;  // scopes that macros refer to
    std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
    int depth_ = 0;
    int line_ = 0;
};

// Operators (jinja_operators.cc).
Result<Value> apply_binary(Interpreter& interpreter, Operator op, const Value& a, const Value& b);
Result<Value> negate(const Value& value, bool minus);
Result<bool> apply_comparison(Interpreter& interpreter, Operator op, const Value& a, const Value& b);
Result<Value> slice_value(Interpreter& interpreter, const Value& object, const Value& begin, const Value& end,
                          const Value& step);

}  // namespace frontier::jinja
