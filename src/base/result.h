// Errors as values. Anything a file, a flag or a client can cause is an Error; bugs are FR_CHECKs.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace frontier {

// The values are the process exit codes of the command line contract.
enum class ErrorCode : int {
    kFailed = 1,        // the work itself failed
    kUsage = 2,         // flags, an unavailable ISA
    kBadInput = 3,      // model, tokenizer, template, text, non-finite weights or logits
    kDoesNotFit = 4,    // memory or context; the text holds both numbers
    kGateFailed = 5,    // a comparison or quality gate failed
    kInterrupted = 130  // Ctrl-C
};

// One line for the user: what, where, expected and actual, what to do. No trailing newline or period.
struct Error {
    ErrorCode code = ErrorCode::kFailed;
    std::string text;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

template <typename... Args>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
std::unexpected<Error> bad_input(fmt::format_string<Args...> format, Args&&... args) {
    return fail(ErrorCode::kBadInput, format, std::forward<Args>(args)...);
}

}  // namespace frontier

#define FR_CONCAT_INNER_(a, b) a##b
#define FR_CONCAT_(a, b) FR_CONCAT_INNER_(a, b)

// Returns the error of a Status or Result expression from the enclosing function.
#define FR_TRY(expr)                                                                                                  \
    do {                                                                                                              \
        if (auto fr_status_ = (expr); !fr_status_.has_value()) return std::unexpected(std::move(fr_status_).error()); \
    } while (false)

// FR_ASSIGN(auto header, read_header(file)): declares or assigns on success, returns the error otherwise.
#define FR_ASSIGN(target, expr) FR_ASSIGN_INNER_(FR_CONCAT_(fr_result_, __LINE__), target, expr)
#define FR_ASSIGN_INNER_(temporary, target, expr)                                     \
    auto temporary = (expr);                                                          \
    if (!temporary.has_value()) return std::unexpected(std::move(temporary).error()); \
    target = std::move(temporary).value()
