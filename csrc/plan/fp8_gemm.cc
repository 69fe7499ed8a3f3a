#include "plan/fp8_gemm.h"

#include <algorithm>
#include <optional>

#include "plan/candidates.h"
#include "plan/cost_model.h"
#include "plan/edge.h"
#include "plan/kernel_table.h"
#include "plan/raster.h"
#include "support/error.h"

namespace deep_gemm::plan {

namespace {

void check_request(const Fp8GemmShape& shape, const ArchSpec& arch) {
    DG_CHECK(arch.sm_count > 0, "sm_count: expected a positive number of SMs, got {}", arch.sm_count);
    DG_CHECK(0 < arch.usable_sms && arch.usable_sms <= arch.sm_count,
             "usable_sms: expected 1 to {} SMs, got {}", arch.sm_count, arch.usable_sms);
    DG_CHECK(
        shape.m > 0 && shape.n > 0 && shape.k > 0,
        "shape: planning expects positive m, n and k, got m={}, n={}, k={}; empty problems need no kernel",
        shape.m, shape.n, shape.k);
    check_groups(shape.groups);
}

// Clusters of a shape's most work: how many rows groups want may be known on the device alone.
int grid_of(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const ArchSpec& arch) {
    const int cluster = c.cluster_m * c.cluster_n;
    const int64_t tiles = most_tiles_along_m(shape.m, shape.groups, int64_t(c.block_m) * c.cluster_m) *
                          ceil_div<int64_t>(shape.n, int64_t(c.block_n) * c.cluster_n);
    const int64_t slots = resident_clusters(arch.usable_sms, cluster);
    return int(clusters_to_launch(shape.groups, tiles, slots)) * cluster;
}

Fp8GemmPlan plan_of(const CostConstants& cost, const Fp8GemmConfig& c, const Fp8GemmShape& shape,
                    const ArchSpec& arch) {
    Fp8GemmPlan plan;
    plan.config = c;
    plan.cluster = c.cluster_m * c.cluster_n;
    plan.grid = grid_of(c, shape, arch);
    plan.threads = num_threads(c);
    plan.smem_bytes = smem_plan(c).total;
    plan.raster = pick_raster(c, shape, arch).order;
    plan.estimate_us = cost_of(cost, c, shape, arch).total;
    return plan;
}

// Among estimates that the model cannot tell apart: no cluster before a cluster, then the wider tile, which
// reads less, then the taller one of its size, with more warpgroups, then products that overlap promotion,
// then the table's order.
bool simpler(const Fp8GemmConfig& a, const Fp8GemmConfig& b) {
    const int cluster_a = a.cluster_m * a.cluster_n, cluster_b = b.cluster_m * b.cluster_n;
    if (cluster_a != cluster_b) return cluster_a < cluster_b;
    if (a.block_m * a.block_n != b.block_m * b.block_n) return a.block_m * a.block_n > b.block_m * b.block_n;
    if (a.block_m != b.block_m) return a.block_m > b.block_m;
    return a.num_accumulators > b.num_accumulators;
}

// Feasible plans in the table's order; what was refused goes to `rejected` where someone wants to know.
std::vector<Fp8GemmPlan> feasible_plans(const Fp8GemmShape& shape, const ArchSpec& arch,
                                        std::vector<Rejection>* rejected) {
    check_request(shape, arch);
    const Fp8GemmKernel& kernel = kernel_for(shape.sfb_granularity, shape.d_dtype, arch);
    std::vector<Fp8GemmPlan> plans;
    for (const Fp8GemmConfig& config : enumerate(kernel.space, shape, arch)) {
        const Refusal refusal = check_candidate(kernel.space, config, shape, arch);
        if (refusal == Refusal::kNone)
            plans.push_back(plan_of(*kernel.cost, config, shape, arch));
        else if (rejected != nullptr)
            rejected->push_back({config, explain(refusal, kernel.space, config, arch)});
    }
    DG_CHECK(!plans.empty(), "No config of {} runs {} in {} bytes of shared memory per block", kernel.entry,
             describe(shape), arch.smem_per_block);
    return plans;
}

std::size_t pick(const std::vector<Fp8GemmPlan>& plans, double tie_fraction) {
    double lowest = plans.front().estimate_us;
    for (const Fp8GemmPlan& plan : plans) lowest = std::min(lowest, plan.estimate_us);
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        if (plans[i].estimate_us > lowest * (1 + tie_fraction)) continue;
        if (!best || simpler(plans[i].config, plans[*best].config)) best = i;
    }
    return *best;
}

double tie_fraction_of(const Fp8GemmShape& shape, const ArchSpec& arch) {
    return kernel_for(shape.sfb_granularity, shape.d_dtype, arch).cost->tie_fraction;
}

}  // namespace

Fp8GemmPlan plan_fp8_gemm(const Fp8GemmShape& shape, const ArchSpec& arch) {
    const std::vector<Fp8GemmPlan> plans = feasible_plans(shape, arch, nullptr);
    return plans[pick(plans, tie_fraction_of(shape, arch))];
}

Fp8GemmChoice explain_fp8_gemm(const Fp8GemmShape& shape, const ArchSpec& arch) {
    Fp8GemmChoice choice;
    choice.runners_up = feasible_plans(shape, arch, &choice.rejected);
    const std::size_t best = pick(choice.runners_up, tie_fraction_of(shape, arch));
    choice.best = choice.runners_up[best];
    choice.runners_up.erase(choice.runners_up.begin() + std::ptrdiff_t(best));
    std::stable_sort(
        choice.runners_up.begin(), choice.runners_up.end(),
        [](const Fp8GemmPlan& a, const Fp8GemmPlan& b) { return a.estimate_us < b.estimate_us; });
    return choice;
}

Fp8GemmPlan plan_with_config(Fp8GemmConfig config, const Fp8GemmShape& shape, const ArchSpec& arch) {
    check_request(shape, arch);
    set_edge(config, shape);
    const Fp8GemmKernel& kernel = kernel_for(shape.sfb_granularity, shape.d_dtype, arch);
    const bool same_problem = config.sfb_granularity == shape.sfb_granularity &&
                              config.d_dtype == shape.d_dtype && config.has_c == shape.has_c &&
                              config.head_unit == shape.head_unit && config.grouping == shape.groups.grouping;
    DG_CHECK(same_problem, "config: {} was made for another recipe, D dtype, C, heads or grouping than the shape's",
             describe(config));
    const Refusal refusal = check_shape(kernel.space, config, shape, arch);
    DG_CHECK(refusal == Refusal::kNone, "config: {} cannot run: {}", describe(config),
             explain(refusal, kernel.space, config, arch));
    return plan_of(*kernel.cost, config, shape, arch);
}

std::vector<BreakPoint<Fp8GemmConfig>> m_break_points(const Fp8GemmShape& shape, int64_t m_min, int64_t m_max,
                                                      const ArchSpec& arch) {
    return break_points(shape, m_min, m_max, [&](const Fp8GemmShape& at) { return plan_fp8_gemm(at, arch).config; });
}

}  // namespace deep_gemm::plan
