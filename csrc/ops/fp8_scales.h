// Scaling factors as kernels take them.
#pragma once

#include <cstdint>

#include <deep_gemm/base/kernel_args.h>

#include "problem/fp8_gemm.h"

namespace deep_gemm::ops {

inline ScaleArgs scale_args(const ScaleView& s) {
    return {s.data, s.stride_mn, s.stride_k, s.stride_g};
}

// Whether the factors of each K block lie side by side, `rows` of them, in whole and aligned units of 16 bytes: then TMA can load
// them.
inline bool lie_in_units(const ScaleArgs& scales, int64_t rows) {
    return scales.stride_mn == 1 && reinterpret_cast<uintptr_t>(scales.data) % 16 == 0 &&
           (scales.stride_k | scales.stride_g | rows) % 4 == 0;
}

}  // namespace deep_gemm::ops
