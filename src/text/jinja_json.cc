#include "text/jinja_json.h"

#include <cstdint>

namespace frontier::jinja {

Result<Value> value_from_json(Meter& meter, const Json& json, int depth) {
    if (depth > kMaxValueDepth) return bad_input("a variable nests deeper than {} levels", kMaxValueDepth);
    FR_TRY(meter.spend(1));
    switch (json.type()) {
        case Json::value_t::boolean:
            return Value::boolean(json.get<bool>(), true);
        case Json::value_t::number_integer:
            return Value::integer(json.get<std::int64_t>(), true);
        case Json::value_t::number_unsigned: {
            const auto number = json.get<std::uint64_t>();
            // Beyond 63 bits Python goes on exactly; here it becomes the nearest double.
            if (number > static_cast<std::uint64_t>(INT64_MAX)) return Value::real(static_cast<double>(number), true);
            return Value::integer(static_cast<std::int64_t>(number), true);
        }
        case Json::value_t::number_float:
            return Value::real(json.get<double>(), true);
        case Json::value_t::string: {
            const auto& text = json.get_ref<const std::string&>();
            FR_TRY(meter.allocate(text.size()));
            return Value::string(Text(text, true));
        }
        case Json::value_t::array: {
            std::vector<Value> items;
            for (const Json& element : json) {
                FR_ASSIGN(Value item, value_from_json(meter, element, depth + 1));
                items.push_back(std::move(item));
            }
            return make_sequence(meter, Kind::kList, std::move(items));
        }
        case Json::value_t::object: {
            std::vector<std::pair<Value, Value>> entries;
            for (auto it = json.begin(); it != json.end(); ++it) {
                FR_TRY(meter.allocate(it.key().size()));
                FR_ASSIGN(Value item, value_from_json(meter, it.value(), depth + 1));
                entries.emplace_back(Value::string(Text(it.key(), true)), std::move(item));
            }
            return make_dict(meter, std::move(entries));
        }
        default:
            return Value::none(true);
    }
}

}  // namespace frontier::jinja
