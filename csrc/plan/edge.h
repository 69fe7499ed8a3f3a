// What of a config is the shape's to say and not a choice: how D's edge is stored, and whether C is there already.
#pragma once

#include <deep_gemm/base/kernel_args.h>

namespace deep_gemm::plan {

// TMA adds only FP32 to what D holds, and only where no unit of 16 bytes reaches past N; elsewhere the kernel reads C itself.
template <typename Config, typename Shape>
void set_edge(Config& config, const Shape& shape) {
    config.ragged_n = is_ragged(shape.n, shape.d_dtype);
    config.c_is_d = shape.has_c && shape.c_is_d && shape.d_dtype == Dtype::kF32 && !config.ragged_n;
}

}  // namespace deep_gemm::plan
