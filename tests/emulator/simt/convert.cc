// cvt and cvt.pack (PTX ISA 9.7.9). In "cvt.dst.src d, a, b" the first source goes to the high half.
#include <cmath>

#include "simt/families.h"
#include "simt/lanewise.h"
#include "tensor/formats.h"

namespace emu {
namespace {

using T = ScalarType;

struct Conversion {
    T to, from;
    Rounding rounding = Rounding::kNearestEven;
    bool to_integral = false;  // rni, rzi, rmi, rpi
    bool saturate = false, satfinite = false, relu = false, ftz = false;

    Overflow overflow() const { return satfinite ? Overflow::kSaturate : Overflow::kToInfinity; }
};

const FloatFormat& format_of(T t) {
    switch (t) {
        case T::kF16:
        case T::kF16x2:
            return kF16;
        case T::kBF16:
        case T::kBF16x2:
            return kBF16;
        case T::kTF32:
            return kTF32;
        case T::kE4M3x2:
            return kE4M3;
        case T::kE5M2x2:
            return kE5M2;
        case T::kE2M1x2:
            return kE2M1;
        case T::kE2M3x2:
            return kE2M3;
        case T::kE3M2x2:
            return kE3M2;
        default:
            return kF32;
    }
}

double read_number(uint64_t bits, T t) {
    switch (t) {
        case T::kF64:
            return from_bits<double>(bits);
        case T::kF32:
            return from_bits<float>(bits);
        case T::kF16:
            return f16_to_float(uint16_t(bits));
        case T::kBF16:
            return bf16_to_float(uint16_t(bits));
        default:
            return is_signed(t) ? double(int64_t(sign_extend(bits, type_bytes(t))))
                                : double(low_bits(bits, type_bytes(t)));
    }
}

double round_integral(double v, Rounding r) {
    switch (r) {
        case Rounding::kZero:
            return std::trunc(v);
        case Rounding::kDown:
            return std::floor(v);
        case Rounding::kUp:
            return std::ceil(v);
        default:
            return std::nearbyint(v);
    }
}

// Out-of-range values clamp; NaN gives 0 (for 64-bit and 32-bit targets alike on sm_70 and later, except
// s64/u64: 1 << 63).
uint64_t to_integer(double v, T t, Rounding r) {
    const int bits = 8 * type_bytes(t);
    if (std::isnan(v)) return bits == 64 ? uint64_t{1} << 63 : 0;
    v = round_integral(v, r);
    const double low = is_signed(t) ? -std::ldexp(1.0, bits - 1) : 0.0;
    const double high = std::ldexp(1.0, is_signed(t) ? bits - 1 : bits);
    if (v < low) v = low;
    if (v >= high) return low_bits(is_signed(t) ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0}, bits / 8);
    return low_bits(is_signed(t) ? uint64_t(int64_t(v)) : uint64_t(v), bits / 8);
}

uint64_t integer_to_integer(uint64_t bits, const Conversion& c) {
    const int from = type_bytes(c.from), to = type_bytes(c.to);
    const uint64_t wide = is_signed(c.from) ? sign_extend(bits, from) : low_bits(bits, from);
    if (!c.saturate) return low_bits(wide, to);
    const __int128 value = is_signed(c.from) ? __int128(int64_t(wide)) : __int128(wide);
    const __int128 high = is_signed(c.to) ? (__int128(1) << (8 * to - 1)) - 1 : (__int128(1) << (8 * to)) - 1;
    const __int128 low = is_signed(c.to) ? -high - 1 : __int128(0);
    return low_bits(uint64_t(value < low ? low : value > high ? high : value), to);
}

bool is_integer(T t) {
    return t >= T::kB8 && t <= T::kS64;
}

uint64_t write_float(double v, const Conversion& c) {
    if (c.relu && (v < 0 || std::signbit(v)) && !std::isnan(v)) v = 0;
    if (c.saturate)
        v = std::isnan(v) || std::signbit(v) ? 0 : v > 1 ? 1 : v;  // -0 gives +0 (measured on H200)
    if (c.to == T::kF64) return to_bits(v);
    if (c.to == T::kTF32) return uint64_t(encode_float(v, kTF32, c.rounding, c.overflow())) << 13;
    const uint64_t bits = encode_float(v, format_of(c.to), c.rounding, c.overflow());
    const bool is_subnormal = c.to == T::kF32 && (bits & 0x7F800000) == 0;
    return c.ftz && is_subnormal ? bits & 0x80000000 : bits;
}

uint64_t convert_one(uint64_t bits, const Conversion& c) {
    if (is_integer(c.from) && is_integer(c.to)) return integer_to_integer(bits, c);
    if (is_integer(c.from) && type_bytes(c.from) == 8 && c.to == T::kF32 &&
        c.rounding == Rounding::kNearestEven)
        return to_bits(is_signed(c.from) ? float(int64_t(bits)) : float(bits));  // one rounding only
    double v = read_number(bits, c.from);
    if (c.to == T::kTF32 && c.rounding == Rounding::kNearestAway && std::isnan(v))
        return bits & 0xFFFFE000;  // the payload is cut, not rounded (measured on H200)
    if (c.ftz && c.from == T::kF32 && std::fpclassify(float(v)) == FP_SUBNORMAL) v = std::copysign(0.0, v);
    if (is_integer(c.to)) return to_integer(v, c.to, c.rounding);
    if (c.to_integral) v = round_integral(v, c.rounding);
    return write_float(v, c);
}

Step convert_scalar(Exec& x, const Instr& i, LaneMask mask) {
    const auto& c = i.as<Conversion>();
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    for_lanes(mask, [&](int l) { d[l] = convert_one(a[l], c); });
    return Step::kNext;
}

template <class D, class S>
Step convert_fast(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    for_lanes(mask, [&](int l) { d[l] = to_bits(D(from_bits<S>(a[l]))); });
    return Step::kNext;
}

int element_bits(T t) {
    return t == T::kE2M1x2 ? 4 : t == T::kF16x2 || t == T::kBF16x2 ? 16 : 8;
}

// Exponent-only scale: smallest power of two not below |v| for .rp, not above for .rz; NaN is 0xFF.
uint64_t encode_ue8m0(double v, Rounding rounding) {
    if (std::isnan(v) || std::isinf(v)) return std::isnan(v) ? 0xFF : 0xFE;
    v = std::fabs(v);
    if (v == 0) return 0;
    int exponent = std::ilogb(v);
    if (rounding == Rounding::kUp && std::ldexp(1.0, exponent) < v) ++exponent;
    return uint64_t(std::clamp(exponent + 127, 0, 254));
}

Step pack_pair(Exec& x, const Instr& i, LaneMask mask) {
    const auto& c = i.as<Conversion>();
    uint64_t* d = x.slot(i.d);
    const uint64_t *high = x.slot(i.a), *low = x.slot(i.b);
    auto one = [&](uint64_t bits) {
        const double v = from_bits<float>(bits);
        return c.to == T::kUE8M0x2 ? encode_ue8m0(v, c.rounding) : write_float(v, c);
    };
    for_lanes(mask, [&](int l) { d[l] = one(high[l]) << element_bits(c.to) | one(low[l]); });
    return Step::kNext;
}

// Two small floats in one register -> f16x2 or bf16x2, or f16x2 -> two small floats.
Step repack_pair(Exec& x, const Instr& i, LaneMask mask) {
    const auto& c = i.as<Conversion>();
    const int from = element_bits(c.from), to = element_bits(c.to);
    auto one = [&](uint64_t bits) -> uint64_t {
        const uint32_t element = uint32_t(bits) & ((1u << from) - 1);
        if (c.from == T::kUE8M0x2)
            return element == 0xFF ? 0x7FFF : element == 0 ? 0x0040 : element << 7;  // to bf16
        return write_float(decode_float(element, format_of(c.from)), c);
    };
    for_lanes(mask, [&](int l) {
        const uint64_t v = x.slot(i.a)[l];
        x.slot(i.d)[l] = one(v >> from) << to | one(v);
    });
    return Step::kNext;
}

bool is_pair(T t) {
    return t == T::kF16x2 || t == T::kBF16x2 || (t >= T::kE4M3x2 && t <= T::kUE8M0x2);
}

void decode_cvt(Decoder& d) {
    Conversion c;
    const int rounding = d.take_one({"rn", "rna", "rz", "rm", "rp"});
    if (rounding >= 0) c.rounding = static_cast<Rounding>(rounding);
    const int integral = d.take_one({"rni", "rzi", "rmi", "rpi"});
    if (integral >= 0) {
        constexpr Rounding kModes[] = {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown,
                                       Rounding::kUp};
        c.rounding = kModes[integral];
        c.to_integral = true;
    }
    c.ftz = d.take("ftz");
    c.saturate = d.take("sat");
    c.satfinite = d.take("satfinite");
    c.relu = d.take("relu");
    c.to = d.require_type();
    c.from = d.require_type();
    const bool plain = !c.ftz && !c.saturate && !c.relu && !c.satfinite;
    if (is_pair(c.to) && c.from == T::kF32) {
        d.expect_operands(3, 3);
        d.set(pack_pair);
    } else if (is_pair(c.to) && is_pair(c.from))
        d.set(repack_pair);
    else if (is_pair(c.to) || is_pair(c.from))
        d.refuse("unsupported pair of types");
    else if (plain && c.to == T::kF32 && c.from == T::kS32 && c.rounding == Rounding::kNearestEven)
        d.set(convert_fast<float, int32_t>);
    else if (plain && c.to == T::kF32 && c.from == T::kU32 && c.rounding == Rounding::kNearestEven)
        d.set(convert_fast<float, uint32_t>);
    else if (plain && c.to == T::kU64 && c.from == T::kU32)
        d.set(convert_fast<uint64_t, uint32_t>);
    else if (plain && c.to == T::kS64 && c.from == T::kS32)
        d.set(convert_fast<int64_t, int32_t>);
    else if (plain && c.to == T::kU32 && c.from == T::kU64)
        d.set(convert_fast<uint32_t, uint64_t>);
    else
        d.set(convert_scalar);
    d.keep(c);
}

}  // namespace

FamilyTable convert_families() {
    return {{"cvt", decode_cvt}};
}

}  // namespace emu
