// Reading C and writing D of a GEMM problem on host memory. `Problem` has m, n, d, c, d_dtype and their row strides.
#pragma once

#include <cstring>

#include "reference/number.h"

namespace deep_gemm::reference {

template <typename Problem>
double load_c(const Problem& p, int64_t m, int64_t n) {
    const int64_t at = m * p.c_row_stride + n;
    if (p.d_dtype == Dtype::kF32) return static_cast<const float*>(p.c)[at];
    return decode_bf16(static_cast<const uint16_t*>(p.c)[at]);
}

template <typename Problem>
void store_d(const Problem& p, int64_t m, int64_t n, double value) {
    const int64_t at = m * p.d_row_stride + n;
    if (p.d_dtype == Dtype::kF32)
        static_cast<float*>(p.d)[at] = static_cast<float>(value);
    else
        static_cast<uint16_t*>(p.d)[at] = encode_bf16(value);
}

// D without a product: C's bits, or zeros.
template <typename Problem>
void copy_c(const Problem& p) {
    const int64_t bytes = p.d_dtype == Dtype::kF32 ? 4 : 2;
    for (int64_t m = 0; m < p.m; ++m) {
        char* d = static_cast<char*>(p.d) + m * p.d_row_stride * bytes;
        const char* c = static_cast<const char*>(p.c) + m * p.c_row_stride * bytes;
        if (!p.has_c())
            std::memset(d, 0, p.n * bytes);
        else if (c != d)
            std::memcpy(d, c, p.n * bytes);
    }
}

}  // namespace deep_gemm::reference
