// Tokens to syntax tree: Jinja's statements and expressions, with its precedence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace frontier::jinja {

// Errors name line and feature but not the template.
Result<StmtList> parse(std::string_view source);

// Used by the two halves of the parser, statements (jinja_parser.cc) and expressions (jinja_parse_expression.cc).
class Parser {
public:
    explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
    Result<StmtList> parse_template();

private:
    // One more level of the source; counts down when it goes out of scope.
    struct Level {
        explicit Level(Parser& parser_in) : parser(parser_in) { ++parser.depth_; }
        ~Level() { --parser.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        Parser& parser;
    };

    const Token& current() const { return tokens_[position_]; }
    const Token& look() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
    void next() {
        if (position_ + 1 < tokens_.size()) ++position_;
    }
    bool at_operator(std::string_view op) const {
        return current().kind == TokenKind::kOperator && current().text == op;
    }
    bool at_name(std::string_view name) const { return current().kind == TokenKind::kName && current().text == name; }
    bool skip_operator(std::string_view op);
    bool skip_name(std::string_view name);
    Status expect_operator(std::string_view op);
    Result<std::string> expect_name();
    std::unexpected<Error> fail_here(std::string_view expected) const;
    Status check_depth() const;
    static std::string describe(const Token& token);

    // Statements.
    Result<StmtList> parse_body(std::initializer_list<std::string_view> ends);
    Result<std::unique_ptr<Stmt>> parse_statement();
    Status parse_block_end();
    Status parse_for(Stmt& statement);
    Status parse_if(Stmt& statement);
    Status parse_set(Stmt& statement);
    Status parse_macro(Stmt& statement);
    Status parse_call_block(Stmt& statement);
    Status parse_filter_block(Stmt& statement);
    Status parse_with(Stmt& statement);
    Status parse_loop_control(Stmt& statement);
    Status parse_signature(MacroNode& macro);
    Status parse_macro_body(MacroNode& macro, std::string_view end);
    Result<Target> parse_target(bool with_namespace);
    Result<Target> parse_target_item();

    // Expressions.
    Result<ExprPtr> parse_expression(bool with_conditional = true);
    Result<ExprPtr> parse_tuple(bool with_conditional, bool in_parentheses);
    bool at_tuple_end() const;
    Result<ExprPtr> parse_conditional();
    Result<ExprPtr> parse_or();
    Result<ExprPtr> parse_and();
    Result<ExprPtr> parse_not();
    Result<ExprPtr> parse_compare();
    Result<ExprPtr> parse_sum();
    Result<ExprPtr> parse_concat();
    Result<ExprPtr> parse_product();
    Result<ExprPtr> parse_power();
    Result<ExprPtr> parse_unary(bool with_filter);
    Result<ExprPtr> parse_primary();
    Result<ExprPtr> parse_number();
    Result<ExprPtr> parse_list();
    Result<ExprPtr> parse_dict();
    Result<ExprPtr> parse_postfix(ExprPtr node);
    Result<ExprPtr> parse_filter_chain(ExprPtr node);
    Result<ExprPtr> parse_subscript(ExprPtr node);
    Result<ExprPtr> parse_subscript_index();
    Result<ExprPtr> parse_filter(ExprPtr node);
    Result<ExprPtr> parse_test(ExprPtr node);
    Status parse_arguments(Expr& call);
    Result<std::string> parse_dotted_name();

    std::vector<Token> tokens_;
    std::size_t position_ = 0;
    int depth_ = 0;
    int loops_ = 0;        // for bodies around this place, within the current macro
    int conditional_ = 0;  // conditions around this place: an unknown filter in there fails only when reached
    std::vector<MacroNode*> macros_;
};

// A node of the tree, one level above its deepest child.
Result<ExprPtr> make_expr(ExprKind kind, int line, std::vector<ExprPtr> children);
// Recomputes the depth after arguments were added; fails above kMaxParseDepth.
Status settle_depth(Expr& expr);

}  // namespace frontier::jinja
