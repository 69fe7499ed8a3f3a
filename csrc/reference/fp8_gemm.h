// The FP8 GEMM in plain C++, dense and grouped: what every kernel is compared with, and what CPU tensors run.
#pragma once

#include "problem/fp8_gemm.h"

namespace deep_gemm::reference {

// D = C + (A*SFA) @ (B*SFB)^T on host memory. Sums over 128 of K are exact; those of different factors add up
// in FP64, in order of K; C is added last; one rounding to D's dtype, nearest even. K = 0 copies C's bits or
// writes zeros.
void fp8_gemm(const Fp8GemmProblem& problem);

}  // namespace deep_gemm::reference
