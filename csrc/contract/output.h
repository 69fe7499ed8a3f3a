// Checks of D and C that every GEMM shares.
#pragma once

#include <string_view>

#include "support/tensor_view.h"

namespace deep_gemm::contract {

// D shares no byte with an input, `name`.
void check_apart(const TensorView& input, std::string_view name, const TensorView& d);

// C has D's dtype and shape; it is D itself, or they share no byte.
void check_c(const TensorView& c, const TensorView& d);

// A row stride of an output that a tensor map accepts, in elements: that of extents 0 and 1 is replaced.
int64_t output_row_stride(const TensorView& t);

}  // namespace deep_gemm::contract
