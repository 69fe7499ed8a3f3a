// fp8_gemm_{nt,nn,tn,tt} and the GEMMs over groups of rows: the five calls in order, and the empty-problem
// rules.
#pragma once

#include "contract/fp8_gemm.h"
#include "contract/grouped_fp8_gemm.h"
#include "contract/skip_head_mid.h"
#include "launch/launch.h"

namespace deep_gemm::ops {

using contract::ContiguousFp8GemmCall;
using contract::Fp8GemmCall;
using contract::Fp8Operands;
using contract::MaskedFp8GemmCall;
using contract::Recipe;
using contract::RecipePart;
using contract::SkipHeadMidCall;

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors. Asynchronous on
// the call's stream; throws Error before anything is written or launched. Thread-safe. The first call of a
// config compiles.
void fp8_gemm(const Fp8GemmCall& call);

// The same from the problem on.
void run_fp8_gemm(const Fp8GemmProblem& problem, launch::StreamHandle stream);

// The same for fp8_gemm_nt_skip_head_mid.
void fp8_gemm_skip_head_mid(const SkipHeadMidCall& call);

// The same for m_grouped_fp8_gemm_{nt,nn}_contiguous and m_grouped_fp8_gemm_nt_masked. Which row belongs to
// which group is read where the tensors live, when the kernel runs.
void m_grouped_fp8_gemm_contiguous(const ContiguousFp8GemmCall& call);
void m_grouped_fp8_gemm_masked(const MaskedFp8GemmCall& call);

}  // namespace deep_gemm::ops
