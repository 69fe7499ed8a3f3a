// What every block-scaled FP8 GEMM takes, whatever its grouping, and the checks of it.
#pragma once

#include <optional>

#include "contract/output.h"
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

// Which operands are read: K-major ones, or of either major, which only the reference does.
enum class OperandMajors : uint8_t { kK, kEither };

// The arguments as they came, before any check. Layout letters are already applied: as `nt` sees them, a
// [M,K], b [N,K], d [M,N], sfa [M, ceil(K/128)], sfb [ceil(N/gran_n), ceil(K/128)], each with a leading
// dimension of groups where the grouping has them (problem/fp8_gemm.h).
struct Fp8Operands {
    TensorView a, sfa, b, sfb, d;
    std::optional<Recipe> recipe;
    std::optional<RecipePart> recipe_a, recipe_b;
    OperandMajors majors = OperandMajors::kK;
    bool disable_ue8m0_cast = false;  // changes nothing on SM90, whose FP32 factors are never cast
    void* stream = nullptr;
};

// The one device all tensors of the call are on; refuses mixed devices and those that are neither CUDA nor
// CPU.
Device device_of(const Fp8Operands& call);

// Checks the operands, D and the recipe, all on one device, by the rules of `arch_major` and of the grouping;
// returns their part of the problem (groups.layout and what only one grouping has are left out). Touches no
// memory. Throws Error.
Fp8GemmProblem check_operands(const Fp8Operands& call, Grouping grouping, int arch_major);

}  // namespace deep_gemm::contract
