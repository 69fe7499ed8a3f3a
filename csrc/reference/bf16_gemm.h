// The BF16 GEMM in plain C++, dense and grouped: what kernels are compared with, and what CPU tensors run.
#pragma once

#include "problem/bf16_gemm.h"

namespace deep_gemm::reference {

// D = C + A @ B^T on host memory: exact products summed in FP64, in order of K; C is added last; one rounding to D's dtype,
// nearest even. K = 0 copies C's bits or writes zeros.
void bf16_gemm(const Bf16GemmProblem& problem);

}  // namespace deep_gemm::reference
