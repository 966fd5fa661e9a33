#include "engine/page_pool.h"

#include "base/check.h"

namespace frontier {

PagePool::PagePool(std::int32_t pages) : references_(static_cast<std::size_t>(pages), 0) {
    free_.reserve(references_.size());
    for (PageId page = pages - 1; page >= 0; --page) free_.push_back(page);
}

std::optional<PageId> PagePool::allocate() {
    if (free_.empty()) return std::nullopt;
    const PageId page = free_.back();
    free_.pop_back();
    references_[static_cast<std::size_t>(page)] = 1;
    return page;
}

void PagePool::add_reference(PageId page) {
    FR_CHECK(page >= 0 && page < total_pages() && references(page) > 0);
    ++references_[static_cast<std::size_t>(page)];
}

void PagePool::drop_reference(PageId page) {
    FR_CHECK(page >= 0 && page < total_pages() && references(page) > 0);
    if (--references_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

bool PagePool::check_integrity() const {
    std::vector<bool> is_free(references_.size(), false);
    for (const PageId page : free_) {
        const auto index = static_cast<std::size_t>(page);
        if (page < 0 || page >= total_pages() || is_free[index] || references_[index] != 0) return false;
        is_free[index] = true;
    }
    for (std::size_t page = 0; page < references_.size(); ++page)
        if (references_[page] < 0 || (references_[page] == 0) != is_free[page]) return false;
    return true;
}

}  // namespace frontier
