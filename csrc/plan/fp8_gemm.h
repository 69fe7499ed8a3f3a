// problem extents + ArchSpec -> plan: enumerate candidates, reject with a reason, score, pick. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "plan/arch_spec.h"
#include "plan/break_points.h"
#include "plan/group_shape.h"
#include "plan/kernel_source.h"

namespace deep_gemm::plan {

// What of a problem may choose a config: never an address or a stride.
struct Fp8GemmShape {
    int64_t m, n, k;  // m: of one group for kMasked; k: of one group for kKGrouped
    ScaleGranularity sfb_granularity;
    Dtype d_dtype;
    bool has_c;
    bool c_is_d = false;  // of problems with C: it is D itself
    int head_unit = 0;  // D skips the middle of heads (interface.h); 0: it has none
    GroupShape groups{};
    bool operator==(const Fp8GemmShape&) const = default;
};

struct Fp8GemmPlan {
    Fp8GemmConfig config{};
    int cluster = 1;  // CTAs in a cluster
    int grid = 0;     // CTAs, a multiple of `cluster`
    int threads = 0;
    int smem_bytes = 0;
    RasterOrder raster{};    // the order of tiles: a run-time argument
    double estimate_us = 0;  // the cost model's time: lower is better
};

struct Rejection {
    Fp8GemmConfig config;
    std::string reason;
};

struct Fp8GemmChoice {
    Fp8GemmPlan best;
    std::vector<Fp8GemmPlan> runners_up;  // by rising estimate
    std::vector<Rejection> rejected;
};

// Picks the plan; throws Error naming what is supported if the architecture has no kernel.
Fp8GemmPlan plan_fp8_gemm(const Fp8GemmShape& shape, const ArchSpec& arch);

// The same decision with everything that led to it, for printing and tests.
Fp8GemmChoice explain_fp8_gemm(const Fp8GemmShape& shape, const ArchSpec& arch);

// The plan that runs a given config on `shape` (grid, cluster, threads, shared memory), without scoring it
// against others. Whether N is ragged, and C is D, is for the shape to say.
Fp8GemmPlan plan_with_config(Fp8GemmConfig config, const Fp8GemmShape& shape, const ArchSpec& arch);

// The configs that plans over m in [m_min, m_max] use.
std::vector<BreakPoint<Fp8GemmConfig>> m_break_points(const Fp8GemmShape& shape, int64_t m_min, int64_t m_max,
                                                      const ArchSpec& arch);

std::string describe(const Fp8GemmShape& shape);    // "m=4096 n=4096 k=7168"
std::string describe(const Fp8GemmConfig& config);  // "128x192x128 stages=6 warpgroups=2 cluster=2x1 ..."
std::string describe(const Fp8GemmPlan& plan);
std::string describe(const Fp8GemmChoice& choice);  // the pick, its runners-up, what was refused and why

// The kernel source for a config.
KernelSource print_source(const Fp8GemmConfig& config, const ArchSpec& arch);

}  // namespace deep_gemm::plan
