// A BF16 GEMM, dense or over groups, that has passed the contract: if it exists, it is valid.
#pragma once

#include <cstdint>

#include "problem/groups.h"
#include "support/tensor_view.h"

namespace deep_gemm {

// One BF16 operand, [mn, k] or [groups, mn, k], of either major. K-major: `pitch` elements between rows; MN-major: between
// columns. Multiples of 8, whatever the extents.
struct Bf16Operand {
    const void* data = nullptr;
    Major major = Major::kK;
    int64_t pitch = 0;
    int64_t group_stride = 0;  // elements between matrices; of one it means nothing
    bool operator==(const Bf16Operand&) const = default;

    int64_t at(int64_t mn, int64_t k) const { return major == Major::kK ? mn * pitch + k : k * pitch + mn; }
};

// D = C + A @ B^T. `c == nullptr`: no C. `c == d`: in place (same strides).
struct Bf16GemmProblem {
    int64_t m = 0, n = 0, k = 0;  // m: of one group for kMasked and kBatched
    Groups groups;
    Device device;
    Bf16Operand a, b;
    Dtype d_dtype = Dtype::kBf16;  // kBf16 or kF32
    void* d = nullptr;
    int64_t d_row_stride = 0;    // elements
    int64_t d_group_stride = 0;  // elements, as of an operand
    const void* c = nullptr;     // d_dtype
    int64_t c_row_stride = 0;    // elements
    int64_t c_group_stride = 0;  // elements, kBatched only

    bool has_c() const { return c != nullptr; }
    bool c_is_d() const { return has_c() && c == d; }  // the contract refuses any other overlap
    bool empty_output() const {
        return m == 0 || n == 0 || groups.no_rows();
    }
    bool operator==(const Bf16GemmProblem&) const = default;
};

}  // namespace deep_gemm
