// A GEMM grouped along K that has passed the contract: if it exists, it is valid.
#pragma once

#include <cstdint>

#include "problem/fp8_gemm.h"
#include "support/tensor_view.h"

namespace deep_gemm {

// How A (and B) hold the groups' parts of K.
//   kMatrices  group after group a K-major matrix of its own, [M, K of the group], without gaps: FP8 `nt`
//   kRows      rows of one matrix [K, M], unit stride along M: `tn`
enum class KLayout : uint8_t { kMatrices, kRows };

struct KGroupedOperand {
    const void* data = nullptr;
    int64_t row_stride = 0;  // kRows: elements between rows, 16-byte multiples
    ScaleView scales;        // FP8: one per row of M or N and `gran_k` of K
    bool operator==(const KGroupedOperand&) const = default;
};

// D[g] = C[g] + A[g] @ B[g]^T, FP32, over each group's part of K; a group without K has D = C, or zeros.
struct KGroupedGemmProblem {
    int64_t m = 0, n = 0, k = 0;  // k: of all groups
    int64_t groups = 0;
    const int32_t* sizes = nullptr;  // [groups], each group's K; where `alignment` > 0 its end along K
    int64_t alignment = 0;  // > 0: groups start at multiples of it, rows of gaps are zeros; kRows alone
    Device device;
    KLayout layout = KLayout::kMatrices;
    Dtype dtype = Dtype::kF8E4M3;  // of A and B; kF8E4M3 or kBf16
    int gran_k = 128;
    KGroupedOperand a, b;
    Dtype d_dtype = Dtype::kF32;
    void* d = nullptr;
    int64_t d_row_stride = 0, d_group_stride = 0;  // elements
    const void* c = nullptr;
    int64_t c_row_stride = 0, c_group_stride = 0;

    bool has_c() const { return c != nullptr; }
    bool c_is_d() const { return has_c() && c == d; }  // the contract refuses any other overlap
    bool empty_output() const { return m == 0 || n == 0 || groups == 0; }
    bool operator==(const KGroupedGemmProblem&) const = default;
};

}  // namespace deep_gemm
