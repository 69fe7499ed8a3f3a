#include "tensor/formats.h"

namespace emu {

float decode_float(uint32_t bits, const FloatFormat& f) {
    const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
    const uint32_t exponent = (bits >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
    const bool negative = (bits >> (f.bits() - 1)) & 1;
    const uint32_t top = (1u << f.exponent_bits) - 1;
    double magnitude;
    if (f.has_infinity && exponent == top)
        magnitude = mantissa ? NAN : INFINITY;
    else if (f.has_nan && !f.has_infinity && exponent == top && mantissa == (1u << f.mantissa_bits) - 1)
        magnitude = NAN;
    else if (exponent == 0)
        magnitude = std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
    else
        magnitude = std::ldexp(mantissa + (1u << f.mantissa_bits),
                               static_cast<int>(exponent) - f.bias - f.mantissa_bits);
    return static_cast<float>(negative ? -magnitude : magnitude);
}

namespace {

double round_to_integer(double value, Rounding rounding) {
    switch (rounding) {
        case Rounding::kNearestEven:
            return std::nearbyint(value);
        case Rounding::kNearestAway:
            return std::round(value);
        case Rounding::kZero:
            return std::trunc(value);
        case Rounding::kDown:
            return std::floor(value);
        default:
            return std::ceil(value);
    }
}

uint32_t max_finite(const FloatFormat& f) {
    const uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
    if (f.has_infinity) return all - (1u << f.mantissa_bits);
    return f.has_nan ? all - 1 : all;
}

bool rounds_to_finite(uint32_t sign, Rounding rounding) {
    const bool negative = sign != 0;
    return rounding == Rounding::kZero || (rounding == Rounding::kDown && !negative) ||
           (rounding == Rounding::kUp && negative);
}

}  // namespace

uint32_t encode_float(double value, const FloatFormat& f, Rounding rounding, Overflow overflow_rule) {
    const uint32_t sign = std::signbit(value) ? 1u << (f.bits() - 1) : 0;
    const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    const uint32_t nan = f.has_nan ? (1u << (f.exponent_bits + f.mantissa_bits)) - 1 : max_finite(f);
    if (std::isnan(value)) return nan;
    const uint32_t overflow = overflow_rule == Overflow::kSaturate || !f.has_nan ? max_finite(f)
                              : f.has_infinity                                   ? infinity
                                                                                 : nan;
    if (std::isinf(value)) return sign | overflow;
    int exponent = value == 0 ? 1 - f.bias : std::ilogb(value);
    exponent = std::max(exponent, 1 - f.bias);
    const double scaled = std::ldexp(value, f.mantissa_bits - exponent);
    double units = std::fabs(round_to_integer(scaled, rounding));
    if (units >= std::ldexp(1.0, f.mantissa_bits + 1)) {
        units /= 2;
        ++exponent;
    }
    const auto digits = static_cast<uint64_t>(units);
    const bool is_normal = digits >= (uint64_t{1} << f.mantissa_bits);
    const uint64_t bits = is_normal ? (static_cast<uint64_t>(exponent + f.bias) << f.mantissa_bits) +
                                          (digits - (uint64_t{1} << f.mantissa_bits))
                                    : digits;
    if (bits > max_finite(f)) return sign | (rounds_to_finite(sign, rounding) ? max_finite(f) : overflow);
    return sign | static_cast<uint32_t>(bits);
}

}  // namespace emu
