// Warpgroup matrix multiply: ordering and operand descriptors. The shapes are generated: wgmma_shapes.cuh (E4M3) and
// wgmma_bf16_shapes.cuh.
#pragma once

#include <deep_gemm/ptx/address.cuh>

namespace deep_gemm::ptx {

// kNo: D = A*B. kYes: D += A*B.
enum class Accumulate : int { kNo, kYes };

// PTX ISA: wgmma.fence. PTX 8.0, sm_90a. Orders earlier register and shared-memory accesses before the next wgmma; needed
// before the first one and whenever its registers were touched in between.
DG_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// PTX ISA: wgmma.commit_group. PTX 8.0, sm_90a. Closes the group of all wgmma issued since the last commit.
DG_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// PTX ISA: wgmma.wait_group. PTX 8.0, sm_90a. Waits until at most `kPending` of the newest groups are unfinished.
template <int kPending>
DG_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Pins accumulators at this point of the program: the compiler may not read them earlier than the wait above. Without a claim on
// memory, which that wait has: volatile asms keep their order, and all golden kernels their machine code, compiled 8 % sooner.
template <int kCount>
DG_DEVICE void pin_registers(float (&registers)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i]));
}

// What follows stays behind what is before: the assembler moves shuffles and loads across the products around them, but not
// across a branch. The branch, on a value that is never all ones (a kernel argument, a descriptor's word), is not taken.
DG_DEVICE void keep_order(uint32_t never_all_ones) {
    asm volatile(
        "{\n\t"
        ".reg .pred taken;\n\t"
        "setp.eq.u32 taken, %0, 0xffffffff;\n\t"
        "@taken nanosleep.u32 0;\n\t"
        "}" ::"r"(never_all_ones)
        : "memory");
}

// The same, once `values` are there. All of them NaNs of all ones would cost a moment.
template <int kCount>
DG_DEVICE void keep_order_after(const float (&values)[kCount]) {
    uint32_t all = __float_as_uint(values[0]);
#pragma unroll
    for (int i = 1; i < kCount; ++i) all &= __float_as_uint(values[i]);
    keep_order(all);
}

// PTX ISA: Matrix Descriptor Format (wgmma). K-major operand under a 128-byte swizzle: rows of 128 bytes, 8-row atoms of
// 1024 bytes (the stride byte offset). Only the low word depends on the address, in units of 16 bytes; advancing along K
// inside the atom adds to it.
DG_DEVICE uint32_t k_major_descriptor_low(SmemAddr start) { return (start & 0x3ffffu) >> 4; }

DG_DEVICE uint64_t k_major_descriptor(uint32_t low) {
    constexpr uint32_t kAtomBytes = 1024;
    constexpr uint32_t kSwizzle128 = 1u << 30;
    uint64_t descriptor;
    asm("mov.b64 %0, {%1, %2};" : "=l"(descriptor) : "r"(low), "n"((kAtomBytes >> 4) | kSwizzle128));
    return descriptor;
}

// The same for an MN-major operand of 16-bit elements under a 128-byte swizzle: boxes of 64 along MN, each of `box_bytes`
// (the leading byte offset); in a box a row of 128 bytes per K, in 8-row atoms. The high word is that of K-major; advancing
// by 16 of K adds 2048 bytes.
DG_DEVICE uint32_t mn_major_descriptor_low(SmemAddr start, uint32_t box_bytes) {
    return k_major_descriptor_low(start) | (box_bytes >> 4) << 16;
}

DG_DEVICE uint64_t mn_major_descriptor(uint32_t low) { return k_major_descriptor(low); }

}  // namespace deep_gemm::ptx
