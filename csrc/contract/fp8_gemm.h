// The contract of fp8_gemm_{nt,nn,tn,tt}: the arguments as they came -> a valid Fp8GemmProblem, or a refusal.
#pragma once

#include <optional>

#include "problem/fp8_gemm.h"
#include "support/tensor_view.h"

namespace deep_gemm::contract {

// Rows, columns of B and K that share one scaling factor.
struct Recipe {
    int gran_m, gran_n, gran_k;
    bool operator==(const Recipe&) const = default;
};
// The same of one operand.
struct RecipePart {
    int gran_mn, gran_k;
};

// The arguments as they came, before any check. Layout letters are already applied: a [M,K], b [N,K], sfa [M,
// ceil(K/128)], sfb [ceil(N/gran_n), ceil(K/128)], as `nt` sees them.
struct Fp8GemmCall {
    TensorView a, sfa, b, sfb, d;
    std::optional<TensorView> c;
    std::optional<Recipe> recipe;
    std::optional<RecipePart> recipe_a, recipe_b;
    bool disable_ue8m0_cast = false;  // changes nothing on SM90, whose FP32 factors are never cast
    void* stream = nullptr;
};

// The one device all tensors of the call are on; refuses mixed devices and those that are neither CUDA nor
// CPU.
Device device_of(const Fp8GemmCall& call);

// Checks everything; touches no memory. `arch_major` is the compute capability whose rules hold (9: SM90, and
// the CPU reference). Throws Error naming the argument, what was expected, what came and what to do.
Fp8GemmProblem check_fp8_gemm(const Fp8GemmCall& call, int arch_major);

}  // namespace deep_gemm::contract
