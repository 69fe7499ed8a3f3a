// A dense FP8 GEMM that has passed the contract: if it exists, it is valid.
#pragma once

#include <cstdint>

#include "support/tensor_view.h"

namespace deep_gemm {

// SFs of one operand in any strides (elements); one factor per `granularity_mn` rows and 128 of K.
struct ScaleView {
    const float* data = nullptr;
    int granularity_mn = 1;  // 1 or 128
    int64_t stride_mn = 0;
    int64_t stride_k = 0;
    bool operator==(const ScaleView&) const = default;
};

// One K-major FP8 operand, [mn, k]; row stride in bytes, a multiple of 16.
struct OperandView {
    const void* data = nullptr;
    int64_t row_stride = 0;
    bool operator==(const OperandView&) const = default;
};

// D = C + (A*SFA) @ (B*SFB)^T. `c == nullptr`: no C. `c == d`: in place (same strides).
struct Fp8GemmProblem {
    int64_t m = 0, n = 0, k = 0;
    Device device;
    OperandView a, b;
    ScaleView sfa, sfb;
    Dtype d_dtype = Dtype::kBf16;  // kBf16 or kF32
    void* d = nullptr;
    int64_t d_row_stride = 0;      // elements
    const void* c = nullptr;       // d_dtype
    int64_t c_row_stride = 0;      // elements

    bool has_c() const { return c != nullptr; }
    bool empty_output() const { return m == 0 || n == 0; }
    bool operator==(const Fp8GemmProblem&) const = default;
};

}  // namespace deep_gemm
