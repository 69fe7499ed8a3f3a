// constexpr integer arithmetic used on both sides of the launch.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm {

template <typename T>
DG_HOST_DEVICE constexpr T ceil_div(T a, T b) {
    return (a + b - 1) / b;
}

template <typename T>
DG_HOST_DEVICE constexpr T align_up(T a, T b) {
    return ceil_div(a, b) * b;
}

template <typename T>
DG_HOST_DEVICE constexpr T min_of(T a, T b) {
    return a < b ? a : b;
}

template <typename T>
DG_HOST_DEVICE constexpr T max_of(T a, T b) {
    return a > b ? a : b;
}

template <typename T>
DG_HOST_DEVICE constexpr T gcd_of(T a, T b) {
    while (b != 0) {
        const T r = a % b;
        a = b;
        b = r;
    }
    return a;
}

}  // namespace deep_gemm
