// fp8_gemm_{nt,nn,tn,tt}: the five calls in order, and the empty-problem rules.
#pragma once

#include "contract/fp8_gemm.h"

namespace deep_gemm::ops {

using contract::Fp8GemmCall;
using contract::Recipe;
using contract::RecipePart;

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors. Asynchronous on
// the call's stream; throws Error before anything is written or launched. Thread-safe. The first call of a
// config compiles.
void fp8_gemm(const Fp8GemmCall& call);

}  // namespace deep_gemm::ops
