// The syntax tree. Nodes are generic: what `children` and `name` mean is listed beside each kind.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace frontier::jinja {

enum class ExprKind : std::uint8_t {
    kConstant,     // constant
    kName,         // name
    kList,         // children: items
    kTuple,        // children: items
    kDict,         // children: key, value, key, value ...
    kAttribute,    // children[0].name
    kSubscript,    // children[0][children[1]]
    kSlice,        // children: begin, end, step, each possibly null; only below kSubscript
    kCall,         // children[0](arguments)
    kFilter,       // children[0] | name(arguments); children[0] is null in filter blocks
    kTest,         // children[0] is name(arguments)
    kNot,          // children[0]
    kNegate,       // children[0]
    kPlus,         // children[0]
    kAnd,          // children[0], children[1]
    kOr,           // children[0], children[1]
    kConditional,  // children: condition, then, else (possibly null)
    kCompare,      // children: operands; operators: one between each pair
    kConcat,       // children: operands of ~
    kBinary        // children[0] operators[0] children[1]
};

enum class Operator : std::uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kNotIn
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
    ExprKind kind = ExprKind::kConstant;
    int line = 0;
    int depth = 1;  // levels of the tree below and including this node
    std::string name;
    Value constant;
    std::vector<ExprPtr> children;
    std::vector<Operator> operators;
    // Calls, filters and tests.
    std::vector<ExprPtr> arguments;
    std::vector<std::pair<std::string, ExprPtr>> keywords;
    ExprPtr star_arguments;
    ExprPtr star_keywords;
};

// What is assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
    std::string name;
    std::string attribute;  // not empty: name.attribute
    std::vector<Target> items;
    bool is_tuple = false;
};

enum class StmtKind : std::uint8_t {
    kText,         // text
    kOutput,       // expression
    kFor,          // target, expression, condition, body, otherwise
    kIf,           // expression, body, otherwise (an elif is an if there)
    kSet,          // target, expression
    kSetBlock,     // target, expression (a chain of filters or null), body
    kMacro,        // macro
    kCallBlock,    // expression (a call), macro (the caller)
    kFilterBlock,  // expression (a chain of filters), body
    kWith,         // withs, body
    kScope,        // body, in a scope of its own
    kBreak,
    kContinue
};

struct Stmt;
using StmtList = std::vector<std::unique_ptr<Stmt>>;

struct MacroNode {
    std::string name;
    std::vector<std::string> parameters;
    std::vector<ExprPtr> defaults;  // of the last parameters
    StmtList body;
    bool uses_varargs = false;
    bool uses_kwargs = false;
    bool uses_caller = false;
};

struct Stmt {
    StmtKind kind = StmtKind::kText;
    int line = 0;
    std::string text;
    Target target;
    ExprPtr expression;
    ExprPtr condition;
    StmtList body;
    StmtList otherwise;
    std::vector<std::pair<Target, ExprPtr>> withs;
    std::unique_ptr<MacroNode> macro;
};

}  // namespace frontier::jinja
