// The contract of cublaslt_gemm_{nt,nn,tn,tt}, whose product is the vendor's library's: the arguments as they came, or a
// refusal. There is no problem to make of them: nothing of ours runs.
#pragma once

#include "contract/bf16_gemm.h"

namespace deep_gemm::contract {

// Operands are both BF16, under the rules of check_bf16_gemm, or both unscaled E4M3: K-major, N and K multiples of 16. On
// every architecture. Touches no memory. Throws Error naming the argument, what was expected, what came and what to do.
void check_vendor_gemm(const Bf16GemmCall& call);

}  // namespace deep_gemm::contract
