// The contract of m_grouped_fp8_gemm_{nt,nn}_contiguous and m_grouped_fp8_gemm_nt_masked: the arguments as
// they came -> a valid Fp8GemmProblem, or a refusal.
#pragma once

#include <optional>

#include "contract/fp8_operands.h"

namespace deep_gemm::contract {

// a [M,K], b [G,N,K], d [M,N].
struct ContiguousFp8GemmCall : Fp8Operands {
    TensorView grouped_layout;  // int32 [M]: the group of each row, or -1; psum: [G], the end row of each
    int64_t alignment = 128;    // groups start at multiples of it
    bool use_psum_layout = false;
    bool ensure_zero_padding = true;                    // psum: rows between groups become zeros
    std::optional<int64_t> expected_m_for_psum_layout;  // psum: a guess of a group's rows
};

// a [G,M,K], b [G,N,K], d [G,M,N].
struct MaskedFp8GemmCall : Fp8Operands {
    TensorView masked_m;     // int32 [G]: wanted rows of each group
    int64_t expected_m = 0;  // a guess of them: chooses a config, never a bit
};

Device device_of(const ContiguousFp8GemmCall& call);
Device device_of(const MaskedFp8GemmCall& call);

// Check everything but the values of grouped_layout and masked_m: no memory is read. `arch_major` as in
// contract/fp8_gemm.h. Throw Error naming the argument, what was expected, what came and what to do.
Fp8GemmProblem check_fp8_gemm(const ContiguousFp8GemmCall& call, int arch_major);
Fp8GemmProblem check_fp8_gemm(const MaskedFp8GemmCall& call, int arch_major);

}  // namespace deep_gemm::contract
