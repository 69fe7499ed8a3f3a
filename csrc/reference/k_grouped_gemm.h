// GEMMs grouped along K in plain C++: what kernels are compared with, and what CPU tensors run.
#pragma once

#include "problem/k_grouped_gemm.h"

namespace deep_gemm::reference {

// D[g] = C[g] + A[g] @ B[g]^T on host memory: FP64 sums in order of K, of FP8 scaled factor by factor; C is
// added last; one rounding to FP32, nearest even. A group without K copies C's bits or writes zeros. Throws
// Error, before D is touched, on sizes that do not fit K.
void k_grouped_gemm(const KGroupedGemmProblem& problem);

}  // namespace deep_gemm::reference
