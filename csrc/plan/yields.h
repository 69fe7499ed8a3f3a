// How often the promotion's FP32 instructions let other warps issue first, by config.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include <string>

namespace deep_gemm::plan {

// The line of a kernel's source that says so to jit, or nothing where the assembler's own choice is as good.
std::string yield_line(const Fp8GemmConfig& config);

}  // namespace deep_gemm::plan
