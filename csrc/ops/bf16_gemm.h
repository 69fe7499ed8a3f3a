// bf16_gemm_{nt,nn,tn,tt} and the BF16 GEMMs over groups of rows: the five calls in order, and the empty-problem rules.
#pragma once

#include "contract/bf16_gemm.h"
#include "ops/ready_kernels.h"
#include "plan/bf16_gemm.h"

namespace deep_gemm::ops {

using contract::Bf16GemmCall;
using contract::Bf16Operands;
using contract::ContiguousBf16GemmCall;
using contract::MaskedBf16GemmCall;

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors. Asynchronous on
// the call's stream; throws Error before anything is written or launched. Thread-safe. The first call of a
// config compiles.
void bf16_gemm(const Bf16GemmCall& call);

// The same from the problem on.
void run_bf16_gemm(const Bf16GemmProblem& problem, launch::StreamHandle stream);

// Which loaded kernel runs a BF16 GEMM of some extents on a device, and how. Thread-safe.
ReadyKernel<Bf16GemmConfig> ready_bf16_gemm(int device, const plan::Bf16GemmShape& shape);
// The same for m_grouped_bf16_gemm_{nt,nn}_contiguous and m_grouped_bf16_gemm_nt_masked. Which row belongs to which group is
// read where the tensors live, when the kernel runs.
void m_grouped_bf16_gemm_contiguous(const ContiguousBf16GemmCall& call);
void m_grouped_bf16_gemm_masked(const MaskedBf16GemmCall& call);

// For tuning: problems of exactly this shape run with `config` from now on, until plans are forgotten.
void pin_bf16_gemm(int device, const plan::Bf16GemmShape& shape, const Bf16GemmConfig& config);
void forget_bf16_gemm_plans();

}  // namespace deep_gemm::ops
