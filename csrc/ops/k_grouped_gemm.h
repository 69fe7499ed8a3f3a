// k_grouped_fp8_gemm_{nt,tn}_contiguous, k_grouped_bf16_gemm_tn_contiguous: the five calls in order, and the
// empty-problem rules.
#pragma once

#include <cstddef>
#include <functional>

#include "contract/k_grouped_gemm.h"

namespace deep_gemm::ops {

using contract::KGroupedGemmCall;

// Device memory that a call may use until its kernel has run: asked for at most once, of at least so many
// bytes. It is not shared with another stream.
using Workspace = std::function<void*(std::size_t)>;

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors. Asynchronous on
// the call's stream; sizes are read where the tensors live, when the kernel runs. Throws Error before
// anything is written or launched. Thread-safe.
void k_grouped_gemm(const KGroupedGemmCall& call, const Workspace& workspace);

}  // namespace deep_gemm::ops
