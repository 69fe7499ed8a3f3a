// The contract of bf16_gemm_{nt,nn,tn,tt}: the arguments as they came -> a valid Bf16GemmProblem, or a refusal.
#pragma once

#include <optional>

#include "problem/bf16_gemm.h"

namespace deep_gemm::contract {

// As `nt` sees them: a [M,K], b [N,K], d and c [M,N].
struct Bf16GemmCall {
    TensorView a, b, d;
    std::optional<TensorView> c;
    void* stream = nullptr;
};

// The one device all tensors of the call are on; refuses mixed devices and those that are neither CUDA nor
// CPU.
Device device_of(const Bf16GemmCall& call);

// Checks everything; touches no memory. `arch_major` is the compute capability whose rules hold (9: SM90, and
// the CPU reference). Throws Error naming the argument, what was expected, what came and what to do.
Bf16GemmProblem check_bf16_gemm(const Bf16GemmCall& call, int arch_major);

}  // namespace deep_gemm::contract
