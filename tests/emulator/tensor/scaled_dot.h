// kind::mxf4 and kind::mxf4nvf4: E2M1 products in groups of 16, each group with the significands of its two
// scales.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/fused_dot.h"

namespace emu {

constexpr int kFp4Depth = 64;  // K of one instruction
constexpr int kFp4Groups = 4;  // of 16 products

// One row of A or column of B: products in units of a half, and the scale of each group.
struct Fp4Row {
    int8_t halves[kFp4Depth];          // value * 2
    int32_t scale_digits[kFp4Groups];  // significand with 3 fraction bits
    int32_t scale_exponents[kFp4Groups];
    bool is_nan;
};

enum class ScaleType : uint8_t { kUe4m3, kUe8m0 };
Fp4Row make_fp4_row(const uint8_t* nibbles, const uint8_t* group_scales, ScaleType scale_type, Sign sign);

// Fused sum of the four scaled groups and c (f32 bits), 35 fraction bits below the largest exponent,
// truncated to f32.
uint32_t fused_fp4_dot(const Fp4Row& a, const Fp4Row& b, uint32_t c);

}  // namespace emu
