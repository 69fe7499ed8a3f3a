#include "tensor/fused_dot.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace emu {

uint32_t truncate_to_f32(int64_t sum, int exponent, int fraction, int kept) {
    if (sum == 0) return 0;
    const uint32_t sign = sum < 0 ? 0x80000000u : 0;
    const uint64_t magnitude = uint64_t(sum < 0 ? -sum : sum);
    const int top = 63 - std::countl_zero(magnitude);
    int result = top + exponent - fraction;            // exponent of the leading one
    const int lowest = std::max(result, -126) - kept;  // weight of the last kept bit
    const int shift = lowest - (exponent - fraction);
    const uint64_t digits = shift >= 64 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
    if (result > 127) return sign | 0x7F800000u;
    if (result < -126) return sign | uint32_t(digits << (23 - kept));
    return sign | uint32_t(result + 127) << 23 | (uint32_t(digits << (23 - kept)) & 0x7FFFFF);
}

namespace {

constexpr uint32_t kNanF16 = 0x7FFF;

struct Parts {
    int32_t digits;
    int32_t exponent;
    bool is_special;
};

Parts split(uint32_t bits, const FloatFormat& f) {
    const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
    const uint32_t exponent = (bits >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
    const bool negative = (bits >> (f.bits() - 1)) & 1;
    const uint32_t top = (1u << f.exponent_bits) - 1;
    const bool special =
        exponent == top && (f.has_infinity || (f.has_nan && mantissa == (1u << f.mantissa_bits) - 1));
    if (special) return {0, kZeroExponent, true};
    if (exponent == 0 && mantissa == 0) return {0, kZeroExponent, false};
    const int32_t digits = int32_t(exponent == 0 ? mantissa : mantissa | (1u << f.mantissa_bits));
    return {negative ? -digits : digits, int32_t(exponent == 0 ? 1 : exponent) - f.bias, false};
}

uint32_t round_to_f16(int64_t sum, int exponent, int fraction) {
    return encode_float(std::ldexp(double(sum), exponent - fraction), kF16, Rounding::kNearestEven,
                        Overflow::kToInfinity);
}

uint32_t finish(int64_t sum, int exponent, const MmaSpec& spec) {
    if (spec.output == MmaOutput::kF16) return round_to_f16(sum, exponent, spec.fraction_bits);
    return truncate_to_f32(sum, exponent, spec.fraction_bits, spec.output == MmaOutput::kE8M13 ? 13 : 23);
}

// NaN or infinity somewhere: the sum in doubles tells which; finite parts do not matter.
uint32_t special_dot(const MmaTile& a, int m, const MmaTile& b, int n, uint32_t c, const MmaSpec& spec) {
    const bool is_half = spec.output == MmaOutput::kF16;
    double sum = is_half ? f16_to_float(uint16_t(c)) : std::bit_cast<float>(c);
    for (int k = 0; k < a.depth; ++k) {
        const double product =
            double(a.values[size_t(k * a.count + m)]) * double(b.values[size_t(k * b.count + n)]);
        if (std::isnan(product) || std::isinf(product)) sum += product;
    }
    if (std::isnan(sum)) return is_half ? kNanF16 : kCanonicalNan;
    return is_half ? (sum < 0 ? 0xFC00 : 0x7C00) : (sum < 0 ? 0xFF800000u : 0x7F800000u);
}

using Lanes = std::array<int32_t, kMaxMmaN>;

void split_accumulators(const uint32_t* c, int count, const FloatFormat& format, Lanes& digits,
                        Lanes& exponents, uint8_t* special) {
    for (int n = 0; n < count; ++n) {
        const Parts parts = split(c ? c[n] : 0, format);
        digits[size_t(n)] = parts.digits;
        exponents[size_t(n)] = parts.exponent;
        special[n] = parts.is_special;
    }
}

void raise_exponents(const MmaTile& a, int m, const MmaTile& b, Lanes& top) {
    for (int k = 0; k < a.depth; ++k) {
        const int32_t ea = a.exponents[size_t(k * a.count + m)];
        const int32_t* eb = &b.exponents[size_t(k * b.count)];
        for (int n = 0; n < b.count; ++n) top[size_t(n)] = std::max(top[size_t(n)], ea + eb[n]);
    }
}

// Adds the truncated products. W is int32_t where 33 terms of F + 3 bits fit, else int64_t.
template <class W>
void add_products(const MmaTile& a, int m, const MmaTile& b, const Lanes& top, int left, W* sum) {
    constexpr int kWidest = 8 * int(sizeof(W)) - 1;
    for (int k = 0; k < a.depth; ++k) {
        const W da = a.digits[size_t(k * a.count + m)];
        if (da == 0) continue;
        const int32_t ea = a.exponents[size_t(k * a.count + m)];
        const int32_t* db = &b.digits[size_t(k * b.count)];
        const int32_t* eb = &b.exponents[size_t(k * b.count)];
        for (int n = 0; n < b.count; ++n) {
            const W product = da * W(db[n]);
            const W sign = product >> kWidest;
            const W magnitude = (product ^ sign) - sign;
            const W shifted = (magnitude << left) >> std::min(top[size_t(n)] - ea - eb[n], kWidest);
            sum[n] += (shifted ^ sign) - sign;
        }
    }
}

int64_t align_accumulator(int32_t digits, int shift_left, int distance) {
    const int64_t magnitude = std::abs(int64_t{digits});
    const int64_t aligned = shift_left >= 0 ? (magnitude << shift_left) >> std::min(distance, 63)
                                            : magnitude >> std::min(distance - shift_left, 63);
    return digits < 0 ? -aligned : aligned;
}

}  // namespace

void MmaTile::reset(int new_count, int new_depth, const FloatFormat& format) {
    count = new_count;
    depth = new_depth;
    fraction = format.mantissa_bits;
    digits.resize(size_t(count * depth));
    exponents.resize(size_t(count * depth));
    values.resize(size_t(count * depth));
    special.assign(size_t(count), 0);
}

void MmaTile::set(int k, int i, uint32_t bits, const FloatFormat& format, Sign sign) {
    const Parts parts = split(bits, format);
    const auto at = size_t(k * count + i);
    digits[at] = sign == Sign::kNegate ? -parts.digits : parts.digits;
    exponents[at] = parts.exponent;
    if (!parts.is_special) {
        values[at] = float(digits[at]);
        return;
    }
    const float value = decode_float(bits, format);
    values[at] = sign == Sign::kNegate ? -value : value;
    special[size_t(i)] = 1;
}

void MmaTile::scale(int i, int first, int last, uint32_t ue8m0) {
    if (ue8m0 == 0xFF) special[size_t(i)] = 1;
    for (int k = first; k < last; ++k) {
        const auto at = size_t(k * count + i);
        if (ue8m0 == 0xFF) values[at] = NAN;
        exponents[at] += int32_t(ue8m0) - 127;
    }
}

void fused_dot_row(const MmaTile& a, int m, const MmaTile& b, const uint32_t* c, uint32_t* d,
                   const MmaSpec& spec) {
    const FloatFormat& c_format = spec.output == MmaOutput::kF16 ? kF16 : kF32;
    Lanes c_digits, c_exponents, top;
    uint8_t c_special[kMaxMmaN];
    split_accumulators(c, b.count, c_format, c_digits, c_exponents, c_special);
    std::copy_n(c_exponents.begin(), b.count, top.begin());
    raise_exponents(a, m, b, top);
    const int left = spec.fraction_bits - a.fraction - b.fraction;
    int64_t sum[kMaxMmaN] = {};
    if (spec.fraction_bits <= 13) {
        int32_t narrow[kMaxMmaN] = {};
        add_products<int32_t>(a, m, b, top, left, narrow);
        std::copy_n(narrow, b.count, sum);
    } else {
        add_products<int64_t>(a, m, b, top, left, sum);
    }
    for (int n = 0; n < b.count; ++n) {
        const auto at = size_t(n);
        if (a.special[size_t(m)] | b.special[at] | c_special[n]) {
            d[n] = special_dot(a, m, b, n, c ? c[n] : 0, spec);
            continue;
        }
        sum[n] += align_accumulator(c_digits[at], spec.fraction_bits - c_format.mantissa_bits,
                                    top[at] - c_exponents[at]);
        d[n] = finish(sum[n], top[at], spec);
    }
}

}  // namespace emu
