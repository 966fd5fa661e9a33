#include "text/jinja_parser.h"

#include <algorithm>

namespace frontier::jinja {

std::string Parser::describe(const Token& token) {
    switch (token.kind) {
        case TokenKind::kText:
            return "text";
        case TokenKind::kBlockBegin:
            return "'{%'";
        case TokenKind::kBlockEnd:
            return "'%}'";
        case TokenKind::kVariableBegin:
            return "'{{'";
        case TokenKind::kVariableEnd:
            return "'}}'";
        case TokenKind::kString:
            return "a string";
        case TokenKind::kEnd:
            return "the end of the template";
        default:
            return fmt::format("'{}'", token.text.substr(0, 60));
    }
}

std::unexpected<Error> Parser::fail_here(std::string_view expected) const {
    return bad_input("line {}: expected {}, found {}", current().line, expected, describe(current()));
}

bool Parser::skip_operator(std::string_view op) {
    if (!at_operator(op)) return false;
    next();
    return true;
}

bool Parser::skip_name(std::string_view name) {
    if (!at_name(name)) return false;
    next();
    return true;
}

Status Parser::expect_operator(std::string_view op) {
    if (!skip_operator(op)) return fail_here(fmt::format("'{}'", op));
    return {};
}

Result<std::string> Parser::expect_name() {
    if (current().kind != TokenKind::kName) return fail_here("a name");
    std::string name = current().text;
    next();
    return name;
}

Status Parser::check_depth() const {
    if (depth_ <= kMaxParseDepth) return {};
    return bad_input("line {}: the template nests deeper than {} levels", current().line, kMaxParseDepth);
}

Status Parser::parse_block_end() {
    if (current().kind != TokenKind::kBlockEnd) return fail_here("'%}'");
    next();
    return {};
}

Result<StmtList> Parser::parse_template() {
    FR_ASSIGN(StmtList body, parse_body({}));
    if (current().kind != TokenKind::kEnd) return fail_here("the end of the template");
    return body;
}

// Statements up to one of the tags `ends`, whose name is then the current token.
Result<StmtList> Parser::parse_body(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    FR_TRY(check_depth());
    StmtList body;
    while (current().kind != TokenKind::kEnd) {
        auto statement = std::make_unique<Stmt>();
        statement->line = current().line;
        if (current().kind == TokenKind::kText) {
            statement->text = current().text;
            next();
        } else if (current().kind == TokenKind::kVariableBegin) {
            next();
            statement->kind = StmtKind::kOutput;
            FR_ASSIGN(statement->expression, parse_tuple(true, false));
            if (current().kind != TokenKind::kVariableEnd) return fail_here("'}}'");
            next();
        } else {
            next();  // {%
            if (std::any_of(ends.begin(), ends.end(), [this](std::string_view end) { return at_name(end); })) {
                return body;
            }
            FR_ASSIGN(statement, parse_statement());
        }
        body.push_back(std::move(statement));
    }
    if (ends.size() != 0) return fail_here(fmt::format("'{}'", *(ends.end() - 1)));
    return body;
}

Result<std::unique_ptr<Stmt>> Parser::parse_statement() {
    auto statement = std::make_unique<Stmt>();
    statement->line = current().line;
    FR_ASSIGN(const std::string name, expect_name());
    if (name == "for") {
        FR_TRY(parse_for(*statement));
    } else if (name == "if") {
        FR_TRY(parse_if(*statement));
    } else if (name == "set") {
        FR_TRY(parse_set(*statement));
    } else if (name == "macro") {
        FR_TRY(parse_macro(*statement));
    } else if (name == "call") {
        FR_TRY(parse_call_block(*statement));
    } else if (name == "filter") {
        FR_TRY(parse_filter_block(*statement));
    } else if (name == "with") {
        FR_TRY(parse_with(*statement));
    } else if (name == "break" || name == "continue") {
        statement->kind = name == "break" ? StmtKind::kBreak : StmtKind::kContinue;
        if (loops_ == 0) return bad_input("line {}: '{}' outside of a loop", statement->line, name);
    } else if (name == "generation") {
        // Marks the assistant's tokens for training; renders its body.
        statement->kind = StmtKind::kScope;
        FR_TRY(parse_block_end());
        FR_ASSIGN(statement->body, parse_body({"endgeneration"}));
        next();
    } else if (name == "include" || name == "import" || name == "from" || name == "extends" || name == "block" ||
               name == "autoescape" || name == "trans" || name == "do" || name == "debug") {
        return bad_input("line {}: the statement '{}' is not supported in chat templates", statement->line, name);
    } else {
        return bad_input("line {}: unknown statement '{}'", statement->line, name);
    }
    FR_TRY(parse_block_end());
    return statement;
}

Result<Target> Parser::parse_target_item() {
    const Level level(*this);
    FR_TRY(check_depth());
    Target target;
    if (skip_operator("(")) {
        FR_ASSIGN(target, parse_target(false));
        FR_TRY(expect_operator(")"));
        return target;
    }
    static constexpr std::string_view kReserved[] = {"true", "false", "none", "True", "False", "None", "loop"};
    const int line = current().line;
    FR_ASSIGN(target.name, expect_name());
    if (std::find(std::begin(kReserved), std::end(kReserved), target.name) != std::end(kReserved)) {
        return bad_input("line {}: cannot assign to '{}'", line, target.name);
    }
    return target;
}

Result<Target> Parser::parse_target(bool with_namespace) {
    if (with_namespace && look().kind == TokenKind::kOperator && look().text == ".") {
        Target target;
        FR_ASSIGN(target.name, expect_name());
        next();
        FR_ASSIGN(target.attribute, expect_name());
        return target;
    }
    FR_ASSIGN(Target first, parse_target_item());
    if (!at_operator(",")) return first;
    Target tuple;
    tuple.is_tuple = true;
    tuple.items.push_back(std::move(first));
    while (skip_operator(",")) {
        // No end at "in", as in the reference: "for a, in x" is an error there.
        if (at_operator("=") || at_operator(")") || current().kind == TokenKind::kBlockEnd) break;
        FR_ASSIGN(Target item, parse_target_item());
        tuple.items.push_back(std::move(item));
    }
    return tuple;
}

Status Parser::parse_for(Stmt& statement) {
    statement.kind = StmtKind::kFor;
    FR_ASSIGN(statement.target, parse_target(false));
    if (!skip_name("in")) return fail_here("'in'");
    FR_ASSIGN(statement.expression, parse_tuple(false, false));
    if (skip_name("if")) {
        FR_ASSIGN(statement.condition, parse_expression());
    }
    if (at_name("recursive")) {
        return bad_input("line {}: recursive loops are not supported in chat templates", current().line);
    }
    FR_TRY(parse_block_end());
    ++loops_;
    FR_ASSIGN(statement.body, parse_body({"else", "endfor"}));
    --loops_;
    if (skip_name("else")) {
        FR_TRY(parse_block_end());
        FR_ASSIGN(statement.otherwise, parse_body({"endfor"}));
    }
    next();
    return {};
}

// An elif becomes an if in the else part; a long chain is built from its end, without recursion.
Status Parser::parse_if(Stmt& statement) {
    ++conditional_;
    Stmt* branch = &statement;
    std::vector<std::unique_ptr<Stmt>> chain;
    const auto finish = [&] {
        for (std::size_t i = chain.size(); i-- > 0;) {
            (i == 0 ? statement : *chain[i - 1]).otherwise.push_back(std::move(chain[i]));
        }
        --conditional_;
    };
    while (true) {
        branch->kind = StmtKind::kIf;
        FR_ASSIGN(branch->expression, parse_tuple(false, false));
        FR_TRY(parse_block_end());
        FR_ASSIGN(branch->body, parse_body({"elif", "else", "endif"}));
        if (at_name("elif")) {
            if (depth_ + static_cast<int>(chain.size()) >= kMaxParseDepth) {
                return bad_input("line {}: more than {} elif", current().line, chain.size());
            }
            chain.push_back(std::make_unique<Stmt>());
            branch = chain.back().get();
            branch->line = current().line;
            next();
            continue;
        }
        if (skip_name("else")) {
            FR_TRY(parse_block_end());
            FR_ASSIGN(branch->otherwise, parse_body({"endif"}));
        }
        next();
        finish();
        return {};
    }
}

Status Parser::parse_set(Stmt& statement) {
    FR_ASSIGN(statement.target, parse_target(true));
    if (skip_operator("=")) {
        statement.kind = StmtKind::kSet;
        FR_ASSIGN(statement.expression, parse_tuple(true, false));
        return {};
    }
    statement.kind = StmtKind::kSetBlock;
    while (at_operator("|")) {
        FR_ASSIGN(statement.expression, parse_filter(std::move(statement.expression)));
    }
    FR_TRY(parse_block_end());
    FR_ASSIGN(statement.body, parse_body({"endset"}));
    next();
    return {};
}

Status Parser::parse_signature(MacroNode& macro) {
    FR_TRY(expect_operator("("));
    while (!at_operator(")")) {
        if (!macro.parameters.empty()) FR_TRY(expect_operator(","));
        if (at_operator(")")) return fail_here("a name");
        const int line = current().line;
        FR_ASSIGN(std::string name, expect_name());
        if (std::find(macro.parameters.begin(), macro.parameters.end(), name) != macro.parameters.end()) {
            return bad_input("line {}: the parameter '{}' is named twice", line, name);
        }
        if (skip_operator("=")) {
            FR_ASSIGN(ExprPtr value, parse_expression());
            macro.defaults.push_back(std::move(value));
        } else if (!macro.defaults.empty()) {
            return bad_input("line {}: the parameter '{}' needs a default, as the one before it", line, name);
        }
        macro.parameters.push_back(std::move(name));
    }
    return expect_operator(")");
}

Status Parser::parse_macro_body(MacroNode& macro, std::string_view end) {
    FR_TRY(parse_block_end());
    macros_.push_back(&macro);
    const int outer_loops = std::exchange(loops_, 0);
    FR_ASSIGN(macro.body, parse_body({end}));
    loops_ = outer_loops;
    macros_.pop_back();
    next();
    return {};
}

Status Parser::parse_macro(Stmt& statement) {
    statement.kind = StmtKind::kMacro;
    statement.macro = std::make_unique<MacroNode>();
    FR_ASSIGN(statement.macro->name, expect_name());
    FR_TRY(parse_signature(*statement.macro));
    return parse_macro_body(*statement.macro, "endmacro");
}

Status Parser::parse_call_block(Stmt& statement) {
    statement.kind = StmtKind::kCallBlock;
    statement.macro = std::make_unique<MacroNode>();
    statement.macro->name = "caller";
    if (at_operator("(")) FR_TRY(parse_signature(*statement.macro));
    FR_ASSIGN(statement.expression, parse_expression());
    if (statement.expression->kind != ExprKind::kCall) {
        return bad_input("line {}: a call block needs a call", statement.line);
    }
    return parse_macro_body(*statement.macro, "endcall");
}

Status Parser::parse_filter_block(Stmt& statement) {
    statement.kind = StmtKind::kFilterBlock;
    do {
        FR_ASSIGN(statement.expression, parse_filter(std::move(statement.expression)));
    } while (at_operator("|"));
    FR_TRY(parse_block_end());
    FR_ASSIGN(statement.body, parse_body({"endfilter"}));
    next();
    return {};
}

Status Parser::parse_with(Stmt& statement) {
    statement.kind = StmtKind::kWith;
    while (current().kind != TokenKind::kBlockEnd) {
        if (!statement.withs.empty()) FR_TRY(expect_operator(","));
        FR_ASSIGN(Target target, parse_target_item());
        FR_TRY(expect_operator("="));
        FR_ASSIGN(ExprPtr value, parse_expression());
        statement.withs.emplace_back(std::move(target), std::move(value));
    }
    FR_TRY(parse_block_end());
    FR_ASSIGN(statement.body, parse_body({"endwith"}));
    next();
    return {};
}

Result<StmtList> parse(std::string_view source) {
    FR_ASSIGN(std::vector<Token> tokens, lex(source));
    return Parser(std::move(tokens)).parse_template();
}

}  // namespace frontier::jinja
