// Addresses and lane identity.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm::ptx {

// A byte address in the shared window (PTX ISA, State Spaces: Shared). 32 bits cover every CTA of a cluster.
using SmemAddr = uint32_t;

// PTX ISA: cvta / cvta.to.shared. PTX 1.0+.
DG_DEVICE SmemAddr smem_addr(const void* pointer) {
    return static_cast<SmemAddr>(__cvta_generic_to_shared(pointer));
}

// PTX ISA: Special Registers, %laneid.
DG_DEVICE uint32_t lane_id() {
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// The same, read anew at this point of the program: a loop that is short of registers does not keep it.
DG_DEVICE uint32_t lane_id_read_here() {
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// PTX ISA: elect.sync. PTX 8.0, sm_90. True in exactly one lane of a converged warp; all 32 lanes must call it.
DG_DEVICE bool elect_one() {
    uint32_t elected;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "elect.sync _|p, 0xffffffff;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(elected));
    return elected != 0;
}

// PTX ISA: shfl.sync.idx. Makes a value that is equal in all lanes provably uniform for the compiler.
DG_DEVICE uint32_t broadcast_lane0(uint32_t value) { return __shfl_sync(0xffffffff, value, 0); }

}  // namespace deep_gemm::ptx
