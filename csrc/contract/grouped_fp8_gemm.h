// The contract of m_grouped_fp8_gemm_{nt,nn}_contiguous and m_grouped_fp8_gemm_nt_masked: the arguments as
// they came -> a valid Fp8GemmProblem, or a refusal.
#pragma once

#include "contract/fp8_operands.h"
#include "contract/group_layout.h"

namespace deep_gemm::contract {

// a [M,K], b [G,N,K], d [M,N].
struct ContiguousFp8GemmCall : Fp8Operands, ContiguousLayout {};

// a [G,M,K], b [G,N,K], d [G,M,N].
struct MaskedFp8GemmCall : Fp8Operands, MaskedLayout {};

Device device_of(const ContiguousFp8GemmCall& call);
Device device_of(const MaskedFp8GemmCall& call);

// Check everything but the values of grouped_layout and masked_m: no memory is read. `arch_major` as in
// contract/fp8_gemm.h. Throw Error naming the argument, what was expected, what came and what to do.
Fp8GemmProblem check_fp8_gemm(const ContiguousFp8GemmCall& call, int arch_major);
Fp8GemmProblem check_fp8_gemm(const MaskedFp8GemmCall& call, int arch_major);

}  // namespace deep_gemm::contract
