#include "engine/runner.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace frontier {
namespace {

std::int64_t pages_for(std::int64_t tokens) {
    return (tokens + kPageTokens - 1) / kPageTokens;
}

std::int64_t wanted_rows(const BatchEntry& entry) {
    switch (entry.logits) {
        case LogitsWanted::kNone:
            return 0;
        case LogitsWanted::kLast:
            return 1;
        case LogitsWanted::kAll:
            return static_cast<std::int64_t>(entry.tokens.size());
    }
    return 0;
}

}  // namespace

KvCacheConfig kv_cache_config(const ModelConfig& model, KvType type, std::int64_t tokens) {
    return {.layers = model.layers,
            .kv_heads = model.kv_heads,
            .head_dim = model.head_dim,
            .type = type,
            .pages = static_cast<std::int32_t>(pages_for(tokens))};
}

Result<std::unique_ptr<Runner>> Runner::create(std::unique_ptr<Backend> backend, std::unique_ptr<Model> model,
                                               const RunnerOptions& options) {
    FR_CHECK(backend != nullptr && model != nullptr);
    FR_CHECK(options.max_batch_tokens >= 1 && options.max_logits_rows >= 1 && options.kv_tokens >= 1);
    constexpr std::int64_t kMaxKvTokens = std::int64_t{1} << 31;  // page ids are 32 bits wide, with room to spare
    if (options.kv_tokens > kMaxKvTokens)
        return fail(ErrorCode::kDoesNotFit, "KV cache: {} tokens asked, the limit is {}", options.kv_tokens,
                    kMaxKvTokens);
    std::unique_ptr<Runner> runner(new Runner);
    FR_TRY(backend->reserve(options.max_batch_tokens, options.max_logits_rows));
    const KvCacheConfig cache = kv_cache_config(model->config(), options.kv_type, options.kv_tokens);
    FR_TRY(backend->create_kv_cache(cache));
    runner->pages_ = PagePool(cache.pages);
    runner->backend_ = std::move(backend);
    runner->model_ = std::move(model);
    runner->options_ = options;
    return runner;
}

Status Runner::check_entries(std::span<const BatchEntry> entries) const {
    std::int64_t rows = 0;
    std::int64_t logits_rows = 0;
    std::int64_t new_pages = 0;
    std::set<const Sequence*> seen;
    for (const BatchEntry& entry : entries) {
        FR_CHECK(entry.sequence != nullptr && !entry.tokens.empty() && seen.insert(entry.sequence).second);
        const auto tokens = static_cast<std::int64_t>(entry.tokens.size());
        rows += tokens;
        logits_rows += wanted_rows(entry);
        const std::int64_t needed = pages_for(entry.sequence->length_tokens + tokens);
        new_pages += std::max<std::int64_t>(0, needed - std::ssize(entry.sequence->block_table));
        for (const TokenId id : entry.tokens)
            if (id < 0 || id >= model_->config().vocab_size)
                return bad_input("token id {} is outside the vocabulary of {} entries", id,
                                 model_->config().vocab_size);
    }
    FR_CHECK(rows >= 1 && rows <= options_.max_batch_tokens && logits_rows <= options_.max_logits_rows);
    if (new_pages > pages_.free_pages())
        return fail(ErrorCode::kDoesNotFit, "KV cache: {} more pages of {} tokens needed, {} of {} are free", new_pages,
                    kPageTokens, pages_.free_pages(), pages_.total_pages());
    return {};
}

void Runner::extend(Sequence& sequence, std::int64_t tokens) {
    const std::int64_t needed = pages_for(sequence.length_tokens + tokens);
    while (std::ssize(sequence.block_table) < needed) {
        const auto page = pages_.allocate();
        FR_CHECK(page.has_value());  // check_entries counted them
        sequence.block_table.push_back(*page);
    }
}

Result<std::span<const float>> Runner::forward(std::span<const BatchEntry> entries) {
    FR_TRY(check_entries(entries));
    StepInput& input = step_.input;
    input.tokens.clear();
    input.positions.clear();
    input.sequences.clear();
    input.logits_rows.clear();
    step_.ops.clear();
    for (const BatchEntry& entry : entries) {
        Sequence& sequence = *entry.sequence;
        const auto tokens = static_cast<std::int32_t>(entry.tokens.size());
        const auto first_row = static_cast<std::int32_t>(input.tokens.size());
        extend(sequence, tokens);
        for (std::int32_t i = 0; i < tokens; ++i) {
            input.tokens.push_back(entry.tokens[static_cast<std::size_t>(i)]);
            input.positions.push_back(static_cast<std::int32_t>(sequence.length_tokens) + i);
        }
        input.sequences.push_back({.first_row = first_row,
                                   .rows = tokens,
                                   .first_position = static_cast<std::int32_t>(sequence.length_tokens),
                                   .block_table = sequence.block_table});
        for (auto row = first_row + tokens - static_cast<std::int32_t>(wanted_rows(entry)); row < first_row + tokens;
             ++row)
            input.logits_rows.push_back(row);
    }
    model_->record_forward(step_);
    FR_TRY(backend_->submit(step_));
    FR_ASSIGN(const std::span<const float> logits, backend_->read_logits());
    for (const BatchEntry& entry : entries) entry.sequence->length_tokens += std::ssize(entry.tokens);
    return logits;
}

void Runner::truncate(Sequence& sequence, std::int64_t length_tokens) {
    FR_CHECK(length_tokens >= 0 && length_tokens <= sequence.length_tokens);
    sequence.length_tokens = length_tokens;
    while (std::ssize(sequence.block_table) > pages_for(length_tokens)) {
        pages_.drop_reference(sequence.block_table.back());
        sequence.block_table.pop_back();
    }
    // A later append writes into the last, partly filled page: it must not be one that another sequence reads.
    if (length_tokens % kPageTokens != 0 && pages_.references(sequence.block_table.back()) > 1) {
        // Forks copy their partial page, so only a shared full page cut open here can be shared.
        const auto copy = pages_.allocate();
        if (!copy.has_value()) {  // no page to copy to: drop back to the page border, which loses only cached work
            sequence.length_tokens = length_tokens / kPageTokens * kPageTokens;
            pages_.drop_reference(sequence.block_table.back());
            sequence.block_table.pop_back();
            return;
        }
        backend_->copy_page(sequence.block_table.back(), *copy);
        pages_.drop_reference(sequence.block_table.back());
        sequence.block_table.back() = *copy;
    }
}

void Runner::release(Sequence& sequence) {
    for (const PageId page : sequence.block_table) pages_.drop_reference(page);
    sequence.block_table.clear();
    sequence.length_tokens = 0;
}

Result<Sequence> Runner::fork(const Sequence& sequence) {
    Sequence copy;
    const std::int64_t full_pages = sequence.length_tokens / kPageTokens;
    const bool partial = sequence.length_tokens % kPageTokens != 0;
    std::optional<PageId> own;
    if (partial) {
        own = pages_.allocate();
        if (!own.has_value())
            return fail(ErrorCode::kDoesNotFit, "KV cache: a fork needs 1 page, 0 of {} are free",
                        pages_.total_pages());
    }
    for (std::int64_t i = 0; i < full_pages; ++i) {
        const PageId page = sequence.block_table[static_cast<std::size_t>(i)];
        pages_.add_reference(page);
        copy.block_table.push_back(page);
    }
    if (partial) {
        backend_->copy_page(sequence.block_table[static_cast<std::size_t>(full_pages)], *own);
        copy.block_table.push_back(*own);
    }
    copy.length_tokens = sequence.length_tokens;
    return copy;
}

}  // namespace frontier
