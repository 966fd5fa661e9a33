// The CPU backend: packed weights, the kernel table of one ISA, a thread pool.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/pack_cache.h"
#include "platform/thread_pool.h"

namespace frontier {

struct CpuBackendOptions {
    Isa isa = Isa::kScalar;  // must be supported by the host
    ComputeType compute = ComputeType::kAuto;
    int threads = 1;  // the calling thread is one of them
    // False: matrices stay where upload_matrix found them, which must then outlive the backend, and every product packs
    // the panels it reads. Slower, but processes share the pages and models larger than memory run. The upload reads
    // them once to find non-finite values: the file is read twice before the first token, but a damaged one is named.
    // Matrices that --dtype converts are packed all the same.
    bool repack = true;
    // Where packed matrices may be found, and are kept for the next start; null: packed at every start.
    std::shared_ptr<PackCache> pack_cache;
};

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options);

}  // namespace frontier
