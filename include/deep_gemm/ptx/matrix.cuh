// Register fragments to shared memory, conversions, and plain loads and stores.
#pragma once

#include <deep_gemm/ptx/address.cuh>

namespace deep_gemm::ptx {

// PTX ISA: cvt.rn.bf16x2.f32. PTX 7.0, sm_80. `low` in bits 0..15; round to nearest even.
DG_DEVICE uint32_t pack_bf16(float low, float high) {
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

// The two values of a packed BF16 pair, exact: BF16 is the upper half of FP32.
DG_DEVICE float bf16_low(uint32_t packed) { return __uint_as_float(packed << 16); }
DG_DEVICE float bf16_high(uint32_t packed) { return __uint_as_float(packed & 0xffff0000u); }

// PTX ISA: stmatrix. PTX 7.8, sm_90. Lane 8*i + j gives the address of row j of 8x8 matrix i; register i is its fragment.
// Generic proxy: fence_proxy_async_shared before TMA reads it.
DG_DEVICE void stmatrix_x4(SmemAddr row, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r0), "r"(r1),
                 "r"(r2), "r"(r3)
                 : "memory");
}

DG_DEVICE void stmatrix_x2(SmemAddr row, uint32_t r0, uint32_t r1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(r0), "r"(r1) : "memory");
}

// PTX ISA: ldmatrix. PTX 6.5, sm_75. The inverse of stmatrix: the same addresses give the same fragments.
DG_DEVICE void ldmatrix_x4(SmemAddr row, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

DG_DEVICE void ldmatrix_x2(SmemAddr row, uint32_t (&r)[2]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(row) : "memory");
}

// PTX ISA: st.shared.v2.f32; ld.shared.v2.f32. The address is a multiple of 8.
DG_DEVICE void store_shared_f32x2(SmemAddr address, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

// PTX ISA: ld.shared. PTX 1.0+.
DG_DEVICE float load_shared_f32(SmemAddr address) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
    return value;
}

DG_DEVICE void load_shared_f32x2(SmemAddr address, float& x, float& y) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}

// PTX ISA: ld.shared.v4. PTX 1.0+. Generic proxy; the address is a multiple of 16.
DG_DEVICE void load_shared_u32x4(SmemAddr address, uint32_t (&words)[4]) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

// PTX ISA: st.global.v4. PTX 1.0+. Generic proxy; the address is a multiple of 16.
DG_DEVICE void store_global_u32x4(void* address, const uint32_t (&words)[4]) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

// PTX ISA: ld.global, predicated: the element at `address` if index < count, else zero without touching memory. Not `.nc`:
// under programmatic dependent launch the data may be written during this grid's lifetime.
DG_DEVICE float load_global_f32_below(const float* address, int32_t index, int32_t count) {
    float value;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.lt.s32 p, %2, %3;\n\t"
        "mov.b32 %0, 0;\n\t"
        "@p ld.global.f32 %0, [%1];\n\t"
        "}"
        : "=f"(value)
        : "l"(address), "r"(index), "r"(count));
    return value;
}

}  // namespace deep_gemm::ptx
