// The CPU backend: packed weights, the kernel table of one ISA, a thread pool.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "platform/thread_pool.h"

namespace frontier {

struct CpuBackendOptions {
    Isa isa = Isa::kScalar;  // must be supported by the host
    ComputeType compute = ComputeType::kAuto;
    int threads = 1;  // the calling thread is one of them
};

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options);

}  // namespace frontier
