// Integer arithmetic, logic and shifts (PTX ISA 9.7.1, 9.7.8). Values are zero-extended in their slots.
#include <limits>
#include <type_traits>

#include "simt/families.h"
#include "simt/lanewise.h"

namespace emu {
namespace {

using T = ScalarType;

template <class I> using Unsigned = std::make_unsigned_t<I>;

struct Add { template <class I> I operator()(I a, I b) const { return I(Unsigned<I>(a) + Unsigned<I>(b)); } };
struct Sub { template <class I> I operator()(I a, I b) const { return I(Unsigned<I>(a) - Unsigned<I>(b)); } };
struct AddSat { int32_t operator()(int32_t a, int32_t b) const {
    int32_t r; return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT32_MIN : INT32_MAX) : r; } };
struct SubSat { int32_t operator()(int32_t a, int32_t b) const {
    int32_t r; return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT32_MIN : INT32_MAX) : r; } };
struct MulLo { template <class I> I operator()(I a, I b) const { return I(uint64_t(a) * uint64_t(b)); } };
struct MulHi { template <class I> I operator()(I a, I b) const {
    using Wide = std::conditional_t<std::is_signed_v<I>, __int128, unsigned __int128>;
    return I((Wide(a) * Wide(b)) >> (8 * sizeof(I))); } };
// Division by zero gives all ones, as hardware does; the ISA leaves it open.
struct Div { template <class I> I operator()(I a, I b) const {
    if (b == 0) return I(-1);
    if (std::is_signed_v<I> && b == I(-1)) return I(Unsigned<I>(0) - Unsigned<I>(a));
    return I(a / b); } };
struct Rem { template <class I> I operator()(I a, I b) const {
    if (b == 0) return a;
    return std::is_signed_v<I> && b == I(-1) ? I(0) : I(a % b); } };
struct Min { template <class I> I operator()(I a, I b) const { return a < b ? a : b; } };
struct Max { template <class I> I operator()(I a, I b) const { return a > b ? a : b; } };
struct MinRelu { template <class I> I operator()(I a, I b) const { return Max{}(I(0), Min{}(a, b)); } };
struct MaxRelu { template <class I> I operator()(I a, I b) const { return Max{}(I(0), Max{}(a, b)); } };
struct Neg { template <class I> I operator()(I a) const { return I(Unsigned<I>(0) - Unsigned<I>(a)); } };
struct Abs { template <class I> I operator()(I a) const { return a < 0 ? Neg{}(a) : a; } };
struct MadLo { template <class I> I operator()(I a, I b, I c) const { return Add{}(MulLo{}(a, b), c); } };
struct MadHi { template <class I> I operator()(I a, I b, I c) const { return Add{}(MulHi{}(a, b), c); } };
struct And { template <class I> I operator()(I a, I b) const { return I(a & b); } };
struct Or { template <class I> I operator()(I a, I b) const { return I(a | b); } };
struct Xor { template <class I> I operator()(I a, I b) const { return I(a ^ b); } };
struct Not { template <class I> I operator()(I a) const { return I(~a); } };
struct NotPred { uint8_t operator()(uint8_t a) const { return a ^ 1; } };
struct CNot { template <class I> I operator()(I a) const { return I(a == 0); } };
struct Popc { template <class I> uint32_t operator()(I a) const { return uint32_t(std::popcount(a)); } };
struct Clz { template <class I> uint32_t operator()(I a) const { return uint32_t(std::countl_zero(a)); } };
struct Brev { template <class I> I operator()(I a) const {
    I r = 0;
    for (size_t i = 0; i < 8 * sizeof(I); ++i, a >>= 1) r = I((r << 1) | (a & 1));
    return r; } };

template <class F> Handler all_ints2(T t) {
    switch (t) {
        case T::kU16: case T::kB16: return binary<uint16_t, F>;
        case T::kS16: return binary<int16_t, F>;
        case T::kU32: case T::kB32: return binary<uint32_t, F>;
        case T::kS32: return binary<int32_t, F>;
        case T::kU64: case T::kB64: return binary<uint64_t, F>;
        case T::kS64: return binary<int64_t, F>;
        default: return nullptr;
    }
}
template <class F> Handler all_ints3(T t) {
    switch (t) {
        case T::kU16: return ternary<uint16_t, F>;
        case T::kS16: return ternary<int16_t, F>;
        case T::kU32: return ternary<uint32_t, F>;
        case T::kS32: return ternary<int32_t, F>;
        case T::kU64: return ternary<uint64_t, F>;
        case T::kS64: return ternary<int64_t, F>;
        default: return nullptr;
    }
}
template <class F> Handler signed1(T t) {
    switch (t) {
        case T::kS16: return unary<int16_t, F>;
        case T::kS32: return unary<int32_t, F>;
        case T::kS64: return unary<int64_t, F>;
        default: return nullptr;
    }
}
template <class F> Handler bits1(T t) {
    switch (t) {
        case T::kB16: return unary<uint16_t, F>;
        case T::kB32: return unary<uint32_t, F>;
        case T::kB64: return unary<uint64_t, F>;
        default: return nullptr;
    }
}

template <class I, class W> Step mul_wide(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) { d[l] = to_bits(W(W(from_bits<I>(a[l])) * W(from_bits<I>(b[l])))); });
    return Step::kNext;
}
template <class I, class W> Step mad_wide(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) { d[l] = to_bits(W(W(from_bits<I>(a[l])) * W(from_bits<I>(b[l])) + from_bits<W>(c[l]))); });
    return Step::kNext;
}

// Shift amounts are 32 bits and clamp at the width.
template <class I> Step shift_left(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) {
        const auto n = uint32_t(b[l]);
        d[l] = n >= 8 * sizeof(I) ? 0 : to_bits(I(from_bits<I>(a[l]) << n));
    });
    return Step::kNext;
}
template <class I> Step shift_right(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) {
        const uint32_t n = std::min<uint32_t>(uint32_t(b[l]), 8 * sizeof(I));
        const I v = from_bits<I>(a[l]);
        d[l] = n == 8 * sizeof(I) ? to_bits(I(std::is_signed_v<I> && v < 0 ? I(-1) : I(0))) : to_bits(I(v >> n));
    });
    return Step::kNext;
}

Step lop3(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    const auto table = uint32_t(x.slot(i.operands[4].slot)[0]);
    for_lanes(mask, [&](int l) {
        uint32_t r = 0;
        for (int k = 0; k < 8; ++k)
            if (table >> k & 1)
                r |= ((k & 4) ? uint32_t(a[l]) : ~uint32_t(a[l])) & ((k & 2) ? uint32_t(b[l]) : ~uint32_t(b[l])) &
                     ((k & 1) ? uint32_t(c[l]) : ~uint32_t(c[l]));
        d[l] = r;
    });
    return Step::kNext;
}

// mode: 0 left wrap, 1 left clamp, 2 right wrap, 3 right clamp
Step funnel_shift(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) {
        const uint64_t both = (b[l] << 32) | uint32_t(a[l]);
        const uint32_t n = i.mode & 1 ? std::min<uint32_t>(uint32_t(c[l]), 32) : uint32_t(c[l]) & 31;
        d[l] = i.mode & 2 ? uint32_t(both >> n) : n == 32 ? uint32_t(both) : uint32_t(both << n >> 32);
    });
    return Step::kNext;
}

template <class I> Step bit_extract(Exec& x, const Instr& i, LaneMask mask) {
    constexpr uint32_t kBits = 8 * sizeof(I);
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) {
        const uint32_t at = b[l] & 0xFF, length = c[l] & 0xFF;
        const uint64_t value = from_bits<Unsigned<I>>(a[l]);
        const uint32_t sign_at = std::min(at + length - 1, kBits - 1);
        const bool fill = std::is_signed_v<I> && length > 0 && (value >> sign_at & 1);
        uint64_t r = at >= kBits ? 0 : value >> at;
        if (length < kBits) r &= (uint64_t{1} << length) - 1;
        const uint32_t have = length == 0 ? 0 : std::min(length, at >= kBits ? 0 : kBits - at);
        if (fill && have < 64) r |= ~uint64_t{0} << have;
        d[l] = low_bits(r, sizeof(I));
    });
    return Step::kNext;
}

template <class I> Step bit_insert(Exec& x, const Instr& i, LaneMask mask) {
    constexpr uint32_t kBits = 8 * sizeof(I);
    uint64_t* out = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c), *e = x.slot(i.operands[4].slot);
    for_lanes(mask, [&](int l) {
        const uint32_t at = c[l] & 0xFF, length = e[l] & 0xFF;
        uint64_t field = length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1;
        field = at >= kBits ? 0 : field << at;
        out[l] = low_bits((b[l] & ~field) | ((at >= kBits ? 0 : a[l] << at) & field), sizeof(I));
    });
    return Step::kNext;
}

template <class I> Step find_high(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    for_lanes(mask, [&](int l) {
        auto v = from_bits<Unsigned<I>>(a[l]);
        if (std::is_signed_v<I> && I(v) < 0) v = Unsigned<I>(~v);
        const int lead = std::countl_zero(v);
        const uint32_t at = v == 0 ? ~0u : uint32_t(8 * sizeof(I)) - 1 - uint32_t(lead);
        d[l] = i.mode && at != ~0u ? uint32_t(8 * sizeof(I)) - 1 - at : at;
    });
    return Step::kNext;
}

Step dp4a(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) {
        auto r = int32_t(c[l]);
        for (int k = 0; k < 4; ++k) {
            const int p = i.mode & 1 ? int8_t(a[l] >> 8 * k) : uint8_t(a[l] >> 8 * k);
            const int q = i.mode & 2 ? int8_t(b[l] >> 8 * k) : uint8_t(b[l] >> 8 * k);
            r += p * q;
        }
        d[l] = uint32_t(r);
    });
    return Step::kNext;
}

template <class F> void decode_bits(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kPred ? binary<uint8_t, F> : all_ints2<F>(t));
}
void decode_and(Decoder& d) { decode_bits<And>(d); }
void decode_or(Decoder& d) { decode_bits<Or>(d); }
void decode_xor(Decoder& d) { decode_bits<Xor>(d); }
void decode_not(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kPred ? unary<uint8_t, NotPred> : bits1<Not>(t));
}
void decode_lop3(Decoder& d) { d.require("b32"); d.set(lop3); }
void decode_shl(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kB16 ? shift_left<uint16_t> : t == T::kB32 ? shift_left<uint32_t> : t == T::kB64 ? shift_left<uint64_t> : nullptr);
}
void decode_shr(Decoder& d) {
    switch (d.require_type()) {
        case T::kB16: case T::kU16: return d.set(shift_right<uint16_t>);
        case T::kB32: case T::kU32: return d.set(shift_right<uint32_t>);
        case T::kB64: case T::kU64: return d.set(shift_right<uint64_t>);
        case T::kS16: return d.set(shift_right<int16_t>);
        case T::kS32: return d.set(shift_right<int32_t>);
        case T::kS64: return d.set(shift_right<int64_t>);
        default: return;
    }
}
void decode_shf(Decoder& d) {
    const int right = d.require_one({"l", "r"}), clamp = d.require_one({"wrap", "clamp"});
    d.require("b32");
    d.instr.mode = uint32_t(2 * right + clamp);
    d.set(funnel_shift);
}
void decode_bfe(Decoder& d) {
    switch (d.require_type()) {
        case T::kU32: return d.set(bit_extract<uint32_t>);
        case T::kS32: return d.set(bit_extract<int32_t>);
        case T::kU64: return d.set(bit_extract<uint64_t>);
        case T::kS64: return d.set(bit_extract<int64_t>);
        default: return;
    }
}
void decode_bfi(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kB32 ? bit_insert<uint32_t> : t == T::kB64 ? bit_insert<uint64_t> : nullptr);
}
void decode_bfind(Decoder& d) {
    d.instr.mode = d.take("shiftamt");
    switch (d.require_type()) {
        case T::kU32: return d.set(find_high<uint32_t>);
        case T::kS32: return d.set(find_high<int32_t>);
        case T::kU64: return d.set(find_high<uint64_t>);
        case T::kS64: return d.set(find_high<int64_t>);
        default: return;
    }
}
void decode_mad(Decoder& d) {
    const int form = d.require_one({"lo", "hi", "wide"});
    const T t = d.require_type();
    if (form == 0) return d.set(all_ints3<MadLo>(t));
    if (form == 1) return d.set(all_ints3<MadHi>(t));
    d.set(t == T::kU16 ? mad_wide<uint16_t, uint32_t> : t == T::kS16 ? mad_wide<int16_t, int32_t>
          : t == T::kU32 ? mad_wide<uint32_t, uint64_t> : t == T::kS32 ? mad_wide<int32_t, int64_t> : nullptr);
}
void decode_popc(Decoder& d) { d.set(bits1<Popc>(d.require_type())); }
void decode_clz(Decoder& d) { d.set(bits1<Clz>(d.require_type())); }
void decode_brev(Decoder& d) { d.set(bits1<Brev>(d.require_type())); }
void decode_cnot(Decoder& d) { d.set(bits1<CNot>(d.require_type())); }
void decode_dp4a(Decoder& d) {
    const bool a_signed = d.require_type() == T::kS32, b_signed = d.take("s32") || (d.take("u32"), false);
    d.instr.mode = uint32_t(a_signed) + 2 * uint32_t(b_signed);
    d.set(dp4a);
}

}  // namespace

// add, sub, mul, div, min, max, neg and abs also exist for floats: float.cpp owns their names and asks here.
Handler integer_handler(std::string_view op, T t, bool saturate) {
    if (saturate) return op == "add" ? Handler(binary<int32_t, AddSat>) : op == "sub" ? Handler(binary<int32_t, SubSat>) : nullptr;
    if (op == "add") return all_ints2<Add>(t);
    if (op == "sub") return all_ints2<Sub>(t);
    if (op == "div") return all_ints2<Div>(t);
    if (op == "rem") return all_ints2<Rem>(t);
    if (op == "min") return all_ints2<Min>(t);
    if (op == "max") return all_ints2<Max>(t);
    if (op == "min.relu") return all_ints2<MinRelu>(t);
    if (op == "max.relu") return all_ints2<MaxRelu>(t);
    if (op == "mul.lo") return all_ints2<MulLo>(t);
    if (op == "mul.hi") return all_ints2<MulHi>(t);
    if (op == "neg") return signed1<Neg>(t);
    if (op == "abs") return signed1<Abs>(t);
    if (op != "mul.wide") return nullptr;
    return t == T::kU16 ? mul_wide<uint16_t, uint32_t> : t == T::kS16 ? mul_wide<int16_t, int32_t>
           : t == T::kU32 ? mul_wide<uint32_t, uint64_t> : t == T::kS32 ? mul_wide<int32_t, int64_t> : nullptr;
}

FamilyTable integer_families() {
    return {{"and", decode_and}, {"or", decode_or}, {"xor", decode_xor}, {"not", decode_not}, {"lop3", decode_lop3},
            {"shl", decode_shl}, {"shr", decode_shr}, {"shf", decode_shf}, {"bfe", decode_bfe}, {"bfi", decode_bfi},
            {"bfind", decode_bfind}, {"mad", decode_mad}, {"popc", decode_popc}, {"clz", decode_clz}, {"brev", decode_brev},
            {"cnot", decode_cnot}, {"dp4a", decode_dp4a}};
}

}  // namespace emu
