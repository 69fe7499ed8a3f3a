// mov, setp, selp, prmt, cvta, mapa and their like (PTX ISA 9.7.6, 9.7.7, 9.7.9).
#include <cmath>

#include "simt/families.h"
#include "simt/lanewise.h"
#include "tensor/formats.h"

namespace emu {
namespace {

using T = ScalarType;

template <class I>
Step move(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    for_lanes(mask, [&](int l) { d[l] = to_bits(from_bits<I>(a[l])); });
    return Step::kNext;
}

Step move_wide(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        x.slot(i.d)[l] = x.slot(i.a)[l];
        x.slot(i.d + 1)[l] = x.slot(i.a + 1)[l];
    });
    return Step::kNext;
}

// mov.b64 d, {a, b}: element k takes bits [k*w, (k+1)*w).
Step pack(Exec& x, const Instr& i, LaneMask mask) {
    const auto& parts = i.operands[1].elements;
    const int bits = 8 * type_bytes(i.type) / int(parts.size());
    for_lanes(mask, [&](int l) {
        uint64_t words[2] = {0, 0};
        for (size_t k = 0; k < parts.size(); ++k) {
            const int at = int(k) * bits;
            words[at / 64] |= low_bits(x.slot(parts[k])[l], bits / 8) << (at % 64);
        }
        x.slot(i.d)[l] = words[0];
        if (i.operands[0].is_wide) x.slot(i.d + 1)[l] = words[1];
    });
    return Step::kNext;
}

Step unpack(Exec& x, const Instr& i, LaneMask mask) {
    const auto& parts = i.operands[0].elements;
    const int bits = 8 * type_bytes(i.type) / int(parts.size());
    for_lanes(mask, [&](int l) {
        const uint64_t words[2] = {x.slot(i.a)[l], i.operands[1].is_wide ? x.slot(i.a + 1)[l] : 0};
        for (size_t k = 0; k < parts.size(); ++k) {
            const int at = int(k) * bits;
            x.slot(parts[k])[l] = low_bits(words[at / 64] >> (at % 64), bits / 8);
        }
    });
    return Step::kNext;
}

void decode_mov(Decoder& d) {
    const T t = d.instr.type = d.require_type();
    d.expect_operands(2, 2);
    if (d.operand(0).kind == Operand::Kind::kVector) return d.set(unpack);
    if (d.operand(1).kind == Operand::Kind::kVector) return d.set(pack);
    switch (type_bytes(t)) {
        case 1:
            return d.set(move<uint8_t>);
        case 2:
            return d.set(move<uint16_t>);
        case 4:
            return d.set(move<uint32_t>);
        case 8:
            return d.set(move<uint64_t>);
        default:
            return d.set(move_wide);
    }
}

enum Compare : uint32_t {
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kLo,
    kLs,
    kHi,
    kHs,
    kEqu,
    kNeu,
    kLtu,
    kLeu,
    kGtu,
    kGeu,
    kNum,
    kNan
};

template <class V>
bool compare(Compare op, V a, V b) {
    switch (op) {
        case kEq:
            return a == b;
        case kNe:
            return a < b || a > b;
        case kLt:
        case kLo:
            return a < b;
        case kLe:
        case kLs:
            return a <= b;
        case kGt:
        case kHi:
            return a > b;
        case kGe:
        case kHs:
            return a >= b;
        default:
            break;
    }
    bool unordered = false;
    if constexpr (std::is_floating_point_v<V>) unordered = std::isnan(a) || std::isnan(b);
    switch (op) {
        case kEqu:
            return unordered || a == b;
        case kNeu:
            return unordered || a != b;
        case kLtu:
            return unordered || a < b;
        case kLeu:
            return unordered || a <= b;
        case kGtu:
            return unordered || a > b;
        case kGeu:
            return unordered || a >= b;
        case kNum:
            return !unordered;
        default:
            return unordered;
    }
}

struct HalfValue {
    uint16_t bits;
};
template <class V>
auto number(uint64_t bits, T) {
    return from_bits<V>(bits);
}
template <>
auto number<HalfValue>(uint64_t bits, T t) {
    return t == T::kBF16 ? bf16_to_float(uint16_t(bits)) : f16_to_float(uint16_t(bits));
}

// mode: comparison, bits 8..9: 0 none, 1 and, 2 or, 3 xor with a predicate
template <class V>
Step set_predicate(Exec& x, const Instr& i, LaneMask mask) {
    const Operand& out = i.operands[0];
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    const uint32_t combine = i.mode >> 8;
    for_lanes(mask, [&](int l) {
        const bool r = compare(Compare(i.mode & 0xFF), number<V>(a[l], i.type), number<V>(b[l], i.type));
        bool p = r, q = !r;
        if (combine) {
            const bool c = (x.slot(i.c)[l] & 1) ^ i.operands[3].negated;
            p = combine == 1 ? p && c : combine == 2 ? p || c : p != c;
            q = combine == 1 ? q && c : combine == 2 ? q || c : q != c;
        }
        x.slot(out.slot)[l] = p;
        if (out.second >= 0) x.slot(out.second)[l] = q;
    });
    return Step::kNext;
}

Handler predicate_handler(T t) {
    switch (t) {
        case T::kU16:
        case T::kB16:
            return set_predicate<uint16_t>;
        case T::kS16:
            return set_predicate<int16_t>;
        case T::kU32:
        case T::kB32:
            return set_predicate<uint32_t>;
        case T::kS32:
            return set_predicate<int32_t>;
        case T::kU64:
        case T::kB64:
            return set_predicate<uint64_t>;
        case T::kS64:
            return set_predicate<int64_t>;
        case T::kF32:
            return set_predicate<float>;
        case T::kF64:
            return set_predicate<double>;
        case T::kF16:
        case T::kBF16:
            return set_predicate<HalfValue>;
        default:
            return nullptr;
    }
}

void decode_setp(Decoder& d) {
    const int op = d.require_one({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu",
                                  "ltu", "leu", "gtu", "geu", "num", "nan"});
    const int combine = d.take_one({"and", "or", "xor"});
    d.take("ftz");
    d.instr.mode = uint32_t(op) | uint32_t(combine + 1) << 8;
    d.instr.type = d.require_type();
    d.expect_operands(combine < 0 ? 3 : 4, 4);
    d.set(predicate_handler(d.instr.type));
}

Step select(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *p = x.slot(i.c);
    const int bytes = type_bytes(i.type);
    for_lanes(mask, [&](int l) { d[l] = low_bits(p[l] & 1 ? a[l] : b[l], bytes); });
    return Step::kNext;
}
void decode_selp(Decoder& d) {
    d.instr.type = d.require_type();
    d.set(select);
}

// Default mode: selector nibble picks a byte of {b, a}; its top bit replicates the sign.
uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = uint64_t{b} << 32 | a;
    uint32_t r = 0;
    for (int k = 0; k < 4; ++k) {
        const uint32_t s = selector >> (4 * k);
        auto byte = uint32_t(bytes >> (8 * (s & 7))) & 0xFF;
        if (s & 8) byte = byte & 0x80 ? 0xFF : 0;
        r |= byte << (8 * k);
    }
    return r;
}
uint32_t permute_mode(uint32_t mode, uint32_t n) {
    static constexpr uint16_t kTables[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
        {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return kTables[mode - 1][n & 3];
}
Step byte_permute(Exec& x, const Instr& i, LaneMask mask) {
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) {
        const auto selector = uint32_t(c[l]);
        x.slot(i.d)[l] =
            permute(uint32_t(a[l]), uint32_t(b[l]), i.mode ? permute_mode(i.mode, selector) : selector);
    });
    return Step::kNext;
}
void decode_prmt(Decoder& d) {
    d.require("b32");
    d.instr.mode = uint32_t(d.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) + 1);
    d.set(byte_permute);
}

// mode 0: identity; 1: shared offset -> generic; 2: generic -> shared; 3, 4: the same for local
Step convert_address(Exec& x, const Instr& i, LaneMask mask) {
    const uint64_t* a = x.slot(i.a);
    for_lanes(mask, [&](int l) {
        const uint64_t tag = i.mode <= 2 ? kSharedTag : kLocalTag;
        if ((i.mode == 2 || i.mode == 4) && (a[l] & kTagMask) != tag)
            fault("cvta.to: generic address 0x%llx is not in that state space",
                  static_cast<unsigned long long>(a[l]));
        x.slot(i.d)[l] = i.mode == 0 ? a[l] : i.mode & 1 ? tag | uint32_t(a[l]) : uint32_t(a[l]);
    });
    return Step::kNext;
}
void decode_cvta(Decoder& d) {
    const bool to = d.take("to");
    const int space = d.require_one(
        {"global", "param", "const", "shared", "shared::cta", "shared::cluster", "local", "param::entry"});
    d.require_type();
    const bool is_shared = space >= 3 && space <= 5, is_local = space == 6;
    d.instr.mode = is_shared ? (to ? 2 : 1) : is_local ? (to ? 4 : 3) : 0;
    d.set(convert_address);
}

// mapa: the same offset in the window of another CTA: (rank << 24) | offset (measured on H200).
Step map_address(Exec& x, const Instr& i, LaneMask mask) {
    const uint64_t *a = x.slot(i.a), *rank = x.slot(i.b);
    for_lanes(mask, [&](int l) {
        if (rank[l] >= x.cluster.ctas.size())
            fault("mapa: CTA rank %llu, but the cluster has %zu CTAs",
                  static_cast<unsigned long long>(rank[l]), x.cluster.ctas.size());
        const uint64_t mapped = (uint32_t(a[l]) & kOffsetMask) | uint32_t(rank[l]) << kRankShift;
        x.slot(i.d)[l] = i.mode ? kSharedTag | mapped : mapped;
    });
    return Step::kNext;
}
void decode_mapa(Decoder& d) {
    d.instr.mode = !d.take("shared::cluster");
    d.require_type();
    d.set(map_address);
}
Step rank_of_address(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) { x.slot(i.d)[l] = uint32_t(x.slot(i.a)[l]) >> kRankShift; });
    return Step::kNext;
}
void decode_getctarank(Decoder& d) {
    d.take("shared::cluster");
    d.require_type();
    d.set(rank_of_address);
}

// isspacep and testp share the shape "predicate of one value".
Step is_space(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        const uint64_t tag = x.slot(i.a)[l] & kTagMask;
        x.slot(i.d)[l] = i.mode == 0 ? tag == 0 : i.mode == 1 ? tag == kSharedTag : tag == kLocalTag;
    });
    return Step::kNext;
}
void decode_isspacep(Decoder& d) {
    const int space = d.require_one({"global", "const", "shared", "shared::cta", "shared::cluster", "local"});
    d.instr.mode = space <= 1 ? 0 : space == 5 ? 2 : 1;
    d.set(is_space);
}
Step test_property(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        const double v =
            i.type == T::kF64 ? from_bits<double>(x.slot(i.a)[l]) : from_bits<float>(x.slot(i.a)[l]);
        const bool r[] = {std::isfinite(v), std::isinf(v), !std::isnan(v), std::isnan(v)};
        x.slot(i.d)[l] = r[i.mode];
    });
    return Step::kNext;
}
void decode_testp(Decoder& d) {
    d.instr.mode = uint32_t(d.require_one({"finite", "infinite", "number", "notanumber"}));
    d.instr.type = d.require_type();
    d.set(test_property);
}

}  // namespace

FamilyTable data_families() {
    return {{"mov", decode_mov},
            {"setp", decode_setp},
            {"selp", decode_selp},
            {"prmt", decode_prmt},
            {"cvta", decode_cvta},
            {"mapa", decode_mapa},
            {"getctarank", decode_getctarank},
            {"isspacep", decode_isspacep},
            {"testp", decode_testp}};
}

}  // namespace emu
