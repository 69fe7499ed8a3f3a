#include "async/instruction_descriptor.h"

#include "machine/fault.h"

namespace emu {
namespace {

const FloatFormat* narrow_format(uint32_t code) {
    switch (code) {
        case 0:
            return &kE4M3;
        case 1:
            return &kE5M2;
        case 3:
            return &kE2M3;
        case 4:
            return &kE3M2;
        case 5:
            return &kE2M1;
        default:
            fault("instruction descriptor: operand format %u is unknown", code);
    }
}

ElementLayout layout_of(const FloatFormat& format, MmaKind kind) {
    if (is_packed_fp4(kind)) return {4, 4, false};
    const int bits = format.bits();
    if (bits < 8) return {8, bits, true};
    const int container = &format == &kTF32 ? 32 : bits;
    return {container, container, false};
}

void set_formats(MmaInstruction& i, uint32_t bits, MmaKind kind) {
    const uint32_t a = bits >> 7 & 7, b = is_packed_fp4(kind) ? bits >> 10 & 3 : bits >> 10 & 7;
    switch (kind) {
        case MmaKind::kF16:
            if (a > 1 || a != b)
                fault("instruction descriptor: kind::f16 takes two F16 (0) or two BF16 (1), not %u and %u", a,
                      b);
            i.a_format = i.b_format = a ? &kBF16 : &kF16;
            break;
        case MmaKind::kTf32:
            if (a != 2 || b != 2)
                fault("instruction descriptor: kind::tf32 takes format 2, not %u and %u", a, b);
            i.a_format = i.b_format = &kTF32;
            break;
        case MmaKind::kMxf4:
        case MmaKind::kMxf4nvf4:
            if (a != 1 || b != 1)
                fault("instruction descriptor: 4-bit kinds take E2M1 (1), not %u and %u", a, b);
            i.a_format = i.b_format = &kE2M1;
            break;
        case MmaKind::kI8:
            fault("kind::i8 is not supported");
        default:
            i.a_format = narrow_format(a);
            i.b_format = narrow_format(b);
    }
    i.a_layout = layout_of(*i.a_format, kind);
    i.b_layout = layout_of(*i.b_format, kind);
}

void check_shape(const MmaInstruction& i, MmaKind kind, int cta_group) {
    const bool scaled = is_block_scaled(kind);
    const bool m_ok =
        cta_group == 1 ? i.m == 128 || (i.m == 64 && !scaled) : i.m == 256 || (i.m == 128 && !scaled);
    if (!m_ok)
        fault("instruction descriptor: M = %d is illegal or unverified for this kind with cta_group::%d", i.m,
              cta_group);
    const int step = cta_group == 2 ? 16 : i.m == 128 ? 16 : 8;
    if (i.n < step || i.n > 256 || i.n % step)
        fault("instruction descriptor: N = %d is no multiple of %d in %d..256", i.n, step, step);
    const bool transposes = i.a_major == Major::kMn || i.b_major == Major::kMn;
    if (transposes && is_packed_fp4(kind))
        fault("instruction descriptor: the packed 4-bit kinds are K-major only");
}

}  // namespace

bool is_block_scaled(MmaKind kind) {
    return kind >= MmaKind::kMxf8f6f4;
}

MmaInstruction decode_instruction_descriptor(uint32_t bits, MmaKind kind, int cta_group) {
    MmaInstruction i{};
    if (bits & 7) fault("instruction descriptor 0x%08x: sparsity is not supported", bits);
    i.m = int(bits >> 24 & 31) << 4;
    i.n = int(bits >> 17 & 63) << 3;
    i.k = kind == MmaKind::kF16 ? 16 : kind == MmaKind::kTf32 ? 8 : is_packed_fp4(kind) ? 64 : 32;
    i.a_sign = bits >> 13 & 1 ? Sign::kNegate : Sign::kKeep;
    i.b_sign = bits >> 14 & 1 ? Sign::kNegate : Sign::kKeep;
    i.a_major = bits >> 15 & 1 ? Major::kMn : Major::kK;
    i.b_major = bits >> 16 & 1 ? Major::kMn : Major::kK;
    set_formats(i, bits, kind);
    if (is_block_scaled(kind)) {
        if (bits >> 31) fault("instruction descriptor 0x%08x: K = 96 is not supported", bits);
        i.scale_type = bits >> 23 & 1 ? ScaleType::kUe8m0 : ScaleType::kUe4m3;
        i.sfb_id = int(bits >> 4 & 3);
        i.sfa_id = int(bits >> 29 & 3);
    } else {
        const uint32_t d = bits >> 4 & 3;
        if (d > 1) fault("instruction descriptor 0x%08x: D format %u is not supported", bits, d);
        i.d_is_half = d == 0;
        if (i.d_is_half && kind == MmaKind::kTf32)
            fault("instruction descriptor: kind::tf32 has no F16 result");
    }
    check_shape(i, kind, cta_group);
    return i;
}

}  // namespace emu
