// fp8_gemm_{nt,nn,tn,tt}: the five calls in order, and the empty-problem rules.
#pragma once

#include <cstdint>
#include <optional>

#include "support/tensor_view.h"

namespace deep_gemm::ops {

struct Recipe {
    int gran_m, gran_n, gran_k;
};
struct RecipePart {
    int gran_mn, gran_k;
};

// The arguments as they came, before any check. Layout letters are already applied: a [M,K], b [N,K], as `nt` sees them.
struct Fp8GemmCall {
    TensorView a, sfa, b, sfb, d;
    std::optional<TensorView> c;
    std::optional<Recipe> recipe;
    std::optional<RecipePart> recipe_a, recipe_b;
    bool disable_ue8m0_cast = false;
    void* stream = nullptr;
};

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors.
void fp8_gemm(const Fp8GemmCall& call);

}  // namespace deep_gemm::ops
