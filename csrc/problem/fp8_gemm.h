// An FP8 GEMM that has passed the contract, dense or grouped: if it exists, it is valid.
#pragma once

#include <cstdint>

#include "problem/groups.h"
#include "support/tensor_view.h"

namespace deep_gemm {

// SFs of one operand in any strides (elements); one factor per `granularity_mn` rows and 128 of K.
struct ScaleView {
    const float* data = nullptr;
    int granularity_mn = 1;  // 1 or 128
    int64_t stride_mn = 0;
    int64_t stride_k = 0;
    int64_t stride_g = 0;  // of operands with groups
    bool operator==(const ScaleView&) const = default;
};

// One FP8 operand, [mn, k] or [groups, mn, k]; strides in bytes. Where a kernel reads it, it is K-major (k_stride 1), and the
// other strides are multiples of 16.
struct OperandView {
    const void* data = nullptr;
    int64_t row_stride = 0;
    int64_t group_stride = 0;  // between matrices; of one it means nothing
    int64_t k_stride = 1;
    bool operator==(const OperandView&) const = default;
};

// D of heads: of each head's left + mid + right columns the product has left + right.
struct HeadSplits {
    int64_t left = 0, mid = 0, right = 0;
    bool operator==(const HeadSplits&) const = default;

    bool some() const { return left + right > 0; }
    int64_t product_columns() const { return left + right; }
    int64_t d_columns() const { return left + mid + right; }
    // Where a column of the product lies in D.
    int64_t column_of_d(int64_t column) const {
        if (!some()) return column;
        const int64_t head = column / product_columns(), within = column % product_columns();
        return column + head * mid + (within >= left ? mid : 0);
    }
};

// D = C + (A*SFA) @ (B*SFB)^T. `c == nullptr`: no C. `c == d`: in place (same strides).
struct Fp8GemmProblem {
    int64_t m = 0, n = 0, k = 0;  // of one group for kMasked
    Groups groups;
    Device device;
    OperandView a, b;
    ScaleView sfa, sfb;
    Dtype d_dtype = Dtype::kBf16;  // kBf16 or kF32
    void* d = nullptr;
    int64_t d_row_stride = 0;    // elements
    int64_t d_group_stride = 0;  // elements, as of an operand
    HeadSplits heads;            // D has n / heads.product_columns() of them; none: n columns
    const void* c = nullptr;     // d_dtype
    int64_t c_row_stride = 0;    // elements
    int64_t c_group_stride = 0;  // elements, kBatched only

    bool has_c() const { return c != nullptr; }
    bool c_is_d() const { return has_c() && c == d; }  // the contract refuses any other overlap
    bool empty_output() const {
        return m == 0 || n == 0 || groups.no_rows();
    }
    bool operator==(const Fp8GemmProblem&) const = default;
};

}  // namespace deep_gemm
