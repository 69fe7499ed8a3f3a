// The contract of fp8_gemm_nt_skip_head_mid: the arguments as they came -> a valid Fp8GemmProblem, or a refusal.
#pragma once

#include "contract/fp8_operands.h"

namespace deep_gemm::contract {

// a [M,K], b [N,K], N = heads x (left + right), d [M, heads x (left + mid + right)].
struct SkipHeadMidCall : Fp8Operands {
    HeadSplits head_splits;
};

// Left, mid and right are multiples of 8 columns, so that parts of heads start on 16 bytes; left + right > 0. Throws Error.
void check_head_splits(const HeadSplits& splits);

// Checks everything; touches no memory. `arch_major` as in contract/fp8_gemm.h. Throws Error naming the argument, what was
// expected, what came and what to do.
Fp8GemmProblem check_fp8_gemm(const SkipHeadMidCall& call, int arch_major);

}  // namespace deep_gemm::contract
