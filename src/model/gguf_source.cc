// A model, or only a tokenizer, in a GGUF file.
#include <map>

#include "base/check.h"
#include "model/gguf_tokenizer.h"
#include "model/source.h"

namespace frontier {
namespace {

class GgufSource : public ModelSource {
public:
    explicit GgufSource(GgufFile file) : file_(std::move(file)) {}

    Status prepare() {
        for (const TensorView& view : file_.tensors()) {
            index_.emplace(view.info.name, tensors_.size());
            tensors_.push_back(view.info);
        }
        FR_ASSIGN(const auto architecture, file_.get_string("general.architecture"));
        architecture_ = architecture.value_or("");
        FR_ASSIGN(const auto chat_template, file_.get_string("tokenizer.chat_template"));
        chat_template_ = chat_template.value_or("");
        FR_TRY(read_defaults());
        if (tensors_.empty()) {
            if (!gguf_has_tokenizer(file_))
                return bad_input("{}: expected tensors or a tokenizer, the file holds neither", file_.where());
            return {};
        }
        FR_ASSIGN(config_, config_from_gguf(file_));
        return {};
    }

    std::string_view format() const override { return "gguf"; }
    const std::string& where() const override { return file_.where(); }
    std::string architecture_name() const override { return architecture_; }
    bool has_model() const override { return !tensors_.empty(); }
    const ModelConfig& config() const override {
        FR_CHECK(has_model());
        return config_;
    }

    const std::vector<TensorInfo>& tensors() const override { return tensors_; }
    const TensorInfo* find(std::string_view name) const override {
        const auto it = index_.find(name);
        return it == index_.end() ? nullptr : &tensors_[it->second];
    }
    Result<TensorView> map(std::string_view name) override {
        const TensorView* view = file_.find_tensor(name);
        if (view == nullptr) return bad_input("{}: tensor {} is missing", where(), name);
        return *view;
    }
    void release(std::string_view name) override {
        const auto it = index_.find(name);
        if (it != index_.end()) file_.release(it->second);
    }

    Result<std::shared_ptr<const Tokenizer>> tokenizer() override {
        if (!tokenizer_) {
            FR_ASSIGN(TokenizerSpec spec, tokenizer_spec_from_gguf(file_));
            FR_ASSIGN(tokenizer_, Tokenizer::create(std::move(spec)));
        }
        return tokenizer_;
    }
    std::string chat_template_source() const override { return chat_template_; }
    GenerationDefaults generation_defaults() const override { return defaults_; }
    std::string weight_type() const override { return weight_type_of(tensors_); }
    std::int64_t file_bytes() const override { return file_.file_bytes(); }
    std::string tensor_identity() const override { return file_.identity(); }

private:
    // general.sampling.* as newer llama.cpp converters write them.
    Status read_defaults() {
        FR_ASSIGN(defaults_.temperature, file_.get_number("general.sampling.temp"));
        FR_ASSIGN(defaults_.top_p, file_.get_number("general.sampling.top_p"));
        FR_ASSIGN(defaults_.min_p, file_.get_number("general.sampling.min_p"));
        FR_ASSIGN(defaults_.repeat_penalty, file_.get_number("general.sampling.penalty_repeat"));
        FR_ASSIGN(defaults_.top_k, file_.get_int("general.sampling.top_k"));
        return {};
    }

    GgufFile file_;
    std::string architecture_;
    std::string chat_template_;
    GenerationDefaults defaults_;
    ModelConfig config_;
    std::vector<TensorInfo> tensors_;
    std::map<std::string, std::size_t, std::less<>> index_;
    std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

Result<std::unique_ptr<ModelSource>> open_gguf_source(const std::string& path) {
    FR_ASSIGN(GgufFile file, GgufFile::open(path));
    auto source = std::make_unique<GgufSource>(std::move(file));
    FR_TRY(source->prepare());
    return source;
}

}  // namespace frontier
