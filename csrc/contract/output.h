// Checks of D and C that every GEMM shares.
#pragma once

#include <string_view>

#include "support/tensor_view.h"

namespace deep_gemm::contract {

// D shares no byte with an input, `name`.
void check_apart(const TensorView& input, std::string_view name, const TensorView& d);

// C has D's dtype and shape, of two dimensions or three; it is D itself, or they share no byte.
void check_c(const TensorView& c, const TensorView& d);

// A row stride of an output that a tensor map accepts, in elements: that of extents 0 and 1 is replaced.
int64_t output_row_stride(const TensorView& t);

// Elements between groups; of a single one any stride is right that a tensor map accepts.
int64_t group_stride_of(const TensorView& t, int64_t row_stride);

}  // namespace deep_gemm::contract
