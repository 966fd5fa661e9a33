// Caller data as template values.
#pragma once

#include "base/json.h"
#include "text/jinja_value.h"

namespace frontier::jinja {

// Every string, key and scalar is untrusted. Fails when nested too deeply or larger than the budget.
Result<Value> value_from_json(Meter& meter, const Json& json, int depth = 0);

}  // namespace frontier::jinja
