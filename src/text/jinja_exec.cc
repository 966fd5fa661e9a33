// Statements: text, output, loops, conditions, assignments, macros.
#include <algorithm>

#include "text/jinja_builtins.h"
#include "text/jinja_eval.h"

namespace frontier::jinja {

// Enters a scope below `parent`; returns to the one before when it ends.
class Interpreter::ScopeGuard {
public:
    ScopeGuard(Interpreter& interpreter, std::shared_ptr<Scope> parent)
        : interpreter_(interpreter), outer_(interpreter.scope_) {
        interpreter_.scope_ = std::make_shared<Scope>();
        interpreter_.scope_->parent = std::move(parent);
    }
    explicit ScopeGuard(Interpreter& interpreter) : ScopeGuard(interpreter, interpreter.scope_) {}
    ~ScopeGuard() { interpreter_.scope_ = std::move(outer_); }
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

    const std::shared_ptr<Scope>& outer() const { return outer_; }
    // The next iteration starts without the variables of the last one.
    void renew() {
        if (interpreter_.scope_.use_count() == 1) {
            interpreter_.scope_->variables.clear();
            return;
        }
        auto fresh = std::make_shared<Scope>();  // a macro has captured the old one
        fresh->parent = interpreter_.scope_->parent;
        interpreter_.scope_ = std::move(fresh);
    }

private:
    Interpreter& interpreter_;
    std::shared_ptr<Scope> outer_;
};

Result<Text> Interpreter::run(const StmtList& body) {
    Text out;
    FR_ASSIGN([[maybe_unused]] const Flow flow, execute(body, out));
    return out;
}

Status Interpreter::output(Text& out, const Value& value) {
    const std::size_t before = out.cost_bytes();
    FR_TRY(append_str(meter_, out, value));
    return meter_.allocate(out.cost_bytes() - before);
}

Result<Interpreter::Flow> Interpreter::execute(const StmtList& body, Text& out) {
    for (const auto& statement : body) {
        FR_TRY(meter_.spend(1));
        line_ = statement->line;
        if (statement->kind == StmtKind::kText) {
            out.append(statement->text, false);
            FR_TRY(meter_.allocate(statement->text.size()));
            FR_TRY(meter_.check_string(out.size()));
            continue;
        }
        FR_ASSIGN(const Flow flow, execute(*statement, out));
        if (flow != Flow::kNormal) return flow;
    }
    return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::execute_scoped(const StmtList& body, Text& out) {
    const ScopeGuard guard(*this);
    return execute(body, out);
}

Result<Interpreter::Flow> Interpreter::execute(const Stmt& statement, Text& out) {
    const Level level(*this);
    if (depth_ > meter_.limits().max_depth) return bad_input("evaluation nests deeper than {} levels", depth_ - 1);
    switch (statement.kind) {
        case StmtKind::kText:
            break;
        case StmtKind::kOutput: {
            FR_ASSIGN(const Value value, evaluate(*statement.expression));
            FR_TRY(output(out, value));
            break;
        }
        case StmtKind::kFor:
            return execute_for(statement, out);
        case StmtKind::kIf: {
            FR_ASSIGN(const Value condition, evaluate(*statement.expression));
            return execute(truthy(condition) ? statement.body : statement.otherwise, out);
        }
        case StmtKind::kSet:
        case StmtKind::kSetBlock:
            FR_TRY(execute_set(statement));
            break;
        case StmtKind::kMacro: {
            FR_ASSIGN(Value macro, make_macro(*statement.macro));
            FR_TRY(meter_.spend(scope_->variables.size() / 8));
            assign_name(statement.macro->name, std::move(macro));
            break;
        }
        case StmtKind::kCallBlock:
            FR_TRY(execute_call_block(statement, out));
            break;
        case StmtKind::kFilterBlock: {
            FR_ASSIGN(const Value body, capture(statement.body));
            FR_ASSIGN(const Value filtered, apply_filters(*statement.expression, body));
            FR_TRY(output(out, filtered));
            break;
        }
        case StmtKind::kWith:
            return execute_with(statement, out);
        case StmtKind::kScope:
            return execute_scoped(statement.body, out);
        case StmtKind::kBreak:
            return Flow::kBreak;
        case StmtKind::kContinue:
            return Flow::kContinue;
    }
    return Flow::kNormal;
}

// The items that the loop's own `if` lets through.
Result<std::vector<Value>> Interpreter::filter_items(const Stmt& statement, const std::vector<Value>& items) {
    std::vector<Value> kept;
    ScopeGuard guard(*this);
    for (const Value& item : items) {
        guard.renew();
        FR_TRY(assign(statement.target, item));
        FR_ASSIGN(const Value keep, evaluate(*statement.condition));
        if (!truthy(keep)) continue;
        FR_TRY(meter_.allocate(sizeof(Value)));
        kept.push_back(item);
    }
    return kept;
}

Result<Interpreter::Flow> Interpreter::execute_for(const Stmt& statement, Text& out) {
    FR_ASSIGN(const Value iterable, evaluate(*statement.expression));
    FR_ASSIGN(auto items, iterate(iterable));
    if (statement.condition) {
        FR_ASSIGN(std::vector<Value> kept, filter_items(statement, items->items));
        FR_ASSIGN(const Value list, make_list(std::move(kept)));
        items = std::static_pointer_cast<SequenceObject>(list.object());
    }
    if (items->items.empty()) return execute_scoped(statement.otherwise, out);
    auto loop = std::make_shared<LoopObject>();
    loop->items = items;
    const Value loop_value = Value::object(Kind::kLoop, loop);
    ScopeGuard guard(*this);
    for (std::size_t i = 0; i < items->items.size(); ++i) {
        FR_TRY(meter_.spend(1));
        loop->index = i;
        guard.renew();
        assign_name("loop", loop_value);
        FR_TRY(assign(statement.target, items->items[i]));
        FR_ASSIGN(const Flow flow, execute(statement.body, out));
        if (flow == Flow::kBreak) break;
    }
    return Flow::kNormal;
}

Status Interpreter::execute_set(const Stmt& statement) {
    Value value;
    if (statement.kind == StmtKind::kSet) {
        FR_ASSIGN(value, evaluate(*statement.expression));
    } else {
        FR_ASSIGN(value, capture(statement.body));
        if (statement.expression) {
            FR_ASSIGN(value, apply_filters(*statement.expression, value));
        }
    }
    return assign(statement.target, value);
}

Result<Value> Interpreter::capture(const StmtList& body) {
    Text text;
    FR_ASSIGN([[maybe_unused]] const Flow flow, execute_scoped(body, text));
    return make_string(std::move(text));
}

Status Interpreter::execute_call_block(const Stmt& statement, Text& out) {
    const Expr& call_expr = *statement.expression;
    FR_ASSIGN(const Value callee, evaluate(*call_expr.children[0]));
    FR_ASSIGN(CallArgs args, evaluate_arguments(call_expr));
    FR_ASSIGN(Value caller, make_macro(*statement.macro));
    args.named.emplace_back("caller", std::move(caller));
    FR_ASSIGN(const Value result, call(callee, std::move(args)));
    return output(out, result);
}

Result<Interpreter::Flow> Interpreter::execute_with(const Stmt& statement, Text& out) {
    std::vector<Value> values;
    for (const auto& [target, expression] : statement.withs) {
        FR_ASSIGN(Value value, evaluate(*expression));
        values.push_back(std::move(value));
    }
    const ScopeGuard guard(*this);
    for (std::size_t i = 0; i < values.size(); ++i) FR_TRY(assign(statement.withs[i].first, values[i]));
    return execute(statement.body, out);
}

void Interpreter::assign_name(std::string_view name, Value value) {
    for (auto& [existing, slot] : scope_->variables) {
        if (existing == name) {
            slot = std::move(value);
            return;
        }
    }
    scope_->variables.emplace_back(name, std::move(value));
}

Status Interpreter::assign(const Target& target, const Value& value) {
    FR_TRY(meter_.spend(1 + scope_->variables.size() / 8));
    if (!target.attribute.empty()) {
        Expr name;
        name.kind = ExprKind::kName;
        name.line = line_;
        name.name = target.name;
        FR_ASSIGN(const Value object, evaluate_name(name));
        if (!object.is(Kind::kNamespace)) {
            return bad_input("'{}' is a {}; only a namespace has attributes to set", target.name, type_name(object));
        }
        FR_TRY(meter_.spend(1 + object.name_space().attributes.size() / 8));
        object.name_space().assign(target.attribute, value);
        return {};
    }
    if (!target.is_tuple) {
        assign_name(target.name, value);
        return {};
    }
    if (value.is(Kind::kUndefined)) return bad_input("{}", value.undefined_message());
    FR_ASSIGN(const auto items, iterate(value));
    if (items->items.size() != target.items.size()) {
        return bad_input("cannot unpack {} values into {} names", items->items.size(), target.items.size());
    }
    for (std::size_t i = 0; i < target.items.size(); ++i) FR_TRY(assign(target.items[i], items->items[i]));
    return {};
}

Result<Value> Interpreter::make_macro(const MacroNode& node) {
    FR_TRY(meter_.allocate(sizeof(MacroObject) + sizeof(Scope)));
    auto macro = std::make_shared<MacroObject>();
    macro->node = &node;
    macro->closure = scope_;
    if (captured_.empty() || captured_.back() != scope_) captured_.push_back(scope_);
    return Value::object(Kind::kMacro, std::move(macro));
}

Result<Value> Interpreter::call_macro(const MacroObject& macro, CallArgs args) {
    const MacroNode& node = *macro.node;
    std::vector<Value> values(node.parameters.size());
    std::vector<bool> given(node.parameters.size(), false);
    std::vector<Value> extra;
    for (std::size_t i = 0; i < args.positional.size(); ++i) {
        if (i < values.size()) {
            values[i] = std::move(args.positional[i]);
            given[i] = true;
        } else if (node.uses_varargs) {
            extra.push_back(std::move(args.positional[i]));
        } else {
            return bad_input("the macro '{}' takes at most {} arguments, {} given", node.name, values.size(),
                             args.positional.size());
        }
    }
    Value caller = Value::undefined("there is no caller: the macro was not used by a call block");
    std::vector<std::pair<Value, Value>> keywords;
    for (auto& [name, value] : args.named) {
        const auto found = std::find(node.parameters.begin(), node.parameters.end(), name);
        const auto index = static_cast<std::size_t>(found - node.parameters.begin());
        if (found != node.parameters.end() && !given[index]) {
            values[index] = std::move(value);
            given[index] = true;
        } else if (name == "caller" && node.uses_caller) {
            caller = std::move(value);
        } else if (node.uses_kwargs) {
            keywords.emplace_back(Value::string(Text(name, args.untrusted_names)), std::move(value));
        } else {
            return bad_input("the macro '{}' takes no argument '{}'", node.name, name);
        }
    }
    Text text;
    {
        const ScopeGuard guard(*this, macro.closure.lock());
        if (node.uses_caller) assign_name("caller", std::move(caller));
        if (node.uses_kwargs) {
            FR_ASSIGN(Value dict, make_dict(meter_, std::move(keywords)));
            assign_name("kwargs", std::move(dict));
        }
        if (node.uses_varargs) {
            FR_ASSIGN(Value tuple, make_sequence(meter_, Kind::kTuple, std::move(extra)));
            assign_name("varargs", std::move(tuple));
        }
        const std::size_t first_default = node.parameters.size() - node.defaults.size();
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!given[i] && i >= first_default) {
                FR_ASSIGN(values[i], evaluate(*node.defaults[i - first_default]));
            } else if (!given[i]) {
                values[i] = Value::undefined(fmt::format("parameter '{}' was not provided", node.parameters[i]));
            }
            assign_name(node.parameters[i], std::move(values[i]));
        }
        FR_ASSIGN([[maybe_unused]] const Flow flow, execute(node.body, text));
    }
    return make_string(std::move(text));
}

}  // namespace frontier::jinja
