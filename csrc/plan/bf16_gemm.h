// BF16 problem extents + ArchSpec -> plan: a small table of configs, a simple cost, a pick. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <deep_gemm/kernels/bf16_gemm/interface.h>

#include "plan/arch_spec.h"
#include "plan/break_points.h"
#include "plan/group_shape.h"
#include "plan/kernel_source.h"

namespace deep_gemm::plan {

// What of a problem may choose a config: never an address or a stride.
struct Bf16GemmShape {
    int64_t m, n, k;  // m: of one group where each has an output; k: of one group for kKGrouped and kBatchSum
    Major a_major, b_major;
    Dtype d_dtype;
    bool has_c;
    bool c_is_d = false;  // of problems with C: it is D itself
    GroupShape groups{};
    bool operator==(const Bf16GemmShape&) const = default;
};

struct Bf16GemmPlan {
    Bf16GemmConfig config{};
    int cluster = 1;  // CTAs in a cluster
    int grid = 0;     // CTAs, a multiple of `cluster`
    int threads = 0;
    int smem_bytes = 0;
    RasterOrder raster{};    // the order of tiles: a run-time argument
    double estimate_us = 0;  // lower is better
};

// Plans of all configs that run the shape, the pick first, the others by rising estimate. Throws Error if there is none.
std::vector<Bf16GemmPlan> plans_bf16_gemm(const Bf16GemmShape& shape, const ArchSpec& arch);
Bf16GemmPlan plan_bf16_gemm(const Bf16GemmShape& shape, const ArchSpec& arch);

// The plan that runs a given config on `shape`, whose N and C say how it is stored; an Error says why it cannot.
Bf16GemmPlan plan_with_config(Bf16GemmConfig config, const Bf16GemmShape& shape, const ArchSpec& arch);

// The configs that plans over m in [m_min, m_max] use.
std::vector<BreakPoint<Bf16GemmConfig>> m_break_points(const Bf16GemmShape& shape, int64_t m_min, int64_t m_max,
                                                       const ArchSpec& arch);

std::string describe(const Bf16GemmShape& shape);
std::string describe(const Bf16GemmConfig& config);
std::string describe(const Bf16GemmPlan& plan);

// The kernel source for a config.
KernelSource print_source(const Bf16GemmConfig& config, const ArchSpec& arch);

}  // namespace deep_gemm::plan
