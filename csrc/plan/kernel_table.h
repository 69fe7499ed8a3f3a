// Dispatch is a table: (architecture, recipe, output dtypes) -> (header, entry, candidates, cost).
// "Unsupported" is written from the same rows.
#pragma once

#include <array>
#include <span>
#include <string>

#include "plan/candidates.h"
#include "plan/cost_model.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::plan {

struct Fp8GemmKernel {
    int arch_major;
    ScaleGranularity sfb_granularity;
    std::array<Dtype, 2> d_dtypes;
    const char* header;    // as in #include <...>
    const char* function;  // a template over Fp8GemmConfig in namespace deep_gemm
    const char* entry;     // extern "C" symbol
    CandidateSpace space;
    const CostConstants* cost;
};

std::span<const Fp8GemmKernel> fp8_gemm_kernels();

// The row of a kernel, or an Error that lists the rows there are.
const Fp8GemmKernel& kernel_for(ScaleGranularity sfb_granularity, Dtype d_dtype, const ArchSpec& arch);

// A clause for each row: "SM90 with SFB per_block, D bf16 or f32; ...".
std::string supported_fp8_gemms();

}  // namespace deep_gemm::plan
