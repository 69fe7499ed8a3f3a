// The arithmetic of one tensor-core instruction: for each (m, n) a single fused dot-add over its whole K.
//
//   terms = { A[m,k] * B[k,n] } U { C }      exact products
//   E     = max exponent over all terms      (products not normalised; subnormals keep the minimum exponent;
//                                             a zero operand counts with exponent -126)
//   sum   = SUM of terms truncated toward zero at 2^(E - F)
//   D     = sum truncated to the output format (f16: rounded to nearest even)
//
// F is 25, and 13 for FP8 wgmma, whose output also keeps 13 fraction bits. Model: published bit-accurate
// probing of Hopper and Blackwell tensor cores (microsoft/MMA-Sim), re-verified on H200 for wgmma.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/formats.h"

namespace emu {

constexpr int kMaxMmaN = 256;
constexpr int kZeroExponent = -126;

enum class Sign : uint8_t { kKeep, kNegate };
enum class MmaOutput : uint8_t { kF32, kE8M13, kF16 };

// K elements of one row of A or of N columns of B, as significands and exponents: value = digits *
// 2^(exponent - fraction).
struct MmaTile {
    int count = 0;  // rows (A) or columns (B)
    int depth = 0;  // K
    int fraction = 0;
    // [k][i]
    std::vector<int32_t> digits;
    std::vector<int32_t> exponents;
    std::vector<float> values;     // for the special cases
    std::vector<uint8_t> special;  // per row or column: holds a NaN or an infinity

    void reset(int new_count, int new_depth, const FloatFormat& format);
    void set(int k, int i, uint32_t bits, const FloatFormat& format, Sign sign);
    // Adds the exponent of an UE8M0 scale to all k of [first, last); 0xFF makes the row special.
    void scale(int i, int first, int last, uint32_t ue8m0);
};

struct MmaSpec {
    int fraction_bits;  // F
    MmaOutput output;
};

// sum * 2^(exponent - fraction), truncated toward zero to `kept` fraction bits of an f32.
uint32_t truncate_to_f32(int64_t sum, int exponent, int fraction, int kept);

// d[n] = fused dot of row m of `a` with all columns of `b`, plus c[n]. c and d are bit patterns of the output
// type (f32 for kE8M13). A null c means zero.
void fused_dot_row(const MmaTile& a, int m, const MmaTile& b, const uint32_t* c, uint32_t* d,
                   const MmaSpec& spec);

}  // namespace emu
