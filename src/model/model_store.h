// The models at hand: where names are looked up (see open_model in model/source.h), and the list of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/source.h"

namespace frontier {

// Further folders that hold models, searched before the bundled ones. Call before the first open_model; not
// thread-safe.
void set_model_search_path(std::vector<std::string> folders);

struct ModelListEntry {
    std::string name;
    std::string path;
    std::string format;        // "gguf", "huggingface"
    std::string architecture;  // "" when only a tokenizer
    std::int64_t parameters = 0;
    std::string weight_type;
    std::int64_t bytes = 0;
    bool is_default = false;
    std::string error;  // why it cannot be used; then the fields above from architecture on are empty
};
// All models in the search path, by name; of two with one name the first in the path counts.
std::vector<ModelListEntry> list_models();

}  // namespace frontier
