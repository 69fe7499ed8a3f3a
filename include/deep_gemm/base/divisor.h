// Division by a number that the host knows. A kernel takes some 200 cycles for one of its own: ahead of the first load, and
// between tiles.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm {

// n / value = n * multiplier >> shift for all n < 2^31, where multiplier = 2^shift / value rounded up to more, and
// 2^(shift - 31) >= value: the excess stays below 1 / value. After Granlund and Montgomery, "Division by invariant integers
// using multiplication", 1994.
struct Divisor {
    uint32_t value, multiplier, shift;

    DG_HOST_DEVICE constexpr uint32_t quotient(uint32_t n) const {
        return static_cast<uint32_t>(static_cast<uint64_t>(n) * multiplier >> shift);
    }
};

// Zero is taken for one.
DG_HOST_DEVICE constexpr Divisor divisor_of(uint32_t value) {
    if (value == 0) value = 1;
    uint32_t shift = 31;
    while (uint64_t{1} << (shift - 31) < value) ++shift;
    return {value, static_cast<uint32_t>((uint64_t{1} << shift) / value + 1), shift};
}

}  // namespace deep_gemm
