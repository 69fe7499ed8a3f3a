// Decoding and rounding of the narrow formats, by their definition.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace deep_gemm::reference {

// E4M3 (fn): sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinity; all ones is NaN.
inline double decode_e4m3(uint8_t code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -6 - 3) : std::ldexp(8 + mantissa, exponent - 7 - 3);
    return code & 0x80 ? -magnitude : magnitude;
}

inline const std::array<double, 256>& e4m3_values() {
    static const std::array<double, 256> values = [] {
        std::array<double, 256> table{};
        for (int code = 0; code < 256; ++code) table[code] = decode_e4m3(static_cast<uint8_t>(code));
        return table;
    }();
    return values;
}

inline double decode_bf16(uint16_t code) {
    return std::bit_cast<float>(uint32_t{code} << 16);
}

// FP64 -> BF16, nearest even, rounded once. FP32 on the way is rounded to odd: its last bit then remembers
// whatever was cut off, so that the second rounding is that of the FP64 value.
inline uint16_t encode_bf16(double value) {
    if (std::isnan(value)) return 0x7fc0;
    const float nearest = static_cast<float>(value);
    uint32_t bits = std::bit_cast<uint32_t>(nearest);
    if (std::isfinite(nearest) && static_cast<double>(nearest) != value) {
        if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;  // towards zero
        bits |= 1;
    }
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace deep_gemm::reference
