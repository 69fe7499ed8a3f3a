// The contract of k_grouped_fp8_gemm_{nt,tn}_contiguous and k_grouped_bf16_gemm_tn_contiguous: the arguments
// as they came -> a valid KGroupedGemmProblem, or a refusal.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "contract/fp8_operands.h"
#include "problem/k_grouped_gemm.h"

namespace deep_gemm::contract {

// a and b as KLayout says, d and c [G, M, N], grouped_layout [G].
struct KGroupedGemmCall {
    KLayout layout = KLayout::kMatrices;
    Dtype dtype = Dtype::kF8E4M3;
    TensorView a, sfa, b, sfb, d;  // SFs with FP8: [M|N, K/128] (kMatrices), [K factors, M|N] (kRows)
    std::optional<TensorView> c;
    std::optional<std::vector<int64_t>>
        ks_cpu;  // sizes on the host; without them, or empty: the device alone knows
    TensorView grouped_layout;
    Recipe recipe{1, 1, 128};
    bool use_psum_layout = false;
    int64_t alignment = 128;
    void* stream = nullptr;
};

// Whose rules hold: an architecture's kernels, or the CPU reference, which takes what no kernel does yet.
struct KGroupedRules {
    int arch_major;
    bool on_device;
};

// The one device all tensors of the call are on; refuses mixed devices and those that are neither CUDA nor
// CPU.
Device device_of(const KGroupedGemmCall& call);

// Checks everything but the values of grouped_layout: no memory is read. Throws Error naming the argument,
// what was expected, what came and what to do.
KGroupedGemmProblem check_k_grouped_gemm(const KGroupedGemmCall& call, const KGroupedRules& rules);

}  // namespace deep_gemm::contract
