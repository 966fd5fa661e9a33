// Resolution of MODEL arguments, and the models at hand.
#include "model/model_store.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/ranges.h>

#include "formats/printable.h"
#include "model/synthetic.h"

namespace frontier {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultModel = "tale-7m-f16";

std::vector<std::string>& extra_folders() {
    static std::vector<std::string> folders;
    return folders;
}

// Where the bundled models are: beside an installed binary, or in the source tree that a build directory belongs to.
std::vector<std::string> search_path() {
    std::vector<std::string> folders = extra_folders();
    std::error_code error;
    const fs::path executable = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        const fs::path folder = executable.parent_path();
        for (const char* relative : {"models", "../models", "../share/frontier/models", "../../models"})
            folders.push_back((folder / relative).lexically_normal().string());
    }
    folders.emplace_back(FRONTIER_SOURCE_DIR "/models");
    return folders;
}

// "name-00002-of-00003.gguf": listed through its first shard only.
bool is_later_shard(const std::string& stem) {
    constexpr std::size_t kTailBytes = std::string_view("-00001-of-00003").size();
    if (stem.size() <= kTailBytes || stem.substr(stem.size() - kTailBytes + 6, 4) != "-of-") return false;
    return stem.substr(stem.size() - kTailBytes, 6) != "-00001";
}

bool is_hf_folder(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path / "config.json", error) || fs::is_regular_file(path / "tokenizer.json", error);
}

// Name -> path of all models in the search path.
std::map<std::string, std::string> models_at_hand() {
    std::map<std::string, std::string> models;
    for (const std::string& folder : search_path()) {
        std::error_code error;
        std::map<std::string, std::string> here;
        for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
             it.increment(error)) {
            const fs::path& path = it->path();
            std::error_code ignored;
            if (path.extension() == ".gguf" && fs::is_regular_file(path, ignored)) {
                if (!is_later_shard(path.stem().string())) here.emplace(path.stem().string(), path.string());
            } else if (fs::is_directory(path, ignored) && is_hf_folder(path)) {
                here.emplace(path.filename().string(), path.string());
            }
        }
        models.merge(here);  // what is there already wins
    }
    return models;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

// The three names that are most like `wanted`.
std::string nearest_names(const std::string& wanted, const std::map<std::string, std::string>& models) {
    constexpr std::size_t kShown = 3;
    constexpr std::size_t kComparedBytes = 128;  // names are short; an argument need not be
    std::vector<std::pair<std::size_t, std::string>> ranked;
    ranked.reserve(models.size());
    for (const auto& [name, path] : models)
        ranked.emplace_back(edit_distance(std::string_view(wanted).substr(0, kComparedBytes), name), name);
    std::ranges::sort(ranked);
    std::string text;
    for (std::size_t i = 0; i < std::min(kShown, ranked.size()); ++i)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", ranked[i].second);
    return text.empty() ? "none found" : text;
}

Result<std::unique_ptr<ModelSource>> open_folder(const fs::path& folder) {
    if (is_hf_folder(folder)) return open_hf_source(folder.string());
    std::vector<std::string> files;
    std::error_code error;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error))
        if (it->path().extension() == ".gguf" && !is_later_shard(it->path().stem().string()))
            files.push_back(it->path().string());
    if (files.size() == 1) return open_gguf_source(files.front());
    return bad_input("{}: expected a folder with config.json, tokenizer.json or one .gguf model, got {} .gguf models",
                     folder.string(), files.size());
}

Result<std::unique_ptr<ModelSource>> open_path(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return open_folder(path);
    if (path.filename() == "tokenizer.json")
        return open_hf_tokenizer(path.has_parent_path() ? path.parent_path().string() : ".");
    // The parts of a folder stand for the folder.
    const std::string extension = path.extension().string();
    if (extension == ".safetensors" || path.filename() == "config.json") {
        const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
        if (is_hf_folder(parent)) return open_hf_source(parent.string());
    }
    return open_gguf_source(path.string());
}

}  // namespace

void set_model_search_path(std::vector<std::string> folders) {
    extra_folders() = std::move(folders);
}

Result<std::unique_ptr<ModelSource>> open_model(const std::string& spec) {
    if (spec.starts_with("hf:"))
        return bad_input("{}: expected a local model; download the files and give their path", printable(spec));
    if (spec.starts_with("synthetic:")) return open_synthetic_source(spec);
    std::error_code error;
    if (!spec.empty() && fs::exists(spec, error)) return open_path(spec);

    const std::map<std::string, std::string> models = models_at_hand();
    const std::string name = spec.empty() ? std::string(kDefaultModel) : spec;
    if (const auto found = models.find(name); found != models.end()) return open_path(found->second);
    if (spec.empty())
        return bad_input("{}: the default model is missing from {}; give a MODEL", kDefaultModel,
                         fmt::join(search_path(), ", "));
    return bad_input(
        "{}: expected a .gguf file, a Hugging Face folder, synthetic:SHAPE[:QUANT] or a name from "
        "`frontier list`; nearest: {}",
        printable(spec), nearest_names(spec, models));
}

std::vector<ModelListEntry> list_models() {
    std::vector<ModelListEntry> entries;
    for (const auto& [name, path] : models_at_hand()) {
        ModelListEntry entry{.name = name, .path = path};
        entry.is_default = name == kDefaultModel;
        auto source = open_path(path);
        if (!source) {
            entry.error = source.error().text;
        } else {
            entry.format = (*source)->format();
            entry.architecture = (*source)->architecture_name();
            for (const TensorInfo& info : (*source)->tensors()) entry.parameters += info.elements();
            entry.weight_type = (*source)->weight_type();
            entry.bytes = (*source)->file_bytes();
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace frontier
