// The contract of fp8_gemm_{nt,nn,tn,tt}: the arguments as they came -> a valid Fp8GemmProblem, or a refusal.
#pragma once

#include <optional>

#include "contract/fp8_operands.h"

namespace deep_gemm::contract {

struct Fp8GemmCall : Fp8Operands {
    std::optional<TensorView> c;
};

// The one device all tensors of the call are on; refuses mixed devices and those that are neither CUDA nor
// CPU.
Device device_of(const Fp8GemmCall& call);

// Checks everything; touches no memory. `arch_major` is the compute capability whose rules hold (9: SM90, and
// the CPU reference). Throws Error naming the argument, what was expected, what came and what to do.
Fp8GemmProblem check_fp8_gemm(const Fp8GemmCall& call, int arch_major);

}  // namespace deep_gemm::contract
