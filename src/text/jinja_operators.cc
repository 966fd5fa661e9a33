// Arithmetic, comparison and slicing by Python's rules. Integers have 64 bits; overflow is an error.
#include <algorithm>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_eval.h"

namespace frontier::jinja {

namespace {

std::string_view symbol(Operator op) {
    static constexpr std::string_view kSymbols[] = {
        "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return kSymbols[static_cast<std::size_t>(op)];
}

std::unexpected<Error> bad_operands(Operator op, const Value& a, const Value& b) {
    return bad_input("unsupported operand types for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

std::unexpected<Error> overflow(Operator op) {
    return bad_input("the result of {} does not fit a 64-bit integer", symbol(op));
}

Result<Value> integer_power(std::int64_t base, std::int64_t exponent, bool untrusted) {
    if (exponent < 0) {
        if (base == 0) return bad_input("0 to a negative power");
        return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)), untrusted);
    }
    std::int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow(Operator::kPower);
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow(Operator::kPower);
    }
    return Value::integer(result, untrusted);
}

// floor(a / b) and the remainder with the sign of b; b is not 0 and the quotient fits.
std::pair<std::int64_t, std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
    std::int64_t quotient = a / b;
    std::int64_t remainder = a % b;
    if (remainder != 0 && (remainder < 0) != (b < 0)) {
        --quotient;
        remainder += b;
    }
    return {quotient, remainder};
}

Result<Value> integer_arithmetic(Operator op, std::int64_t a, std::int64_t b, bool untrusted) {
    std::int64_t result = 0;
    bool overflowed = false;
    switch (op) {
        case Operator::kAdd:
            overflowed = __builtin_add_overflow(a, b, &result);
            break;
        case Operator::kSubtract:
            overflowed = __builtin_sub_overflow(a, b, &result);
            break;
        case Operator::kMultiply:
            overflowed = __builtin_mul_overflow(a, b, &result);
            break;
        case Operator::kPower:
            return integer_power(a, b, untrusted);
        default:
            if (b == 0) return bad_input("division by zero");
            if (op == Operator::kDivide) {
                return Value::real(static_cast<double>(a) / static_cast<double>(b), untrusted);
            }
            if (b == -1) {  // INT64_MIN / -1 does not fit
                if (op == Operator::kModulo) return Value::integer(0, untrusted);
                overflowed = __builtin_sub_overflow(std::int64_t{0}, a, &result);
                break;
            }
            result = op == Operator::kFloorDivide ? floor_divide(a, b).first : floor_divide(a, b).second;
    }
    if (overflowed) return overflow(op);
    return Value::integer(result, untrusted);
}

Result<Value> real_arithmetic(Operator op, double a, double b, bool untrusted) {
    switch (op) {
        case Operator::kAdd:
            return Value::real(a + b, untrusted);
        case Operator::kSubtract:
            return Value::real(a - b, untrusted);
        case Operator::kMultiply:
            return Value::real(a * b, untrusted);
        case Operator::kPower: {
            if (a == 0 && b < 0) return bad_input("0.0 to a negative power");
            const double result = std::pow(a, b);
            if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) return bad_input("complex numbers");
            if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) return bad_input("the result is too large");
            return Value::real(result, untrusted);
        }
        default:
            break;
    }
    if (b == 0) return bad_input("float division by zero");
    if (op == Operator::kDivide) return Value::real(a / b, untrusted);
    double remainder = std::fmod(a, b);
    double quotient = (a - remainder) / b;
    if (remainder != 0) {
        if ((b < 0) != (remainder < 0)) {
            remainder += b;
            quotient -= 1;
        }
    } else {
        remainder = std::copysign(0.0, b);
    }
    if (op == Operator::kModulo) return Value::real(remainder, untrusted);
    if (quotient == 0) return Value::real(std::copysign(0.0, a / b), untrusted);
    double floored = std::floor(quotient);
    if (quotient - floored > 0.5) floored += 1;
    return Value::real(floored, untrusted);
}

Result<Value> concatenate(Interpreter& interpreter, const Value& a, const Value& b) {
    if (a.is(Kind::kString)) {
        const bool markup = a.markup() || b.markup();
        Text out = a.text();
        Text right = b.text();
        if (markup) {
            FR_ASSIGN(out, escape_html(interpreter, a));
            FR_ASSIGN(right, escape_html(interpreter, b));
        }
        out.append(right);
        return interpreter.make_string(std::move(out), markup);
    }
    const auto& left = a.sequence().items;
    const auto& right = b.sequence().items;
    // Charged before it is made.
    FR_TRY(interpreter.meter().allocate((left.size() + right.size()) * sizeof(Value)));
    std::vector<Value> items = left;
    items.insert(items.end(), right.begin(), right.end());
    return make_sequence(interpreter.meter(), a.kind(), std::move(items));
}

Result<Value> repeat(Interpreter& interpreter, const Value& value, std::int64_t count) {
    const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
    Meter& meter = interpreter.meter();
    if (value.is(Kind::kString)) {
        const std::size_t cost = value.text().cost_bytes();
        const std::size_t limit = meter.limits().max_string_bytes;
        if (cost != 0 && times > limit / cost) return bad_input("a repeated string is longer than {} bytes", limit);
        Text out;
        if (cost != 0 && !value.text().any_untrusted()) {
            std::string bytes;
            bytes.reserve(value.bytes().size() * times);
            for (std::uint64_t i = 0; i < times; ++i) bytes += value.bytes();
            out = Text(std::move(bytes));
        } else if (cost != 0) {
            for (std::uint64_t i = 0; i < times; ++i) out.append(value.text());
        }
        return interpreter.make_string(std::move(out), value.markup());
    }
    const auto& items = value.sequence().items;
    const std::size_t limit = meter.limits().max_allocated_bytes / sizeof(Value);
    if (!items.empty() && times > limit / items.size()) return bad_input("a repeated list is too long");
    FR_TRY(meter.allocate(items.size() * times * sizeof(Value)));
    std::vector<Value> out;
    if (!items.empty()) {
        for (std::uint64_t i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
    }
    return make_sequence(meter, value.kind(), std::move(out));
}

bool is_repeatable(const Value& value) {
    return value.is(Kind::kString) || value.is(Kind::kList) || value.is(Kind::kTuple);
}

}  // namespace

Result<Value> apply_binary(Interpreter& interpreter, Operator op, const Value& a, const Value& b) {
    if (op == Operator::kModulo && a.is(Kind::kString)) return format_percent(interpreter, a, b);
    if (a.is(Kind::kUndefined)) return bad_input("{}", a.undefined_message());
    if (b.is(Kind::kUndefined)) return bad_input("{}", b.undefined_message());
    const bool untrusted = a.untrusted() || b.untrusted();
    if (a.is_integral() && b.is_integral()) return integer_arithmetic(op, a.as_int(), b.as_int(), untrusted);
    if (a.is_number() && b.is_number()) return real_arithmetic(op, a.as_double(), b.as_double(), untrusted);
    if (op == Operator::kAdd && is_repeatable(a) && a.kind() == b.kind()) return concatenate(interpreter, a, b);
    if (op == Operator::kMultiply) {
        if (is_repeatable(a) && b.is_integral()) return repeat(interpreter, a, b.as_int());
        if (is_repeatable(b) && a.is_integral()) return repeat(interpreter, b, a.as_int());
    }
    return bad_operands(op, a, b);
}

Result<Value> negate(const Value& value, bool minus) {
    if (value.is(Kind::kUndefined)) return bad_input("{}", value.undefined_message());
    if (!value.is_number()) return bad_input("a {} has no sign", type_name(value));
    if (value.is(Kind::kFloat)) return Value::real(minus ? -value.as_double() : value.as_double(), value.untrusted());
    if (!minus) return Value::integer(value.as_int(), value.untrusted());
    return integer_arithmetic(Operator::kSubtract, 0, value.as_int(), value.untrusted());
}

Result<bool> apply_comparison(Interpreter& interpreter, Operator op, const Value& a, const Value& b) {
    Meter& meter = interpreter.meter();
    const auto is_nan = [](const Value& value) { return value.is(Kind::kFloat) && std::isnan(value.as_double()); };
    switch (op) {
        case Operator::kEqual:
            return equal(meter, a, b);
        case Operator::kNotEqual: {
            FR_ASSIGN(const bool same, equal(meter, a, b));
            return !same;
        }
        case Operator::kLess:
            return less(meter, a, b);
        case Operator::kGreater:
            return less(meter, b, a);
        case Operator::kLessEqual:
        case Operator::kGreaterEqual: {
            const bool swapped = op == Operator::kLessEqual;
            FR_ASSIGN(const bool strictly_other, swapped ? less(meter, b, a) : less(meter, a, b));
            return !strictly_other && !is_nan(a) && !is_nan(b);
        }
        case Operator::kIn:
            return interpreter.contains(b, a);
        default: {
            FR_ASSIGN(const bool inside, interpreter.contains(b, a));
            return !inside;
        }
    }
}

namespace {
// Python's slice.indices: the first index, the count and the step.
struct SliceRange {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t step = 1;
};

Result<SliceRange> resolve_slice(std::int64_t size, const Value& begin, const Value& end, const Value& step) {
    for (const Value* part : {&begin, &end, &step}) {
        if (!part->is(Kind::kNone) && !part->is_integral()) {
            return bad_input("slice indices must be integers or none, not {}", type_name(*part));
        }
    }
    SliceRange range;
    if (!step.is(Kind::kNone)) range.step = step.as_int();
    if (range.step == 0) return bad_input("slice step cannot be zero");
    const bool backwards = range.step < 0;
    const std::int64_t lowest = backwards ? -1 : 0;
    const std::int64_t highest = backwards ? size - 1 : size;
    const auto clamp = [&](const Value& part, std::int64_t absent) {
        if (part.is(Kind::kNone)) return absent;
        const std::int64_t index = part.as_int() < 0 ? std::max(part.as_int(), -size - 1) + size : part.as_int();
        return std::clamp(index, lowest, highest);
    };
    range.begin = clamp(begin, backwards ? highest : lowest);
    const std::int64_t stop = clamp(end, backwards ? lowest : highest);
    const std::int64_t distance = backwards ? range.begin - stop : stop - range.begin;
    // Steps beyond the size in either direction all mean one element; this also keeps -step from overflowing.
    range.step = std::clamp(range.step, -size - 1, size + 1);
    const std::int64_t stride = backwards ? -range.step : range.step;
    range.count = distance > 0 ? (distance + stride - 1) / stride : 0;
    return range;
}
Result<Value> slice_text(Interpreter& interpreter, const Value& object, const Value& begin, const Value& end,
                         const Value& step) {
    Meter& meter = interpreter.meter();
    const Text& text = object.text();
    FR_TRY(meter.scan(text.size()));
    const auto size = static_cast<std::int64_t>(count_characters(text.bytes()));
    FR_ASSIGN(const SliceRange range, resolve_slice(size, begin, end, step));
    if (range.count == 0) return interpreter.make_string({}, object.markup());
    if (range.step == 1) {
        const std::size_t first = offset_of_character(text.bytes(), static_cast<std::size_t>(range.begin));
        const std::string_view rest = std::string_view(text.bytes()).substr(first);
        const std::size_t last = first + offset_of_character(rest, static_cast<std::size_t>(range.count));
        return interpreter.make_string(text.slice(first, last), object.markup());
    }
    FR_TRY(meter.allocate((text.size() + 1) * sizeof(std::size_t)));
    std::vector<std::size_t> offsets;  // of each character, and of the end
    for (std::size_t i = 0; i < text.size(); i += character_at(text.bytes(), i).size_bytes) offsets.push_back(i);
    offsets.push_back(text.size());
    Text out;
    for (std::int64_t k = 0; k < range.count; ++k) {
        const auto i = static_cast<std::size_t>(range.begin + k * range.step);
        out.append_slice(text, offsets[i], offsets[i + 1]);
    }
    return interpreter.make_string(std::move(out), object.markup());
}
}  // namespace

Result<Value> slice_value(Interpreter& interpreter, const Value& object, const Value& begin, const Value& end,
                          const Value& step) {
    Meter& meter = interpreter.meter();
    if (object.is(Kind::kUndefined)) return bad_input("{}", object.undefined_message());
    if (object.is(Kind::kString)) return slice_text(interpreter, object, begin, end, step);
    if (!object.is(Kind::kList) && !object.is(Kind::kTuple) && !object.is(Kind::kRange)) {
        return bad_input("a value of type {} cannot be sliced", type_name(object));
    }
    const auto& items = object.sequence().items;
    FR_ASSIGN(const SliceRange range, resolve_slice(static_cast<std::int64_t>(items.size()), begin, end, step));
    FR_TRY(meter.spend(static_cast<std::uint64_t>(range.count)));
    std::vector<Value> out;
    out.reserve(static_cast<std::size_t>(range.count));
    for (std::int64_t k = 0; k < range.count; ++k) {
        out.push_back(items[static_cast<std::size_t>(range.begin + k * range.step)]);
    }
    // The slice of a range prints as a list here; nobody prints one.
    return make_sequence(meter, object.is(Kind::kRange) ? Kind::kList : object.kind(), std::move(out));
}

}  // namespace frontier::jinja
