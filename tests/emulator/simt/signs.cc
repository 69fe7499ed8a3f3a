// neg, abs and copysign of floats (PTX ISA 9.7.3 and 9.7.4); of integers they are arithmetic like any other.
#include "simt/families.h"
#include "simt/lanewise.h"
#include "tensor/formats.h"

namespace emu {

Handler integer_handler(std::string_view op, ScalarType t);

namespace {

using T = ScalarType;

void sign_bits(T t, uint64_t& signs) {
    signs = t == T::kF64                        ? 1ull << 63
            : t == T::kF32                      ? 1ull << 31
            : t == T::kF32x2                    ? 0x8000000080000000ull
            : t == T::kF16x2 || t == T::kBF16x2 ? 0x80008000ull
                                                : 0x8000ull;
}
// neg and abs are additions on the device, so NaN becomes the canonical one (f32: measured on H200).
uint64_t with_canonical_nan(uint64_t bits, T t) {
    if (t == T::kF32) return to_bits(canonical(from_bits<float>(bits)));
    if (t == T::kF64 || t == T::kF32x2) return bits;
    const uint32_t infinity = t == T::kBF16 || t == T::kBF16x2 ? 0x7F80 : 0x7C00;
    for (int shift = 0; shift < 32; shift += 16)
        if ((bits >> shift & 0x7FFF) > infinity) bits = (bits & ~(0xFFFFull << shift)) | 0x7FFFull << shift;
    return bits;
}
uint64_t flushed(uint64_t bits, const Instr& i) {  // .ftz: subnormals keep their sign alone (f32: measured on H200)
    return i.mode != 0 && (bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits;
}
Step negate(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t signs;
    sign_bits(i.type, signs);
    for_lanes(mask, [&](int l) { x.slot(i.d)[l] = with_canonical_nan(flushed(x.slot(i.a)[l], i) ^ signs, i.type); });
    return Step::kNext;
}
Step absolute(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t signs;
    sign_bits(i.type, signs);
    for_lanes(mask, [&](int l) { x.slot(i.d)[l] = with_canonical_nan(flushed(x.slot(i.a)[l], i) & ~signs, i.type); });
    return Step::kNext;
}
Step copysign(Exec& x, const Instr& i, LaneMask mask) {  // the sign comes from a
    const uint64_t sign = i.type == T::kF64 ? 1ull << 63 : 1ull << 31;
    for_lanes(mask, [&](int l) { x.slot(i.d)[l] = (x.slot(i.b)[l] & ~sign) | (x.slot(i.a)[l] & sign); });
    return Step::kNext;
}

void decode_sign(Decoder& d, Handler handler, std::string_view name) {
    const bool ftz = d.take("ftz");
    const T t = d.instr.type = d.require_type();
    if (ftz && t != T::kF32) d.refuse(".ftz of a sign is known for f32 alone");
    d.instr.mode = ftz;
    d.set(is_float(t) ? handler : integer_handler(name, t));
}
void decode_neg(Decoder& d) {
    decode_sign(d, negate, "neg");
}
void decode_abs(Decoder& d) {
    decode_sign(d, absolute, "abs");
}
void decode_copysign(Decoder& d) {
    d.instr.type = d.require_type();
    d.set(copysign);
}

}  // namespace

FamilyTable sign_families() {
    return {{"neg", decode_neg}, {"abs", decode_abs}, {"copysign", decode_copysign}};
}

}  // namespace emu
