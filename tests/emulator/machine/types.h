// Scalar types of PTX and the bit-level helpers that every part of the emulator shares.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace emu {

using LaneMask = uint32_t;
constexpr int kWarpLanes = 32;
constexpr LaneMask kAllLanes = 0xFFFFFFFFu;

enum class ScalarType : uint8_t {
    kNone,
    kPred,
    kB8,
    kB16,
    kB32,
    kB64,
    kB128,
    kU8,
    kU16,
    kU32,
    kU64,
    kS8,
    kS16,
    kS32,
    kS64,
    kF16,
    kBF16,
    kF32,
    kF64,
    kF16x2,
    kBF16x2,
    kF32x2,
    kTF32,
    kE4M3x2,
    kE5M2x2,
    kE2M1x2,
    kE2M3x2,
    kE3M2x2,
    kUE8M0x2,
    kE4M3,
    kE5M2,
    kE2M1,
    kE2M3,
    kE3M2,
    kUE8M0,
};

ScalarType parse_type(std::string_view name);  // kNone when the name is no type
int type_bytes(ScalarType type);
bool is_signed(ScalarType type);
bool is_float(ScalarType type);

template <class T>
inline T from_bits(uint64_t bits) {
    if constexpr (sizeof(T) == 8)
        return std::bit_cast<T>(bits);
    else if constexpr (sizeof(T) == 4)
        return std::bit_cast<T>(static_cast<uint32_t>(bits));
    else if constexpr (sizeof(T) == 2)
        return std::bit_cast<T>(static_cast<uint16_t>(bits));
    else
        return std::bit_cast<T>(static_cast<uint8_t>(bits));
}

template <class T>
inline uint64_t to_bits(T value) {
    if constexpr (sizeof(T) == 8)
        return std::bit_cast<uint64_t>(value);
    else if constexpr (sizeof(T) == 4)
        return std::bit_cast<uint32_t>(value);
    else if constexpr (sizeof(T) == 2)
        return std::bit_cast<uint16_t>(value);
    else
        return std::bit_cast<uint8_t>(value);
}

// Calls f(lane) for every lane of the mask; the full warp takes a loop that the compiler can vectorise.
template <class F>
inline void for_lanes(LaneMask mask, F f) {
    if (mask == kAllLanes) {
        for (int lane = 0; lane < kWarpLanes; ++lane) f(lane);
    } else {
        for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
    }
}

inline uint64_t sign_extend(uint64_t bits, int bytes) {
    const int shift = 64 - 8 * bytes;
    return static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
}

inline uint64_t low_bits(uint64_t bits, int bytes) {
    return bytes >= 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

template <class T>
inline T round_up(T value, T step) {
    return (value + step - 1) / step * step;
}

}  // namespace emu
