// Memory barriers in shared memory: phases that arrivals and transaction bytes complete together.
#pragma once

#include <deep_gemm/ptx/address.cuh>

namespace deep_gemm::ptx {

// PTX ISA: mbarrier.init. PTX 7.0, sm_80. Before other threads, the async proxy or peers use it: fence_mbarrier_init and a barrier.
DG_DEVICE void mbarrier_init(SmemAddr barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// PTX ISA: mbarrier.arrive. PTX 7.0, sm_80. Release at CTA scope.
DG_DEVICE void mbarrier_arrive(SmemAddr barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// PTX ISA: mbarrier.arrive with a shared::cluster address; mapa. PTX 8.0, sm_90. Arrives at the barrier of the same
// offset in CTA `rank` of the cluster. Not `.release.cluster`: that is a GPU-wide fence for every stage (measured on an
// H200: 12 -> 40 us for M=64, N=576, K=7168). It tells a peer that this CTA has finished reading a stage; no ordinary
// write is published by it.
DG_DEVICE void mbarrier_arrive_remote(SmemAddr barrier, uint32_t rank) {
    asm volatile(
        "{\n\t"
        ".reg .b32 remote;\n\t"
        "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
        "}" ::"r"(barrier), "r"(rank)
        : "memory");
}

// PTX ISA: mbarrier.arrive.expect_tx. PTX 8.0, sm_90. Adds `bytes` to what the phase waits for, then arrives once.
DG_DEVICE void mbarrier_arrive_expect_tx(SmemAddr barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// PTX ISA: mbarrier.try_wait.parity. PTX 7.8, sm_90. Returns once the phase of this parity has completed; acquires at CTA
// scope, which covers bytes that the async proxy completed here (at cluster scope every wait would invalidate L1).
// The hardware suspends the thread for a time per try.
DG_DEVICE void mbarrier_wait(SmemAddr barrier, uint32_t parity) {
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        "retry:\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
        "@!done bra retry;\n\t"
        "}" ::"r"(barrier), "r"(parity)
        : "memory");
}

// PTX ISA: cp.async.mbarrier.arrive.noinc. PTX 7.0, sm_80. Arrives when all earlier cp.async of this thread have landed;
// the arrival is one of those the barrier was initialised for.
DG_DEVICE void mbarrier_arrive_on_cp_async(SmemAddr barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

}  // namespace deep_gemm::ptx
