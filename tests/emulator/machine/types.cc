#include "machine/types.h"

#include <array>
#include <utility>

namespace emu {
namespace {

using T = ScalarType;
struct TypeInfo {
    std::string_view name;
    T type;
    int bytes;
};

constexpr std::array kTypes = {
    TypeInfo{"pred", T::kPred, 1},       TypeInfo{"b8", T::kB8, 1},         TypeInfo{"b16", T::kB16, 2},
    TypeInfo{"b32", T::kB32, 4},         TypeInfo{"b64", T::kB64, 8},       TypeInfo{"b128", T::kB128, 16},
    TypeInfo{"u8", T::kU8, 1},           TypeInfo{"u16", T::kU16, 2},       TypeInfo{"u32", T::kU32, 4},
    TypeInfo{"u64", T::kU64, 8},         TypeInfo{"s8", T::kS8, 1},         TypeInfo{"s16", T::kS16, 2},
    TypeInfo{"s32", T::kS32, 4},         TypeInfo{"s64", T::kS64, 8},       TypeInfo{"f16", T::kF16, 2},
    TypeInfo{"bf16", T::kBF16, 2},       TypeInfo{"f32", T::kF32, 4},       TypeInfo{"f64", T::kF64, 8},
    TypeInfo{"f16x2", T::kF16x2, 4},     TypeInfo{"bf16x2", T::kBF16x2, 4}, TypeInfo{"f32x2", T::kF32x2, 8},
    TypeInfo{"tf32", T::kTF32, 4},       TypeInfo{"e4m3x2", T::kE4M3x2, 2}, TypeInfo{"e5m2x2", T::kE5M2x2, 2},
    TypeInfo{"e2m1x2", T::kE2M1x2, 1},   TypeInfo{"e2m3x2", T::kE2M3x2, 2}, TypeInfo{"e3m2x2", T::kE3M2x2, 2},
    TypeInfo{"ue8m0x2", T::kUE8M0x2, 2}, TypeInfo{"e4m3", T::kE4M3, 1},     TypeInfo{"e5m2", T::kE5M2, 1},
    TypeInfo{"e2m1", T::kE2M1, 1},       TypeInfo{"e2m3", T::kE2M3, 1},     TypeInfo{"e3m2", T::kE3M2, 1},
    TypeInfo{"ue8m0", T::kUE8M0, 1},
};

}  // namespace

ScalarType parse_type(std::string_view name) {
    for (const auto& info : kTypes)
        if (info.name == name) return info.type;
    return T::kNone;
}

int type_bytes(ScalarType type) {
    for (const auto& info : kTypes)
        if (info.type == type) return info.bytes;
    return 0;
}

bool is_signed(ScalarType type) {
    return type == T::kS8 || type == T::kS16 || type == T::kS32 || type == T::kS64;
}

bool is_float(ScalarType type) {
    return type == T::kF16 || type == T::kBF16 || type == T::kF32 || type == T::kF64 || type == T::kF16x2 ||
           type == T::kBF16x2 || type == T::kF32x2;
}

}  // namespace emu
