// The pre-tokenisers that GGUF files name in tokenizer.ggml.pre, with the switches that go with each name. The patterns
// are those of the models' own tokenizer.json files; llama.cpp's src/llama-vocab.cpp lists which name stands for which.
#include <algorithm>
#include <array>
#include <iterator>

#include "text/pre_tokenizer.h"

namespace frontier {

const std::string_view kGpt2Pattern =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

namespace {

using Patterns = std::vector<std::string_view>;

constexpr std::string_view kDigit = R"re(\p{N})re";
constexpr std::string_view kLineEnd = R"re([\r\n])re";
constexpr std::string_view kLlama3 = R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
                                     R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kQwen2 = R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
                                    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kQwen35 = R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)re"
                                     R"re( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kSeedCoder = R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
                                        R"re( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kBailing = R"re('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|)re"
                                      R"re( ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)re";
constexpr std::string_view kTekken =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kGpt4o =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
// Han, the kana-to-Hangul range, Hangul: DeepSeek's "CJK" class.
constexpr std::string_view kDeepSeekCjk = R"re([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)re";
// Letters of the alphabetic scripts with case.
constexpr std::string_view kDeepSeekWord =
    R"re(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})re"
    R"re(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})re"
    R"re(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})re"
    R"re(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})re"
    R"re(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})re"
    R"re(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})re"
    R"re(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})re"
    R"re(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})re"
    R"re(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})re"
    R"re(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2})re"
    R"re(\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})re"
    R"re(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})re"
    R"re(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})re"
    R"re(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)re";
constexpr std::string_view kDeepSeekPunctuation =
    R"re(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)re";
constexpr std::string_view kDeepSeek3Han = R"re([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re";
constexpr std::string_view kDeepSeek3 =
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)re"
    R"re([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kFalconPunctuation = R"re([\p{P}$+<=>^~|`]+)re";
constexpr std::string_view kDefaultPunctuation = R"re([\p{P}$+<=>^~|]+)re";
constexpr std::string_view kThreeDigits = R"re([0-9][0-9][0-9])re";
constexpr std::string_view kBloom = R"re( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)re";

struct Family {
    Patterns patterns;
    std::vector<std::string_view> names;
    bool ignore_merges = false;
    bool add_bos = false;
};

const std::vector<Family>& families() {
    static const std::vector<Family> table = {
        {{kGpt2Pattern},
         {"gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
          "jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4", "trillion",
          "granite-docling"}},
        {{kLlama3},
         {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
         true,
         true},
        {{kLlama3}, {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}},
        {{kQwen2}, {"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "kormo", "hunyuan", "grok-2", "solar-open"}},
        {{kQwen35}, {"qwen35"}},
        {{kSeedCoder}, {"seed-coder"}},
        {{kBailing}, {"bailingmoe", "bailingmoe2", "llada-moe"}},
        {{kLineEnd, kDeepSeekWord, kDeepSeekPunctuation, R"(\s+$)", kDeepSeekCjk, R"(\p{N}+)"}, {"deepseek-llm"}},
        {{kLineEnd, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekCjk, kDigit}, {"deepseek-coder"}},
        {{R"(\p{N}{1,3})", kDeepSeek3Han, kDeepSeek3}, {"deepseek-v3", "hunyuan-dense", "joyai-llm"}},
        {{kFalconPunctuation, kGpt2Pattern, kThreeDigits}, {"falcon"}},
        {{kDigit, kGpt2Pattern},
         {"starcoder", "refact", "command-r", "cohere2_moe", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"}},
        {{kBloom}, {"bloom", "poro-chat", "gpt3-finnish"}},
        {{kBloom, kDigit}, {"viking"}},
        {{kTekken}, {"tekken"}, true, true},
        {{kGpt4o}, {"gpt-4o", "llama4", "kanana2", "minimax-m2"}},
        {{kDefaultPunctuation, kGpt2Pattern, R"(\p{N}+)", kThreeDigits}, {"default"}},
    };
    return table;
}

const Family* find_family(std::string_view name) {
    for (const Family& family : families())
        if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) return &family;
    return nullptr;
}

}  // namespace

std::vector<SplitStep> gguf_split_steps(std::string_view name) {
    std::vector<SplitStep> steps;
    if (const Family* family = find_family(name)) {
        for (const std::string_view pattern : family->patterns) {
            SplitStep step;
            step.pattern = std::string(pattern);
            steps.push_back(std::move(step));
        }
    }
    return steps;
}

Status apply_gguf_pre_tokenizer(TokenizerSpec& spec, std::string_view model, std::string_view pre) {
    if (model == "llama") {
        spec.kind = TokenizerKind::kSentencePiece;
        spec.add_bos = true;
        spec.add_space_prefix = true;
        // The ids that llama's own vocabulary has, for files that do not say.
        spec.unk = 0;
        spec.bos = 1;
        spec.eos = 2;
        return {};
    }
    if (model != "gpt2")
        return bad_input("{}: tokenizer.ggml.model: expected 'llama' or 'gpt2', got '{}', which is not supported",
                         spec.where, model);
    const std::string_view name = pre.empty() ? "default" : pre;
    const Family* family = find_family(name);
    if (family == nullptr) {
        std::string known;
        for (const Family& f : families())
            for (const std::string_view n : f.names) known.append(known.empty() ? "" : ", ").append(n);
        return bad_input("{}: tokenizer.ggml.pre: '{}' is not known; known are {}", spec.where, pre, known);
    }
    spec.kind = TokenizerKind::kByteLevelBpe;
    spec.pre_tokenizer = std::string(name);
    spec.ignore_merges = family->ignore_merges;
    spec.add_bos = family->add_bos;
    spec.add_space_prefix = false;
    return {};
}

}  // namespace frontier
