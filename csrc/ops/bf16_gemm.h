// bf16_gemm_{nt,nn,tn,tt}: the five calls in order, and the empty-problem rules.
#pragma once

#include "contract/bf16_gemm.h"
#include "ops/ready_kernels.h"
#include "plan/bf16_gemm.h"

namespace deep_gemm::ops {

using contract::Bf16GemmCall;

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors. Asynchronous on
// the call's stream; throws Error before anything is written or launched. Thread-safe. The first call of a
// config compiles.
void bf16_gemm(const Bf16GemmCall& call);

// The same from the problem on.
void run_bf16_gemm(const Bf16GemmProblem& problem, launch::StreamHandle stream);

// Which loaded kernel runs a BF16 GEMM of some extents on a device, and how. Thread-safe.
ReadyKernel<Bf16GemmConfig> ready_bf16_gemm(int device, const plan::Bf16GemmShape& shape);

// For tuning: problems of exactly this shape run with `config` from now on, until plans are forgotten.
void pin_bf16_gemm(int device, const plan::Bf16GemmShape& shape, const Bf16GemmConfig& config);
void forget_bf16_gemm_plans();

}  // namespace deep_gemm::ops
