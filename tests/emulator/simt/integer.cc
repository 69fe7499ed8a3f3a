// Integer arithmetic (PTX ISA 9.7.1). Values are zero-extended in their slots.
#include <limits>
#include <type_traits>

#include "simt/families.h"
#include "simt/lanewise.h"

namespace emu {
namespace {

using T = ScalarType;

template <class I>
using Unsigned = std::make_unsigned_t<I>;

struct Add {
    template <class I>
    I operator()(I a, I b) const {
        return I(Unsigned<I>(a) + Unsigned<I>(b));
    }
};
struct Sub {
    template <class I>
    I operator()(I a, I b) const {
        return I(Unsigned<I>(a) - Unsigned<I>(b));
    }
};
struct AddSat {
    int32_t operator()(int32_t a, int32_t b) const {
        int32_t r;
        return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT32_MIN : INT32_MAX) : r;
    }
};
struct SubSat {
    int32_t operator()(int32_t a, int32_t b) const {
        int32_t r;
        return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT32_MIN : INT32_MAX) : r;
    }
};
struct MulLo {
    template <class I>
    I operator()(I a, I b) const {
        return I(uint64_t(a) * uint64_t(b));
    }
};
struct MulHi {
    template <class I>
    I operator()(I a, I b) const {
        using Wide = std::conditional_t<std::is_signed_v<I>, __int128, unsigned __int128>;
        return I((Wide(a) * Wide(b)) >> (8 * sizeof(I)));
    }
};
// Division by zero gives all ones in quotient and remainder, as hardware does; the ISA leaves it open.
struct Div {
    template <class I>
    I operator()(I a, I b) const {
        if (b == 0) return I(-1);
        if (std::is_signed_v<I> && b == I(-1)) return I(Unsigned<I>(0) - Unsigned<I>(a));
        return I(a / b);
    }
};
struct Rem {
    template <class I>
    I operator()(I a, I b) const {
        if (b == 0) return I(-1);
        return std::is_signed_v<I> && b == I(-1) ? I(0) : I(a % b);
    }
};
struct Min {
    template <class I>
    I operator()(I a, I b) const {
        return a < b ? a : b;
    }
};
struct Max {
    template <class I>
    I operator()(I a, I b) const {
        return a > b ? a : b;
    }
};
struct MinRelu {
    template <class I>
    I operator()(I a, I b) const {
        return Max{}(I(0), Min{}(a, b));
    }
};
struct MaxRelu {
    template <class I>
    I operator()(I a, I b) const {
        return Max{}(I(0), Max{}(a, b));
    }
};
struct Neg {
    template <class I>
    I operator()(I a) const {
        return I(Unsigned<I>(0) - Unsigned<I>(a));
    }
};
struct Abs {
    template <class I>
    I operator()(I a) const {
        return a < 0 ? Neg{}(a) : a;
    }
};
struct MadLo {
    template <class I>
    I operator()(I a, I b, I c) const {
        return Add{}(MulLo{}(a, b), c);
    }
};
struct MadHi {
    template <class I>
    I operator()(I a, I b, I c) const {
        return Add{}(MulHi{}(a, b), c);
    }
};
template <class F>
Handler all_ints2(T t) {
    switch (t) {
        case T::kU16:
        case T::kB16:
            return binary<uint16_t, F>;
        case T::kS16:
            return binary<int16_t, F>;
        case T::kU32:
        case T::kB32:
            return binary<uint32_t, F>;
        case T::kS32:
            return binary<int32_t, F>;
        case T::kU64:
        case T::kB64:
            return binary<uint64_t, F>;
        case T::kS64:
            return binary<int64_t, F>;
        default:
            return nullptr;
    }
}
template <class F>
Handler all_ints3(T t) {
    switch (t) {
        case T::kU16:
            return ternary<uint16_t, F>;
        case T::kS16:
            return ternary<int16_t, F>;
        case T::kU32:
            return ternary<uint32_t, F>;
        case T::kS32:
            return ternary<int32_t, F>;
        case T::kU64:
            return ternary<uint64_t, F>;
        case T::kS64:
            return ternary<int64_t, F>;
        default:
            return nullptr;
    }
}
template <class F>
Handler signed1(T t) {
    switch (t) {
        case T::kS16:
            return unary<int16_t, F>;
        case T::kS32:
            return unary<int32_t, F>;
        case T::kS64:
            return unary<int64_t, F>;
        default:
            return nullptr;
    }
}
template <class I, class W>
Step mul_wide(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) { d[l] = to_bits(W(W(from_bits<I>(a[l])) * W(from_bits<I>(b[l])))); });
    return Step::kNext;
}
template <class I, class W>
Step mad_wide(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) {
        d[l] = to_bits(W(W(from_bits<I>(a[l])) * W(from_bits<I>(b[l])) + from_bits<W>(c[l])));
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

void decode_mad(Decoder& d) {
    const int form = d.require_one({"lo", "hi", "wide"});
    const T t = d.require_type();
    if (form == 0) return d.set(all_ints3<MadLo>(t));
    if (form == 1) return d.set(all_ints3<MadHi>(t));
    d.set(t == T::kU16   ? mad_wide<uint16_t, uint32_t>
          : t == T::kS16 ? mad_wide<int16_t, int32_t>
          : t == T::kU32 ? mad_wide<uint32_t, uint64_t>
          : t == T::kS32 ? mad_wide<int32_t, int64_t>
                         : nullptr);
}
void decode_dp4a(Decoder& d) {
    const bool a_signed = d.require_type() == T::kS32, b_signed = d.take("s32") || (d.take("u32"), false);
    d.instr.mode = uint32_t(a_signed) + 2 * uint32_t(b_signed);
    d.set(dp4a);
}

}  // namespace

// add, sub, mul, div, min, max, neg and abs also exist for floats: float.cc owns their names and asks here.
Handler integer_handler(std::string_view op, T t) {
    if (op == "add.sat") return binary<int32_t, AddSat>;
    if (op == "sub.sat") return binary<int32_t, SubSat>;
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
    return t == T::kU16   ? mul_wide<uint16_t, uint32_t>
           : t == T::kS16 ? mul_wide<int16_t, int32_t>
           : t == T::kU32 ? mul_wide<uint32_t, uint64_t>
           : t == T::kS32 ? mul_wide<int32_t, int64_t>
                          : nullptr;
}

FamilyTable integer_families() {
    return {{"mad", decode_mad}, {"dp4a", decode_dp4a}};
}

}  // namespace emu
