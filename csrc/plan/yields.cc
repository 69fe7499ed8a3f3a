#include "plan/yields.h"

#include <fmt/format.h>

namespace deep_gemm::plan {

namespace {

// Every how many of the FFMA of 1D2D, or of the FMUL of 1D1D, yield; 0: as the assembler has it. Measured on
// an H200, and what was not, by analogy (docs/sm90-fp8-gemm.md, "Yields").
int yields_every(const Fp8GemmConfig& c) {
    if (c.sfb_granularity == ScaleGranularity::kPerRow) return c.num_math_warpgroups == 1 ? 3 : 2;
    if (c.grouping == Grouping::kContiguous || c.grouping == Grouping::kPsum || c.n_parts == 2) return 0;
    switch (c.num_math_warpgroups) {
        case 1:
            return c.block_n <= 32 ? 5 : c.block_n == kScaleBlock ? 6 : 0;
        case 2:
            return c.grouping == Grouping::kMasked ? 8 : 6;
        default:
            return c.block_n < kScaleBlock ? 3 : 5;
    }
}

}  // namespace

std::string yield_line(const Fp8GemmConfig& config) {
    const int every = yields_every(config);
    const char* instruction = config.sfb_granularity == ScaleGranularity::kPerRow ? "FMUL" : "FFMA";
    return every == 0 ? "" : fmt::format("//! yields: {} {}\n", instruction, every);
}

}  // namespace deep_gemm::plan
