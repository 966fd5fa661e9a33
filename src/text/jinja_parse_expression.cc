#include <algorithm>
#include <charconv>

#include "text/jinja_builtins.h"
#include "text/jinja_parser.h"

namespace frontier::jinja {

Status settle_depth(Expr& expr) {
    int depth = 0;
    const auto visit = [&depth](const ExprPtr& child) {
        if (child) depth = std::max(depth, child->depth);
    };
    for (const ExprPtr& child : expr.children) visit(child);
    for (const ExprPtr& child : expr.arguments) visit(child);
    for (const auto& [name, child] : expr.keywords) visit(child);
    visit(expr.star_arguments);
    visit(expr.star_keywords);
    expr.depth = depth + 1;
    if (expr.depth > kMaxParseDepth) {
        return bad_input("line {}: the expression nests deeper than {} levels", expr.line, kMaxParseDepth);
    }
    return {};
}

Result<ExprPtr> make_expr(ExprKind kind, int line, std::vector<ExprPtr> children) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    expr->children = std::move(children);
    FR_TRY(settle_depth(*expr));
    return expr;
}

namespace {
template <typename... Children>
Result<ExprPtr> node(ExprKind kind, int line, Children... children) {
    std::vector<ExprPtr> list;
    (list.push_back(std::move(children)), ...);
    return make_expr(kind, line, std::move(list));
}

Result<ExprPtr> binary(Operator op, int line, ExprPtr left, ExprPtr right) {
    FR_ASSIGN(ExprPtr expr, node(ExprKind::kBinary, line, std::move(left), std::move(right)));
    expr->operators = {op};
    return expr;
}

ExprPtr constant(int line, Value value) {
    auto expr = std::make_unique<Expr>();
    expr->line = line;
    expr->constant = std::move(value);
    return expr;
}
}  // namespace

Result<ExprPtr> Parser::parse_expression(bool with_conditional) {
    const Level level(*this);
    FR_TRY(check_depth());
    return with_conditional ? parse_conditional() : parse_or();
}

bool Parser::at_tuple_end() const {
    const TokenKind kind = current().kind;
    return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || kind == TokenKind::kEnd ||
           at_operator(")");
}

Result<ExprPtr> Parser::parse_tuple(bool with_conditional, bool in_parentheses) {
    const int line = current().line;
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    while (true) {
        if (!items.empty()) FR_TRY(expect_operator(","));
        if (at_tuple_end()) break;
        FR_ASSIGN(ExprPtr item, parse_expression(with_conditional));
        items.push_back(std::move(item));
        if (!at_operator(",")) break;
        is_tuple = true;
    }
    if (!is_tuple) {
        if (!items.empty()) return std::move(items[0]);
        if (!in_parentheses) return fail_here("an expression");
    }
    return make_expr(ExprKind::kTuple, line, std::move(items));
}

Result<ExprPtr> Parser::parse_conditional() {
    FR_ASSIGN(ExprPtr expr, parse_or());
    while (at_name("if")) {
        const int line = current().line;
        next();
        ++conditional_;
        FR_ASSIGN(ExprPtr condition, parse_or());
        ExprPtr otherwise;
        if (skip_name("else")) {
            const Level level(*this);
            FR_TRY(check_depth());
            FR_ASSIGN(otherwise, parse_conditional());
        }
        --conditional_;
        FR_ASSIGN(expr,
                  node(ExprKind::kConditional, line, std::move(condition), std::move(expr), std::move(otherwise)));
    }
    return expr;
}

Result<ExprPtr> Parser::parse_or() {
    FR_ASSIGN(ExprPtr left, parse_and());
    while (at_name("or")) {
        const int line = current().line;
        next();
        FR_ASSIGN(ExprPtr right, parse_and());
        FR_ASSIGN(left, node(ExprKind::kOr, line, std::move(left), std::move(right)));
    }
    return left;
}

Result<ExprPtr> Parser::parse_and() {
    FR_ASSIGN(ExprPtr left, parse_not());
    while (at_name("and")) {
        const int line = current().line;
        next();
        FR_ASSIGN(ExprPtr right, parse_not());
        FR_ASSIGN(left, node(ExprKind::kAnd, line, std::move(left), std::move(right)));
    }
    return left;
}

Result<ExprPtr> Parser::parse_not() {
    if (!at_name("not")) return parse_compare();
    const Level level(*this);
    FR_TRY(check_depth());
    const int line = current().line;
    next();
    FR_ASSIGN(ExprPtr operand, parse_not());
    return node(ExprKind::kNot, line, std::move(operand));
}

Result<ExprPtr> Parser::parse_compare() {
    static constexpr std::pair<std::string_view, Operator> kComparisons[] = {
        {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
        {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual}};
    const int line = current().line;
    FR_ASSIGN(ExprPtr first, parse_sum());
    std::vector<ExprPtr> operands;
    std::vector<Operator> operators;
    while (true) {
        if (skip_name("in")) {
            operators.push_back(Operator::kIn);
        } else if (at_name("not") && look().kind == TokenKind::kName && look().text == "in") {
            next();
            next();
            operators.push_back(Operator::kNotIn);
        } else {
            const auto* found = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                             [this](const auto& entry) { return at_operator(entry.first); });
            if (found == std::end(kComparisons)) break;
            next();
            operators.push_back(found->second);
        }
        if (operands.empty()) operands.push_back(std::move(first));
        FR_ASSIGN(ExprPtr operand, parse_sum());
        operands.push_back(std::move(operand));
    }
    if (operators.empty()) return first;
    FR_ASSIGN(ExprPtr expr, make_expr(ExprKind::kCompare, line, std::move(operands)));
    expr->operators = std::move(operators);
    return expr;
}

Result<ExprPtr> Parser::parse_sum() {
    FR_ASSIGN(ExprPtr left, parse_concat());
    while (at_operator("+") || at_operator("-")) {
        const int line = current().line;
        const Operator op = at_operator("+") ? Operator::kAdd : Operator::kSubtract;
        next();
        FR_ASSIGN(ExprPtr right, parse_concat());
        FR_ASSIGN(left, binary(op, line, std::move(left), std::move(right)));
    }
    return left;
}

Result<ExprPtr> Parser::parse_concat() {
    const int line = current().line;
    std::vector<ExprPtr> operands;
    do {
        FR_ASSIGN(ExprPtr operand, parse_product());
        operands.push_back(std::move(operand));
    } while (skip_operator("~"));
    if (operands.size() == 1) return std::move(operands[0]);
    return make_expr(ExprKind::kConcat, line, std::move(operands));
}

Result<ExprPtr> Parser::parse_product() {
    static constexpr std::pair<std::string_view, Operator> kProducts[] = {
        {"*", Operator::kMultiply}, {"/", Operator::kDivide}, {"//", Operator::kFloorDivide}, {"%", Operator::kModulo}};
    FR_ASSIGN(ExprPtr left, parse_power());
    while (true) {
        const auto* found = std::find_if(std::begin(kProducts), std::end(kProducts),
                                         [this](const auto& entry) { return at_operator(entry.first); });
        if (found == std::end(kProducts)) return left;
        const int line = current().line;
        next();
        FR_ASSIGN(ExprPtr right, parse_power());
        FR_ASSIGN(left, binary(found->second, line, std::move(left), std::move(right)));
    }
}

// Left associative, unlike Python's, as in the reference.
Result<ExprPtr> Parser::parse_power() {
    FR_ASSIGN(ExprPtr left, parse_unary(true));
    while (at_operator("**")) {
        const int line = current().line;
        next();
        FR_ASSIGN(ExprPtr right, parse_unary(true));
        FR_ASSIGN(left, binary(Operator::kPower, line, std::move(left), std::move(right)));
    }
    return left;
}

Result<ExprPtr> Parser::parse_unary(bool with_filter) {
    ExprPtr expr;
    if (at_operator("-") || at_operator("+")) {
        const Level level(*this);
        FR_TRY(check_depth());
        const ExprKind kind = at_operator("-") ? ExprKind::kNegate : ExprKind::kPlus;
        const int line = current().line;
        next();
        FR_ASSIGN(ExprPtr operand, parse_unary(false));
        FR_ASSIGN(expr, node(kind, line, std::move(operand)));
    } else {
        FR_ASSIGN(expr, parse_primary());
    }
    FR_ASSIGN(expr, parse_postfix(std::move(expr)));
    if (with_filter) {
        FR_ASSIGN(expr, parse_filter_chain(std::move(expr)));
    }
    return expr;
}

Result<ExprPtr> Parser::parse_primary() {
    const Token& token = current();
    const int line = token.line;
    switch (token.kind) {
        case TokenKind::kName: {
            const std::string name = token.text;
            next();
            if (name == "true" || name == "True") return constant(line, Value::boolean(true));
            if (name == "false" || name == "False") return constant(line, Value::boolean(false));
            if (name == "none" || name == "None") return constant(line, Value::none());
            if (!macros_.empty()) {
                MacroNode& macro = *macros_.back();
                macro.uses_varargs |= name == "varargs";
                macro.uses_kwargs |= name == "kwargs";
                macro.uses_caller |= name == "caller";
            }
            auto expr = std::make_unique<Expr>();
            expr->kind = ExprKind::kName;
            expr->line = line;
            expr->name = name;
            return expr;
        }
        case TokenKind::kString: {
            std::string text;
            for (; current().kind == TokenKind::kString; next()) text += current().text;
            return constant(line, Value::string(text));
        }
        case TokenKind::kInteger:
        case TokenKind::kFloat:
            return parse_number();
        default:
            break;
    }
    if (at_operator("[")) return parse_list();
    if (at_operator("{")) return parse_dict();
    if (!skip_operator("(")) return fail_here("an expression");
    FR_ASSIGN(ExprPtr expr, parse_tuple(true, true));
    FR_TRY(expect_operator(")"));
    return expr;
}

Result<ExprPtr> Parser::parse_number() {
    const Token token = current();
    next();
    std::string_view digits = token.text;
    const char* end = digits.data() + digits.size();
    if (token.kind == TokenKind::kFloat) {
        double value = 0;
        // Out of range is infinity or zero, as in Python; from_chars leaves the value alone then.
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` bounds it
        if (std::from_chars(digits.data(), end, value).ec != std::errc()) {
            value = digits.find("e-") == std::string_view::npos && digits.find("E-") == std::string_view::npos
                        ? std::numeric_limits<double>::infinity()
                        : 0.0;
        }
        return constant(token.line, Value::real(value));
    }
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0') {
        const char letter = static_cast<char>(digits[1] | 0x20);
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
        if (base != 10) digits.remove_prefix(2);
    }
    std::int64_t value = 0;
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` bounds it
    const auto parsed = std::from_chars(digits.data(), end, value, base);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
        return bad_input("line {}: the integer {} does not fit 64 bits", token.line, token.text.substr(0, 40));
    }
    return constant(token.line, Value::integer(value));
}

Result<ExprPtr> Parser::parse_list() {
    const int line = current().line;
    FR_TRY(expect_operator("["));
    std::vector<ExprPtr> items;
    while (!at_operator("]")) {
        if (!items.empty()) FR_TRY(expect_operator(","));
        if (at_operator("]")) break;
        FR_ASSIGN(ExprPtr item, parse_expression());
        items.push_back(std::move(item));
    }
    FR_TRY(expect_operator("]"));
    return make_expr(ExprKind::kList, line, std::move(items));
}

Result<ExprPtr> Parser::parse_dict() {
    const int line = current().line;
    FR_TRY(expect_operator("{"));
    std::vector<ExprPtr> items;
    while (!at_operator("}")) {
        if (!items.empty()) FR_TRY(expect_operator(","));
        if (at_operator("}")) break;
        FR_ASSIGN(ExprPtr key, parse_expression());
        FR_TRY(expect_operator(":"));
        FR_ASSIGN(ExprPtr value, parse_expression());
        items.push_back(std::move(key));
        items.push_back(std::move(value));
    }
    FR_TRY(expect_operator("}"));
    return make_expr(ExprKind::kDict, line, std::move(items));
}

Result<ExprPtr> Parser::parse_postfix(ExprPtr expr) {
    while (true) {
        if (at_operator(".") || at_operator("[")) {
            FR_ASSIGN(expr, parse_subscript(std::move(expr)));
        } else if (at_operator("(")) {
            FR_ASSIGN(expr, node(ExprKind::kCall, current().line, std::move(expr)));
            FR_TRY(parse_arguments(*expr));
        } else {
            return expr;
        }
    }
}

Result<ExprPtr> Parser::parse_filter_chain(ExprPtr expr) {
    while (true) {
        if (at_operator("|")) {
            FR_ASSIGN(expr, parse_filter(std::move(expr)));
        } else if (at_name("is")) {
            FR_ASSIGN(expr, parse_test(std::move(expr)));
        } else if (at_operator("(")) {
            FR_ASSIGN(expr, node(ExprKind::kCall, current().line, std::move(expr)));
            FR_TRY(parse_arguments(*expr));
        } else {
            return expr;
        }
    }
}

Result<ExprPtr> Parser::parse_subscript(ExprPtr expr) {
    const int line = current().line;
    if (skip_operator(".")) {
        if (current().kind == TokenKind::kInteger) {
            FR_ASSIGN(ExprPtr index, parse_number());
            return node(ExprKind::kSubscript, line, std::move(expr), std::move(index));
        }
        FR_ASSIGN(std::string name, expect_name());
        FR_ASSIGN(expr, node(ExprKind::kAttribute, line, std::move(expr)));
        expr->name = std::move(name);
        return expr;
    }
    FR_TRY(expect_operator("["));
    std::vector<ExprPtr> indices;
    while (!at_operator("]")) {
        if (!indices.empty()) FR_TRY(expect_operator(","));
        FR_ASSIGN(ExprPtr index, parse_subscript_index());
        indices.push_back(std::move(index));
    }
    FR_TRY(expect_operator("]"));
    if (indices.size() == 1) return node(ExprKind::kSubscript, line, std::move(expr), std::move(indices[0]));
    for (const ExprPtr& index : indices) {
        if (index->kind == ExprKind::kSlice) return bad_input("line {}: slices in several dimensions", line);
    }
    FR_ASSIGN(ExprPtr tuple, make_expr(ExprKind::kTuple, line, std::move(indices)));
    return node(ExprKind::kSubscript, line, std::move(expr), std::move(tuple));
}

Result<ExprPtr> Parser::parse_subscript_index() {
    const int line = current().line;
    const auto at_part = [this] { return !at_operator(":") && !at_operator("]") && !at_operator(","); };
    ExprPtr begin;
    if (!at_operator(":")) {
        FR_ASSIGN(begin, parse_expression());
        if (!at_operator(":")) return begin;
    }
    next();
    ExprPtr end;
    ExprPtr step;
    if (at_part()) {
        FR_ASSIGN(end, parse_expression());
    }
    if (skip_operator(":") && at_part()) {
        FR_ASSIGN(step, parse_expression());
    }
    return node(ExprKind::kSlice, line, std::move(begin), std::move(end), std::move(step));
}

Result<std::string> Parser::parse_dotted_name() {
    FR_ASSIGN(std::string name, expect_name());
    while (skip_operator(".")) {
        FR_ASSIGN(const std::string part, expect_name());
        name += '.';
        name += part;
    }
    return name;
}

// The current token is the | (or, in a filter block, the name).
Result<ExprPtr> Parser::parse_filter(ExprPtr expr) {
    skip_operator("|");
    const int line = current().line;
    FR_ASSIGN(std::string name, parse_dotted_name());
    if (!has_filter(name) && conditional_ == 0) return bad_input("line {}: no filter named '{}'", line, name);
    FR_ASSIGN(expr, node(ExprKind::kFilter, line, std::move(expr)));
    expr->name = std::move(name);
    if (at_operator("(")) FR_TRY(parse_arguments(*expr));
    return expr;
}

Result<ExprPtr> Parser::parse_test(ExprPtr expr) {
    const int line = current().line;
    next();
    const bool negated = skip_name("not");
    FR_ASSIGN(std::string name, parse_dotted_name());
    if (!has_test(name) && conditional_ == 0) return bad_input("line {}: no test named '{}'", line, name);
    FR_ASSIGN(expr, node(ExprKind::kTest, line, std::move(expr)));
    expr->name = std::move(name);
    const TokenKind kind = current().kind;
    const bool starts_operand = kind == TokenKind::kString || kind == TokenKind::kInteger ||
                                kind == TokenKind::kFloat || at_operator("[") || at_operator("{") ||
                                (kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and"));
    if (at_operator("(")) {
        FR_TRY(parse_arguments(*expr));
    } else if (starts_operand) {
        if (at_name("is")) return bad_input("line {}: tests cannot be chained with is", line);
        FR_ASSIGN(ExprPtr operand, parse_primary());
        FR_ASSIGN(operand, parse_postfix(std::move(operand)));
        expr->arguments.push_back(std::move(operand));
        FR_TRY(settle_depth(*expr));
    }
    if (negated) return node(ExprKind::kNot, line, std::move(expr));
    return expr;
}

Status Parser::parse_arguments(Expr& call) {
    const int line = current().line;
    FR_TRY(expect_operator("("));
    bool first = true;
    while (!at_operator(")")) {
        if (!first) {
            FR_TRY(expect_operator(","));
            if (at_operator(")")) break;
        }
        first = false;
        bool in_order = call.star_keywords == nullptr;
        if (skip_operator("*")) {
            in_order &= call.star_arguments == nullptr;
            FR_ASSIGN(call.star_arguments, parse_expression());
        } else if (skip_operator("**")) {
            FR_ASSIGN(call.star_keywords, parse_expression());
        } else if (current().kind == TokenKind::kName && look().kind == TokenKind::kOperator && look().text == "=") {
            std::string key = current().text;
            next();
            next();
            FR_ASSIGN(ExprPtr value, parse_expression());
            const bool twice = std::any_of(call.keywords.begin(), call.keywords.end(),
                                           [&key](const auto& keyword) { return keyword.first == key; });
            if (twice) return bad_input("line {}: the argument '{}' is given twice", line, key);
            call.keywords.emplace_back(std::move(key), std::move(value));
        } else {
            in_order &= call.star_arguments == nullptr && call.keywords.empty();
            FR_ASSIGN(ExprPtr value, parse_expression());
            call.arguments.push_back(std::move(value));
        }
        if (!in_order) return bad_input("line {}: arguments of a call in the wrong order", line);
    }
    FR_TRY(expect_operator(")"));
    return settle_depth(call);
}

}  // namespace frontier::jinja
