// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5). Approximate functions are computed exactly here and may
// differ from hardware by 2 ulp. Compiled with -frounding-math.
#include <cfenv>
#include <cmath>

#include "simt/families.h"
#include "simt/lanewise.h"
#include "tensor/formats.h"

namespace emu {

Handler integer_handler(std::string_view op, ScalarType t);

namespace {

using T = ScalarType;

enum ModeBits : uint32_t {
    kFtz = 1,
    kSat = 2,
    kRelu = 4,
    kNanPropagates = 8,
    kRoundShift = 8,
    kRoundMask = 0xF00
};
int host_rounding(uint32_t mode) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    return kModes[(mode & kRoundMask) >> kRoundShift];
}

struct FAdd {
    template <class V>
    V operator()(V a, V b, V) const {
        return a + b;
    }
};
struct FSub {
    template <class V>
    V operator()(V a, V b, V) const {
        return a - b;
    }
};
struct FMul {
    template <class V>
    V operator()(V a, V b, V) const {
        return a * b;
    }
};
struct FDiv {
    template <class V>
    V operator()(V a, V b, V) const {
        return a / b;
    }
};
struct FFma {
    template <class V>
    V operator()(V a, V b, V c) const {
        return std::fma(a, b, c);
    }
};
// Rounded to odd, so that rounding again to a format of few bits rounds the exact sum. Products of halves are
// exact.
struct FFmaToOdd {
    double operator()(double a, double b, double c) const {
        const double product = a * b, sum = product + c;
        if (!std::isfinite(sum)) return sum;
        const double c_part = sum - product, rest = (product - (sum - c_part)) + (c - c_part);
        if (rest == 0 || (std::bit_cast<uint64_t>(sum) & 1)) return sum;
        return std::nextafter(sum, rest > 0 ? INFINITY : -INFINITY);
    }
};
template <class F>
struct HalfForm {
    using Type = F;
};
template <>
struct HalfForm<FFma> {
    using Type = FFmaToOdd;
};
struct FSqrt {
    template <class V>
    V operator()(V a, V, V) const {
        return std::sqrt(a);
    }
};
struct FRcp {
    template <class V>
    V operator()(V a, V, V) const {
        return V(1) / a;
    }
};
struct FRsqrt {
    template <class V>
    V operator()(V a, V, V) const {
        return V(1 / std::sqrt(double(a)));
    }
};
struct FEx2 {
    template <class V>
    V operator()(V a, V, V) const {
        return V(std::exp2(double(a)));
    }
};
struct FLg2 {
    template <class V>
    V operator()(V a, V, V) const {
        return V(std::log2(double(a)));
    }
};
struct FSin {
    template <class V>
    V operator()(V a, V, V) const {
        return V(std::sin(double(a)));
    }
};
struct FCos {
    template <class V>
    V operator()(V a, V, V) const {
        return V(std::cos(double(a)));
    }
};
struct FTanh {
    template <class V>
    V operator()(V a, V, V) const {
        return V(std::tanh(double(a)));
    }
};
template <class V>
V smaller(V a, V b) {
    return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
struct FMin {
    template <class V>
    V operator()(V a, V b, V) const {
        return std::isnan(a) ? b : std::isnan(b) ? a : smaller(a, b);
    }
};
struct FMax {
    template <class V>
    V operator()(V a, V b, V) const {
        return std::isnan(a) ? b : std::isnan(b) ? a : -smaller(-a, -b);
    }
};
struct FNanMin {
    template <class V>
    V operator()(V a, V b, V) const {
        return std::isnan(a) || std::isnan(b) ? V(NAN) : smaller(a, b);
    }
};
struct FNanMax {
    template <class V>
    V operator()(V a, V b, V) const {
        return std::isnan(a) || std::isnan(b) ? V(NAN) : -smaller(-a, -b);
    }
};

float flush(float v) {
    return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
}
double flush(double v) {
    return v;
}

template <class V>
V finish(V value, uint32_t mode) {
    if (mode & kFtz) value = flush(value);
    if (mode & kSat)
        value = std::isnan(value) || std::signbit(value) ? V(0) : value > 1 ? V(1) : value;  // -0 gives +0 (measured on H200)
    if (mode & kRelu) value = std::isnan(value) ? value : value > 0 ? value : V(0);
    return value;
}
uint64_t pack(float v) {
    return std::bit_cast<uint32_t>(canonical(v));
}
uint64_t pack(double v) {
    return std::isnan(v) ? 0x7FF8000000000000ull : std::bit_cast<uint64_t>(v);
}

class RoundingScope {
  public:
    explicit RoundingScope(uint32_t mode) : changes_(mode & kRoundMask) {
        if (changes_) std::fesetround(host_rounding(mode));
    }
    ~RoundingScope() {
        if (changes_) std::fesetround(FE_TONEAREST);
    }

  private:
    bool changes_;
};

template <class V, class F, int kArity>
Step real(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    const uint64_t* b = kArity > 1 ? x.slot(i.b) : a;
    const uint64_t* c = kArity > 2 ? x.slot(i.c) : a;
    if (i.mode == 0) {
        for_lanes(mask, [&](int l) {
            d[l] = pack(F{}(from_bits<V>(a[l]), from_bits<V>(b[l]), from_bits<V>(c[l])));
        });
        return Step::kNext;
    }
    const RoundingScope rounding(i.mode);
    auto in = [&](uint64_t bits) { return i.mode & kFtz ? flush(from_bits<V>(bits)) : from_bits<V>(bits); };
    for_lanes(mask, [&](int l) { d[l] = pack(finish(F{}(in(a[l]), in(b[l]), in(c[l])), i.mode)); });
    return Step::kNext;
}

// Two f32 in 64 bits: fma/add/mul.rn.f32x2 (sm_100).
template <class F, int kArity>
Step pair32(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    const uint64_t* b = kArity > 1 ? x.slot(i.b) : a;
    const uint64_t* c = kArity > 2 ? x.slot(i.c) : a;
    const RoundingScope rounding(i.mode);
    auto one = [&](uint64_t p, uint64_t q, uint64_t r) {
        auto in = [&](uint64_t bits) {
            return i.mode & kFtz ? flush(from_bits<float>(bits)) : from_bits<float>(bits);
        };
        return pack(finish(F{}(in(p), in(q), in(r)), i.mode));
    };
    for_lanes(mask,
              [&](int l) { d[l] = one(a[l], b[l], c[l]) | one(a[l] >> 32, b[l] >> 32, c[l] >> 32) << 32; });
    return Step::kNext;
}

// 16-bit floats, one or two in a register: computed in double, rounded once to the format.
template <class F, int kArity>
Step half(Exec& x, const Instr& i, LaneMask mask) {
    const bool is_bf16 = i.type == T::kBF16 || i.type == T::kBF16x2;
    const bool is_pair = i.type == T::kF16x2 || i.type == T::kBF16x2;
    const FloatFormat& format = is_bf16 ? kBF16 : kF16;
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    const uint64_t* b = kArity > 1 ? x.slot(i.b) : a;
    const uint64_t* c = kArity > 2 ? x.slot(i.c) : a;
    auto in = [&](uint64_t bits) { return double(decode_float(bits & 0xFFFF, format)); };
    auto one = [&](uint64_t p, uint64_t q, uint64_t r) -> uint64_t {
        return encode_float(finish(F{}(in(p), in(q), in(r)), i.mode & ~kRoundMask), format,
                            Rounding::kNearestEven, Overflow::kToInfinity);
    };
    for_lanes(mask, [&](int l) {
        const uint64_t low = one(a[l], b[l], c[l]);
        d[l] = is_pair ? low | one(a[l] >> 16, b[l] >> 16, c[l] >> 16) << 16 : low;
    });
    return Step::kNext;
}

// add/sub/fma.f32.{f16,bf16}: the 16-bit inputs are widened, one rounding (sm_100).
template <class F, int kArity>
Step mixed(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(kArity > 2 ? i.c : i.b);
    const RoundingScope rounding(i.mode);
    auto wide = [&](uint64_t bits) {
        return i.source_type == T::kBF16 ? bf16_to_float(uint16_t(bits)) : f16_to_float(uint16_t(bits));
    };
    for_lanes(mask, [&](int l) {
        const float second = kArity > 2 ? wide(b[l]) : from_bits<float>(b[l]);
        d[l] = pack(finish(F{}(wide(a[l]), second, from_bits<float>(c[l])), i.mode));
    });
    return Step::kNext;
}

template <class F, int kArity>
Handler real_handler(T t) {
    switch (t) {
        case T::kF32:
            return real<float, F, kArity>;
        case T::kF64:
            return real<double, F, kArity>;
        case T::kF32x2:
            return pair32<F, kArity>;
        case T::kF16:
        case T::kBF16:
        case T::kF16x2:
        case T::kBF16x2:
            return half<typename HalfForm<F>::Type, kArity>;
        default:
            return nullptr;
    }
}

// Takes rounding, .ftz, .sat, .relu, .NaN, .approx and .full; returns the type.
T take_float_qualifiers(Decoder& d) {
    const int rounding = d.take_one({"rn", "rz", "rm", "rp"});
    uint32_t mode = rounding > 0 ? uint32_t(rounding) << kRoundShift : 0;
    if (d.take("ftz")) mode |= kFtz;
    if (d.take("sat")) mode |= kSat;
    if (d.take("relu")) mode |= kRelu;
    d.take_one({"approx", "full"});
    d.instr.mode = mode;
    return d.instr.type = d.require_type();
}

template <class F, int kArity>
void decode_arithmetic(Decoder& d, std::string_view name) {
    // An integer type settles the matter before any float qualifier is looked at.
    for (std::string_view t : {"u16", "u32", "u64", "s16", "s32", "s64"})
        if (d.has(t)) {
            const std::string op = std::string(name) + (d.take("sat") ? ".sat" : "");
            return d.set(integer_handler(op, d.require_type()));
        }
    const T t = take_float_qualifiers(d);
    if constexpr (kArity >= 2) {
        const T source = t == T::kF32 ? d.take_type() : T::kNone;
        if (source != T::kNone) {
            if (source != T::kF16 && source != T::kBF16) d.refuse("mixed precision takes f16 or bf16");
            d.instr.source_type = source;
            return d.set(mixed<F, kArity>);
        }
    }
    d.set(real_handler<F, kArity>(t));
}

void decode_add(Decoder& d) {
    decode_arithmetic<FAdd, 2>(d, "add");
}
void decode_sub(Decoder& d) {
    decode_arithmetic<FSub, 2>(d, "sub");
}
void decode_div(Decoder& d) {
    decode_arithmetic<FDiv, 2>(d, "div");
}
void decode_mul(Decoder& d) {
    const int form = d.take_one({"lo", "hi", "wide"});
    constexpr std::string_view kNames[] = {"mul.lo", "mul.hi", "mul.wide"};
    decode_arithmetic<FMul, 2>(d, form < 0 ? "none" : kNames[form]);
}
void decode_fma(Decoder& d) {
    decode_arithmetic<FFma, 3>(d, "none");
}
void decode_rem(Decoder& d) {
    d.set(integer_handler("rem", d.require_type()));
}
void decode_min(Decoder& d) {
    const bool nan = d.take("NaN"), relu = d.has("relu") && (d.has("s32"));
    if (relu) d.take("relu");
    nan ? decode_arithmetic<FNanMin, 2>(d, "min") : decode_arithmetic<FMin, 2>(d, relu ? "min.relu" : "min");
}
void decode_max(Decoder& d) {
    const bool nan = d.take("NaN"), relu = d.has("relu") && (d.has("s32"));
    if (relu) d.take("relu");
    nan ? decode_arithmetic<FNanMax, 2>(d, "max") : decode_arithmetic<FMax, 2>(d, relu ? "max.relu" : "max");
}
template <class F>
void decode_function(Decoder& d) {
    d.set(real_handler<F, 1>(take_float_qualifiers(d)));
}
}  // namespace

FamilyTable float_families() {
    return {{"add", decode_add},
            {"sub", decode_sub},
            {"mul", decode_mul},
            {"div", decode_div},
            {"rem", decode_rem},
            {"fma", decode_fma},
            {"min", decode_min},
            {"max", decode_max},
            {"sqrt", decode_function<FSqrt>},
            {"rcp", decode_function<FRcp>},
            {"rsqrt", decode_function<FRsqrt>},
            {"ex2", decode_function<FEx2>},
            {"lg2", decode_function<FLg2>},
            {"sin", decode_function<FSin>},
            {"cos", decode_function<FCos>},
            {"tanh", decode_function<FTanh>}};
}

}  // namespace emu
