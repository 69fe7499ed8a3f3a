// Logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.8). Values are zero-extended in their slots.
#include <type_traits>

#include "simt/families.h"
#include "simt/lanewise.h"

namespace emu {
namespace {

using T = ScalarType;

template <class I>
using Unsigned = std::make_unsigned_t<I>;

struct And {
    template <class I>
    I operator()(I a, I b) const {
        return I(a & b);
    }
};
struct Or {
    template <class I>
    I operator()(I a, I b) const {
        return I(a | b);
    }
};
struct Xor {
    template <class I>
    I operator()(I a, I b) const {
        return I(a ^ b);
    }
};
struct Not {
    template <class I>
    I operator()(I a) const {
        return I(~a);
    }
};
struct NotPred {
    uint8_t operator()(uint8_t a) const { return a ^ 1; }
};
struct CNot {
    template <class I>
    I operator()(I a) const {
        return I(a == 0);
    }
};
struct Popc {
    template <class I>
    uint32_t operator()(I a) const {
        return uint32_t(std::popcount(a));
    }
};
struct Clz {
    template <class I>
    uint32_t operator()(I a) const {
        return uint32_t(std::countl_zero(a));
    }
};
struct Brev {
    template <class I>
    I operator()(I a) const {
        I r = 0;
        for (size_t i = 0; i < 8 * sizeof(I); ++i, a >>= 1) r = I((r << 1) | (a & 1));
        return r;
    }
};

template <class F>
Handler all_bits2(T t) {
    switch (t) {
        case T::kPred:
            return binary<uint8_t, F>;
        case T::kB16:
            return binary<uint16_t, F>;
        case T::kB32:
            return binary<uint32_t, F>;
        case T::kB64:
            return binary<uint64_t, F>;
        default:
            return nullptr;
    }
}

template <class F>
Handler bits1(T t) {
    switch (t) {
        case T::kB16:
            return unary<uint16_t, F>;
        case T::kB32:
            return unary<uint32_t, F>;
        case T::kB64:
            return unary<uint64_t, F>;
        default:
            return nullptr;
    }
}

// Shift amounts are 32 bits and clamp at the width.
template <class I>
Step shift_left(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) {
        const auto n = uint32_t(b[l]);
        d[l] = n >= 8 * sizeof(I) ? 0 : to_bits(I(from_bits<I>(a[l]) << n));
    });
    return Step::kNext;
}
template <class I>
Step shift_right(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) {
        const uint32_t n = std::min<uint32_t>(uint32_t(b[l]), 8 * sizeof(I));
        const I v = from_bits<I>(a[l]);
        d[l] =
            n == 8 * sizeof(I) ? to_bits(I(std::is_signed_v<I> && v < 0 ? I(-1) : I(0))) : to_bits(I(v >> n));
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
                r |= ((k & 4) ? uint32_t(a[l]) : ~uint32_t(a[l])) &
                     ((k & 2) ? uint32_t(b[l]) : ~uint32_t(b[l])) &
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

template <class I>
Step bit_extract(Exec& x, const Instr& i, LaneMask mask) {
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

template <class I>
Step bit_insert(Exec& x, const Instr& i, LaneMask mask) {
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

template <class I>
Step find_high(Exec& x, const Instr& i, LaneMask mask) {
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

template <class F>
void decode_bits(Decoder& d) {
    d.set(all_bits2<F>(d.require_type()));
}
void decode_and(Decoder& d) {
    decode_bits<And>(d);
}
void decode_or(Decoder& d) {
    decode_bits<Or>(d);
}
void decode_xor(Decoder& d) {
    decode_bits<Xor>(d);
}
void decode_not(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kPred ? unary<uint8_t, NotPred> : bits1<Not>(t));
}
void decode_lop3(Decoder& d) {
    d.require("b32");
    d.set(lop3);
}
void decode_shl(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kB16   ? shift_left<uint16_t>
          : t == T::kB32 ? shift_left<uint32_t>
          : t == T::kB64 ? shift_left<uint64_t>
                         : nullptr);
}
void decode_shr(Decoder& d) {
    switch (d.require_type()) {
        case T::kB16:
        case T::kU16:
            return d.set(shift_right<uint16_t>);
        case T::kB32:
        case T::kU32:
            return d.set(shift_right<uint32_t>);
        case T::kB64:
        case T::kU64:
            return d.set(shift_right<uint64_t>);
        case T::kS16:
            return d.set(shift_right<int16_t>);
        case T::kS32:
            return d.set(shift_right<int32_t>);
        case T::kS64:
            return d.set(shift_right<int64_t>);
        default:
            return;
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
        case T::kU32:
            return d.set(bit_extract<uint32_t>);
        case T::kS32:
            return d.set(bit_extract<int32_t>);
        case T::kU64:
            return d.set(bit_extract<uint64_t>);
        case T::kS64:
            return d.set(bit_extract<int64_t>);
        default:
            return;
    }
}
void decode_bfi(Decoder& d) {
    const T t = d.require_type();
    d.set(t == T::kB32 ? bit_insert<uint32_t> : t == T::kB64 ? bit_insert<uint64_t> : nullptr);
}
void decode_bfind(Decoder& d) {
    d.instr.mode = d.take("shiftamt");
    switch (d.require_type()) {
        case T::kU32:
            return d.set(find_high<uint32_t>);
        case T::kS32:
            return d.set(find_high<int32_t>);
        case T::kU64:
            return d.set(find_high<uint64_t>);
        case T::kS64:
            return d.set(find_high<int64_t>);
        default:
            return;
    }
}
void decode_popc(Decoder& d) {
    d.set(bits1<Popc>(d.require_type()));
}
void decode_clz(Decoder& d) {
    d.set(bits1<Clz>(d.require_type()));
}
void decode_brev(Decoder& d) {
    d.set(bits1<Brev>(d.require_type()));
}
void decode_cnot(Decoder& d) {
    d.set(bits1<CNot>(d.require_type()));
}
}  // namespace

FamilyTable bit_families() {
    return {{"and", decode_and},   {"or", decode_or},     {"xor", decode_xor},     {"not", decode_not},
            {"lop3", decode_lop3}, {"shl", decode_shl},   {"shr", decode_shr},     {"shf", decode_shf},
            {"bfe", decode_bfe},   {"bfi", decode_bfi},   {"bfind", decode_bfind}, {"popc", decode_popc},
            {"clz", decode_clz},   {"brev", decode_brev}, {"cnot", decode_cnot}};
}

}  // namespace emu
