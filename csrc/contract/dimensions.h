// The dimensions of operands that may have groups.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "contract/expect.h"

namespace deep_gemm::contract {

// The dimensions of an operand; their number is its rank.
struct Form {
    int rank;
    std::string_view dimensions;
};

// The shape that an operand of rank 2 or 3 must have.
class Dimensions {
  public:
    Dimensions(const Form& form, const Extent& groups, const Extent& rows, const Extent& columns)
        : extents_{groups, rows, columns}, rank_(static_cast<std::size_t>(form.rank)) {}
    std::span<const Extent> extents() const { return std::span<const Extent>(extents_).last(rank_); }

  private:
    std::array<Extent, 3> extents_;
    std::size_t rank_;
};

// Elements between the matrices of an operand; of a single one any stride is right that a tensor map accepts,
// as `row_stride` is.
inline int64_t matrix_stride(const TensorView& t, int64_t row_stride) {
    return t.rank == 3 && t.shape[0] > 1 ? t.stride[0] : row_stride;
}

}  // namespace deep_gemm::contract
