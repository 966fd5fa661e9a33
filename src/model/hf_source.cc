// A model in a Hugging Face folder: config.json, safetensors, tokenizer.json and their companions.
#include <filesystem>
#include <map>

#include "base/check.h"
#include "base/log.h"
#include "formats/printable.h"
#include "formats/safetensors.h"
#include "model/source.h"
#include "model/weight_specs.h"

namespace frontier {
namespace {

namespace fs = std::filesystem;

// The text of a file in the folder; nullopt when there is none. Larger files than any real one are refused unread.
Result<std::optional<std::string>> read_text(const std::string& path) {
    constexpr std::size_t kMaxBytes = std::size_t{1} << 28;  // tokenizer.json of the largest vocabularies: 35 MB
    std::error_code error;
    if (!fs::exists(path, error)) return std::nullopt;
    FR_ASSIGN(const MappedFile file, MappedFile::open(path));
    if (file.bytes().size() > kMaxBytes)
        return bad_input("{}: expected at most {} bytes, got {}", path, kMaxBytes, file.bytes().size());
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

Result<std::optional<Json>> read_json(const std::string& path) {
    FR_ASSIGN(const std::optional<std::string> text, read_text(path));
    if (!text) return std::nullopt;
    FR_ASSIGN(Json json, parse_json(*text, path));
    if (!json.is_object()) return bad_input("{}: expected a JSON object, got {}", path, json.type_name());
    return json;
}

// eos_token_id is a number, a list of numbers, or absent.
Result<std::vector<TokenId>> end_tokens(const Json& config, const std::string& where) {
    std::vector<TokenId> ids;
    const auto field = config.find("eos_token_id");
    if (field == config.end() || field->is_null()) return ids;
    const Json list = field->is_array() ? *field : Json::array({*field});
    for (const Json& item : list) {
        if (!item.is_number_integer() || item.get<std::int64_t>() < 0 || item.get<std::int64_t>() >= kMaxVocab)
            return bad_input("{}: field 'eos_token_id': expected token ids in 0..{}, got {}", where, kMaxVocab - 1,
                             printable(dump_json(item)));
        ids.push_back(static_cast<TokenId>(item.get<std::int64_t>()));
    }
    return ids;
}

class HfSource : public ModelSource {
public:
    HfSource(std::string folder, SafetensorsModel file) : folder_(std::move(folder)), file_(std::move(file)) {}

    // Without config: only a tokenizer.
    Status prepare(const std::optional<Json>& config) {
        if (!config) {
            FR_TRY(read_generation_config(Json::object()));
            return read_chat_template();
        }
        has_model_ = true;
        return prepare_model(*config);
    }
    Status prepare_model(const Json& config) {
        FR_ASSIGN(config_, config_from_hf(config, folder_ + "/config.json"));
        config_.name = fs::path(folder_).filename().string();
        FR_TRY(translate_names());
        FR_TRY(read_generation_config(config));
        return read_chat_template();
    }

    std::string_view format() const override { return "huggingface"; }
    const std::string& where() const override { return folder_; }
    std::string architecture_name() const override {
        return has_model_ ? std::string(config_.architecture->name) : std::string();
    }
    const ModelConfig& config() const override {
        FR_CHECK(has_model_);
        return config_;
    }
    bool has_model() const override { return has_model_; }

    const std::vector<TensorInfo>& tensors() const override { return tensors_; }
    const TensorInfo* find(std::string_view name) const override {
        const auto it = index_.find(name);
        return it == index_.end() ? nullptr : &tensors_[it->second];
    }
    std::string why_unusable(std::string_view name) const override {
        const auto it = unusable_.find(name);
        return it == unusable_.end() ? std::string() : it->second;
    }
    Result<TensorView> map(std::string_view name) override {
        const auto it = index_.find(name);
        if (it == index_.end()) return bad_input("{}: tensor {} is missing", folder_, name);
        return TensorView{tensors_[it->second], file_.tensors()[file_index_[it->second]].data};
    }
    void release(std::string_view name) override {
        const auto it = index_.find(name);
        if (it != index_.end()) file_.release(file_index_[it->second]);
    }

    Result<std::shared_ptr<const Tokenizer>> tokenizer() override;
    std::string chat_template_source() const override { return chat_template_; }
    GenerationDefaults generation_defaults() const override { return defaults_; }
    std::string weight_type() const override { return weight_type_of(tensors_); }
    std::int64_t file_bytes() const override {
        std::int64_t bytes = 0;
        for (const TensorView& view : file_.tensors()) bytes += view.info.bytes();
        return bytes;
    }
    std::string tensor_identity() const override { return file_.identity(); }

private:
    Status translate_names();
    Status read_generation_config(const Json& config);
    Status read_chat_template();

    std::string folder_;
    SafetensorsModel file_;
    ModelConfig config_;
    bool has_model_ = false;
    std::vector<TensorInfo> tensors_;      // canonical names
    std::vector<std::size_t> file_index_;  // of tensors_[i] in file_.tensors()
    std::map<std::string, std::size_t, std::less<>> index_;
    std::map<std::string, std::string, std::less<>> unusable_;  // canonical name -> type
    std::vector<TokenId> end_of_generation_;
    GenerationDefaults defaults_;
    std::string chat_template_;
    std::string tokenizer_config_text_;
    std::shared_ptr<const Tokenizer> tokenizer_;
};

Status HfSource::translate_names() {
    for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
        TensorInfo info = file_.tensors()[i].info;
        if (const auto canonical = canonical_from_hf(info.name)) {
            // A head beside tied embeddings repeats them; transformers does not read it.
            if (config_.tied_embeddings && *canonical == "output.weight") continue;
            if (index_.contains(*canonical))
                return bad_input("{}: tensor {}: expected one tensor for {}, got two", folder_, printable(info.name),
                                 *canonical);
            info.name = *canonical;
        }
        index_.emplace(info.name, tensors_.size());
        tensors_.push_back(std::move(info));
        file_index_.push_back(i);
    }
    for (const SafetensorsModel::Unsupported& tensor : file_.unsupported())
        if (const auto canonical = canonical_from_hf(tensor.name)) unusable_.emplace(*canonical, tensor.dtype);
    return {};
}

Status HfSource::read_generation_config(const Json& config) {
    const std::string where = folder_ + "/generation_config.json";
    FR_ASSIGN(const std::optional<Json> generation, read_json(where));
    if (!generation) {
        FR_ASSIGN(end_of_generation_, end_tokens(config, folder_ + "/config.json"));
        return {};
    }
    FR_ASSIGN(end_of_generation_, end_tokens(*generation, where));
    const auto number = [&](std::string_view field, std::optional<double>& out) -> Status {
        if (!generation->contains(field) || generation->find(field)->is_null()) return {};
        FR_ASSIGN(out, json_number(*generation, field, where));
        return {};
    };
    FR_TRY(number("temperature", defaults_.temperature));
    FR_TRY(number("top_p", defaults_.top_p));
    FR_TRY(number("min_p", defaults_.min_p));
    FR_TRY(number("repetition_penalty", defaults_.repeat_penalty));
    if (generation->contains("top_k") && !generation->find("top_k")->is_null()) {
        FR_ASSIGN(defaults_.top_k, json_int(*generation, "top_k", where));
    }
    // Greedy decoding is a temperature of zero here.
    FR_ASSIGN(const bool sample, json_bool_or(*generation, "do_sample", true, where));
    if (!sample) defaults_.temperature = 0.0;
    return {};
}

// chat_template.jinja wins over the field of tokenizer_config.json, which is a text or a list of named texts.
Status HfSource::read_chat_template() {
    const std::string where = folder_ + "/tokenizer_config.json";
    FR_ASSIGN(const std::optional<std::string> config_text, read_text(where));
    tokenizer_config_text_ = config_text.value_or("");
    FR_ASSIGN(const std::optional<std::string> jinja, read_text(folder_ + "/chat_template.jinja"));
    if (jinja) {
        chat_template_ = *jinja;
        return {};
    }
    if (!config_text) return {};
    FR_ASSIGN(const Json json, parse_json(*config_text, where));
    if (!json.is_object()) return bad_input("{}: expected a JSON object, got {}", where, json.type_name());
    const auto field = json.find("chat_template");
    if (field == json.end() || field->is_null()) return {};
    if (!field->is_array()) {
        FR_ASSIGN(chat_template_, json_string(json, "chat_template", where));
        return {};
    }
    for (const Json& item : *field) {
        const std::string item_where = where + ": chat_template";
        FR_ASSIGN(const std::string name, json_string(item, "name", item_where));
        FR_ASSIGN(std::string text, json_string(item, "template", item_where));
        if (name == "default") chat_template_ = std::move(text);
    }
    return {};
}

Result<std::shared_ptr<const Tokenizer>> HfSource::tokenizer() {
    if (tokenizer_) return tokenizer_;
    const std::string path = folder_ + "/tokenizer.json";
    FR_ASSIGN(const std::optional<std::string> text, read_text(path));
    if (!text) {
        std::error_code error;
        const bool spm = fs::exists(folder_ + "/tokenizer.model", error);
        return bad_input("{}: the file is missing{}", path,
                         spm ? "; tokenizer.model alone is not read, save the tokenizer in its fast form" : "");
    }
    FR_ASSIGN(TokenizerSpec spec, parse_tokenizer_json(*text, tokenizer_config_text_, path));
    for (const TokenId id : end_of_generation_) {
        if (static_cast<std::size_t>(id) < spec.pieces.size())
            spec.end_of_generation.push_back(id);
        else  // the model may still produce it, but it names no token
            spdlog::warn("{}: eos_token_id: expected 0..{}, got {}; ignored", printable(folder_),
                         spec.pieces.size() - 1, id);
    }
    FR_ASSIGN(tokenizer_, Tokenizer::create(std::move(spec)));
    return tokenizer_;
}

}  // namespace

Result<std::unique_ptr<ModelSource>> open_hf_source(const std::string& folder) {
    std::string name = folder;
    while (name.size() > 1 && name.back() == '/') name.pop_back();
    FR_ASSIGN(const std::optional<Json> config, read_json(name + "/config.json"));
    if (!config) {
        std::error_code error;
        if (fs::exists(name + "/tokenizer.json", error)) return open_hf_tokenizer(name);
        return bad_input("{}: expected config.json or tokenizer.json in the folder, there is neither", name);
    }
    FR_ASSIGN(SafetensorsModel file, SafetensorsModel::open(name));
    auto source = std::make_unique<HfSource>(std::move(name), std::move(file));
    FR_TRY(source->prepare(config));
    return source;
}

Result<std::unique_ptr<ModelSource>> open_hf_tokenizer(const std::string& folder) {
    auto source = std::make_unique<HfSource>(folder, SafetensorsModel());
    FR_TRY(source->prepare(std::nullopt));
    return source;
}

}  // namespace frontier
