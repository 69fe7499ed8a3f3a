// Thread-block clusters and CTA-level barriers.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm::ptx {

// PTX ISA: Special Registers, %cluster_ctarank. PTX 7.8, sm_90.
DG_DEVICE uint32_t cluster_rank() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// PTX ISA: barrier.cluster. PTX 7.8, sm_90. All threads of all CTAs of the cluster. Relaxed: it orders no ordinary memory
// access between CTAs (a releasing arrive is a GPU-wide fence); fence_mbarrier_init covers barriers set up before it.
DG_DEVICE void cluster_sync() {
    asm volatile(
        "barrier.cluster.arrive.relaxed.aligned;\n\t"
        "barrier.cluster.wait.aligned;" ::
            : "memory");
}

// PTX ISA: bar.sync / barrier.sync.aligned. Named barrier `id` (1..15) among `threads` threads, whole warps.
DG_DEVICE void named_barrier_sync(uint32_t id, uint32_t threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// PTX ISA: bar.arrive / barrier.arrive.aligned. The same barrier, for whole warps that do not wait: `threads` counts both.
DG_DEVICE void named_barrier_arrive(uint32_t id, uint32_t threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// PTX ISA: barrier.sync 0 for the whole CTA.
DG_DEVICE void cta_sync() { asm volatile("bar.sync 0;" ::: "memory"); }

}  // namespace deep_gemm::ptx
