// A BF16 GEMM, dense or over batches, that has passed the contract: if it exists, it is valid.
#pragma once

#include <cstdint>

#include "support/tensor_view.h"

namespace deep_gemm {

// One BF16 operand [mn, k] of either major. K-major: `pitch` elements between rows; MN-major: between columns. A multiple
// of 8, whatever the extents.
struct Bf16Operand {
    const void* data = nullptr;
    Major major = Major::kK;
    int64_t pitch = 0;
    int64_t batch_stride = 0;  // elements, a multiple of 8
    bool operator==(const Bf16Operand&) const = default;

    int64_t at(int64_t mn, int64_t k) const { return major == Major::kK ? mn * pitch + k : k * pitch + mn; }
};

// How a problem repeats: kDense; kBatched: D of each batch; kBatchSum: one D, the sum of all batches (types.h).
struct Batches {
    Grouping grouping = Grouping::kDense;
    int64_t count = 1;
    int64_t d_stride = 0, c_stride = 0;  // kBatched: elements between the batches of D and of C
    bool operator==(const Batches&) const = default;
};

// D = C + A @ B^T. `c == nullptr`: no C. `c == d`: in place (same strides).
struct Bf16GemmProblem {
    int64_t m = 0, n = 0, k = 0;
    Device device;
    Bf16Operand a, b;
    Dtype d_dtype = Dtype::kBf16;  // kBf16 or kF32
    void* d = nullptr;
    int64_t d_row_stride = 0;  // elements
    const void* c = nullptr;   // d_dtype
    int64_t c_row_stride = 0;  // elements
    Batches batches;           // m, n and k are of one

    bool has_c() const { return c != nullptr; }
    bool empty_output() const {
        return m == 0 || n == 0 || (batches.grouping == Grouping::kBatched && batches.count == 0);
    }
    bool no_product() const { return k == 0 || batches.count == 0; }
    bool operator==(const Bf16GemmProblem&) const = default;
};

}  // namespace deep_gemm
