// The contracts of einsum and fp8_einsum: an expression and its arguments as they came -> a valid problem, or a refusal.
#pragma once

#include <optional>
#include <string>

#include "contract/fp8_operands.h"
#include "problem/bf16_gemm.h"

namespace deep_gemm::contract {

// What will run a call: kernels exist for fewer expressions than the reference has.
enum class Runner : uint8_t { kKernel, kReference };

// Tensors as they came, in the expression's order of dimensions.
struct EinsumCall {
    std::string expression;
    TensorView a, b, d;
    std::optional<TensorView> c;
    void* stream = nullptr;
};

// The same with scaling factors, which follow their operand: [.., ceil(k/128)] wherever the expression has its letter.
struct Fp8EinsumCall : Fp8Operands {
    std::string expression;
    std::optional<TensorView> c;
};

// The one device all tensors of the call are on.
Device device_of(const EinsumCall& call);
Device device_of(const Fp8EinsumCall& call);

// Check everything; touch no memory. `arch_major` as in contract/fp8_gemm.h. Throw Error naming the argument, what was
// expected, what came and what to do; of an expression that runs elsewhere, what is supported.
Bf16GemmProblem check_einsum(const EinsumCall& call, int arch_major);
Fp8GemmProblem check_fp8_einsum(const Fp8EinsumCall& call, int arch_major, Runner runner);

// What einsum with use_cublaslt takes: an expression with batches in D. Checks the call; throws Error.
void check_vendor_einsum(const EinsumCall& call);

}  // namespace deep_gemm::contract
