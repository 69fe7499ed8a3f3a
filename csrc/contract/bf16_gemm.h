// The contract of bf16_gemm_{nt,nn,tn,tt} and of the BF16 GEMMs grouped along M: the arguments as they came -> a valid
// Bf16GemmProblem, or a refusal.
#pragma once

#include <optional>

#include "contract/group_layout.h"
#include "problem/bf16_gemm.h"

namespace deep_gemm::contract {

// As `nt` sees them: a [M,K], b [N,K], d [M,N], each with a leading dimension of groups where the grouping has them.
struct Bf16Operands {
    TensorView a, b, d;
    void* stream = nullptr;
};

struct Bf16GemmCall : Bf16Operands {
    std::optional<TensorView> c;  // [M,N]
};

// a [M,K], b [G,N,K], d [M,N].
struct ContiguousBf16GemmCall : Bf16Operands, ContiguousLayout {};

// a [G,M,K], b [G,N,K], d [G,M,N].
struct MaskedBf16GemmCall : Bf16Operands, MaskedLayout {};

// The one device all tensors of the call are on; refuses mixed devices and those that are neither CUDA nor
// CPU.
Device device_of(const Bf16GemmCall& call);
Device device_of(const ContiguousBf16GemmCall& call);
Device device_of(const MaskedBf16GemmCall& call);

// Checks everything but the values of layouts; touches no memory. `arch_major` is the compute capability whose rules hold
// (9: SM90, and the CPU reference). Throws Error naming the argument, what was expected, what came and what to do.
Bf16GemmProblem check_bf16_gemm(const Bf16GemmCall& call, int arch_major);
Bf16GemmProblem check_bf16_gemm(const ContiguousBf16GemmCall& call, int arch_major);
Bf16GemmProblem check_bf16_gemm(const MaskedBf16GemmCall& call, int arch_major);

}  // namespace deep_gemm::contract
