// Reference-counted KV pages. Pure bookkeeping: the backend owns the memory, this says who uses which page.
//
// Every page is in exactly one state: free (count 0, in the free list) or used (count = number of block tables that
// hold it). Pages are handed out lowest id first after start-up, then most recently freed first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace frontier {

class PagePool {
public:
    explicit PagePool(std::int32_t pages);

    std::int32_t total_pages() const { return static_cast<std::int32_t>(references_.size()); }
    std::int32_t free_pages() const { return static_cast<std::int32_t>(free_.size()); }

    std::optional<PageId> allocate();  // count 1; nullopt when none is free
    void add_reference(PageId page);   // page must be used
    void drop_reference(PageId page);  // page must be used; frees it at 0
    std::int32_t references(PageId page) const { return references_[static_cast<std::size_t>(page)]; }

    // True when the free list and the counts agree. O(pages).
    bool check_integrity() const;

private:
    std::vector<std::int32_t> references_;  // [pages]
    std::vector<PageId> free_;              // a stack; the back is handed out next
};

}  // namespace frontier
