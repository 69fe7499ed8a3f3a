#include "tensor/scaled_dot.h"

#include <algorithm>
#include <cmath>

#include "tensor/fused_dot.h"

namespace emu {
namespace {

constexpr int kFraction = 35;
constexpr int8_t kHalves[8] = {0, 1, 2, 3, 4, 6, 8, 12};  // E2M1 magnitudes times two

void set_scale(Fp4Row& row, int group, uint8_t bits, ScaleType scale_type) {
    int32_t &digits = row.scale_digits[group], &exponent = row.scale_exponents[group];
    if (scale_type == ScaleType::kUe8m0) {
        row.is_nan |= bits == 0xFF;
        digits = 8;
        exponent = int32_t(bits) - 127;
        return;
    }
    const int mantissa = bits & 7, field = bits >> 3 & 15;
    row.is_nan |= (bits & 0x7F) == 0x7F;
    digits = field ? 8 + mantissa : mantissa;
    exponent = digits == 0 ? kZeroExponent : std::max(field, 1) - 7;
}

}  // namespace

Fp4Row make_fp4_row(const uint8_t* nibbles, const uint8_t* group_scales, ScaleType scale_type, Sign sign) {
    Fp4Row row{};
    for (int k = 0; k < kFp4Depth; ++k) {
        const int8_t magnitude = kHalves[nibbles[k] & 7];
        row.halves[k] = bool(nibbles[k] & 8) != (sign == Sign::kNegate) ? int8_t(-magnitude) : magnitude;
    }
    for (int group = 0; group < kFp4Groups; ++group) set_scale(row, group, group_scales[group], scale_type);
    return row;
}

uint32_t fused_fp4_dot(const Fp4Row& a, const Fp4Row& b, uint32_t c) {
    const float c_value = std::bit_cast<float>(c);
    if (a.is_nan || b.is_nan || std::isnan(c_value)) return kCanonicalNan;
    if (std::isinf(c_value)) return c;
    const uint32_t c_field = c >> 23 & 0xFF;
    const int c_exponent = c_field ? int(c_field) - 127 : kZeroExponent;
    const int64_t c_digits = int64_t(c & 0x7FFFFF) | (c_field ? 0x800000 : 0);
    int64_t product[kFp4Groups];
    int exponent[kFp4Groups], top = c_exponent;
    for (int g = 0; g < kFp4Groups; ++g) {
        int64_t sum = 0;
        for (int k = 16 * g; k < 16 * g + 16; ++k) sum += a.halves[k] * b.halves[k];
        product[g] = sum * a.scale_digits[g] * b.scale_digits[g];  // 2 + 3 + 3 fraction bits
        exponent[g] = a.scale_exponents[g] + b.scale_exponents[g];
        if (product[g] != 0) top = std::max(top, exponent[g]);
    }
    auto align = [&](int64_t magnitude, int left, int distance) {
        return (magnitude << left) >> std::min(distance, 63);
    };
    int64_t total = align(c_digits, kFraction - 23, top - c_exponent);
    if (c >> 31) total = -total;
    for (int g = 0; g < kFp4Groups; ++g) {
        if (product[g] == 0) continue;
        const int64_t term = align(std::abs(product[g]), kFraction - 8, top - exponent[g]);
        total += product[g] < 0 ? -term : term;
    }
    return truncate_to_f32(total, top, kFraction, 23);
}

}  // namespace emu
