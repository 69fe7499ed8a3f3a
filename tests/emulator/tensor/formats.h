// Bit formats of small floats and their conversions. Sources: PTX ISA "Fundamental types" and "cvt"; OCP
// MX 1.0.
#pragma once

#include <cmath>
#include <cstdint>

#include "machine/types.h"

namespace emu {

struct FloatFormat {
    int exponent_bits, mantissa_bits, bias;
    bool has_infinity;  // e4m3, e2m3, e3m2, e2m1: none
    bool has_nan;       // e2m1, e2m3, e3m2: none
    int bits() const { return 1 + exponent_bits + mantissa_bits; }
};

inline constexpr FloatFormat kF16{5, 10, 15, true, true};
inline constexpr FloatFormat kBF16{8, 7, 127, true, true};
inline constexpr FloatFormat kTF32{8, 10, 127, true, true};
inline constexpr FloatFormat kF32{8, 23, 127, true, true};
inline constexpr FloatFormat kE4M3{4, 3, 7, false, true};
inline constexpr FloatFormat kE5M2{5, 2, 15, true, true};
inline constexpr FloatFormat kE2M1{2, 1, 1, false, false};
inline constexpr FloatFormat kE2M3{2, 3, 1, false, false};
inline constexpr FloatFormat kE3M2{3, 2, 3, false, false};

enum class Rounding : uint8_t { kNearestEven, kNearestAway, kZero, kDown, kUp, kStochastic };

float decode_float(uint32_t bits, const FloatFormat& format);
enum class Overflow : uint8_t { kToInfinity, kSaturate };  // infinity: NaN where the format has none
uint32_t encode_float(double value, const FloatFormat& format, Rounding rounding, Overflow overflow);

inline float f16_to_float(uint16_t bits) {
    return decode_float(bits, kF16);
}
inline float bf16_to_float(uint16_t bits) {
    return std::bit_cast<float>(uint32_t{bits} << 16);
}
// The canonical NaN of float arithmetic on the device.
constexpr uint32_t kCanonicalNan = 0x7FFFFFFFu;
inline float canonical(float value) {
    return std::isnan(value) ? std::bit_cast<float>(kCanonicalNan) : value;
}

}  // namespace emu
