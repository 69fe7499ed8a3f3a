// The 32-bit instruction descriptor of tcgen05.mma (PTX ISA 9.7.16.4.2) with the legality rules of each kind.
#pragma once

#include <cstdint>

#include "async/descriptor.h"
#include "tensor/fused_dot.h"
#include "tensor/scaled_dot.h"

namespace emu {

enum class MmaKind : uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };

struct MmaInstruction {
    int m, n, k;
    bool d_is_half;
    const FloatFormat *a_format, *b_format;
    ElementLayout a_layout, b_layout;
    Sign a_sign, b_sign;
    Major a_major, b_major;
    ScaleType scale_type;
    int sfa_id, sfb_id;
};

bool is_block_scaled(MmaKind kind);
inline bool is_packed_fp4(MmaKind kind) {
    return kind == MmaKind::kMxf4 || kind == MmaKind::kMxf4nvf4;
}
MmaInstruction decode_instruction_descriptor(uint32_t bits, MmaKind kind, int cta_group);

}  // namespace emu
