#include "plan/bf16_gemm.h"

#include <algorithm>
#include <cmath>

#include "plan/bf16_cost_model.h"
#include "plan/edge.h"
#include "plan/raster.h"
#include "support/error.h"

namespace deep_gemm::plan {

namespace {

constexpr int kArchMajor = 9;
constexpr KernelTemplate kKernel{"deep_gemm/kernels/bf16_gemm/sm90_bf16_gemm.cuh", "sm90_bf16_gemm", "sm90_bf16_gemm_impl",
                                 "Bf16GemmConfig", "Bf16GemmArgs"};
constexpr const char* kBatchSumEntry = "sm90_bf16_bmn_bnk_mn_gemm_impl";  // a name that profiles are searched for

struct TileRow {
    int block_m, num_math_warpgroups;
    int block_n_step, block_n_max;  // widths the kernel is made for
    int planned_step;               // widths that plans use
};
constexpr TileRow kTiles[] = {
    {64, 1, 8, 256, 16}, {128, 2, 8, 256, 32}, {192, 3, 8, 192, 64}, {256, 2, 8, 128, 128}};
constexpr int kKGroupedBlockNMax = 192;  // 128x224, 128x256 and 64x256 spilled with C
constexpr int kReadCBlockNMax = 128;     // under the 160 registers of three warpgroups: 192x192 spilled where threads read C

// K blocks of a stage, and the widest tiles they are for: what is narrow multiplies faster than it can wait.
struct StageRow {
    int k_blocks, block_n_max, block_m_max;
};
constexpr StageRow kStageRows[] = {{1, 256, 256}, {2, 128, 64}, {4, 64, 64}};

struct ClusterRow {
    int m, n;
};
constexpr ClusterRow kClusters[] = {{1, 1}, {2, 1}, {1, 2}};

constexpr int kMinStages = 2, kEnoughStages = 4, kMaxStages = 16;
constexpr int kEnoughStagesWithC = 3;  // where all of D must be staged for C to come by TMA
constexpr int kLeanStoreBoxes = 2;  // one is filled while the other is read
constexpr int kSliceRows = 8;       // of a swizzle atom

constexpr double kTie = 0.002;  // estimates nearer than this are not told apart

int deepest_pipeline(Bf16GemmConfig c, const ArchSpec& arch) {
    c.num_stages = 0;
    const int fixed = smem_plan(c).total;
    c.num_stages = 1;
    const int stage = smem_plan(c).total - fixed;  // the plan is linear in its stages
    return std::clamp((arch.smem_per_block - fixed) / stage, 0, kMaxStages);
}

// All of D is staged at once, or two boxes of it where that makes a short pipeline deeper.
void fill_shared_memory(Bf16GemmConfig& c, const ArchSpec& arch) {
    c.store_boxes = store_boxes_of(c);
    c.num_stages = deepest_pipeline(c, arch);
    if (c.num_stages >= (stages_c(c) ? kEnoughStagesWithC : kEnoughStages) || c.k_blocks > 1) return;
    c.store_boxes = std::min(c.store_boxes, kLeanStoreBoxes);
    c.num_stages = deepest_pipeline(c, arch);
}

const TileRow* row_of(const Bf16GemmConfig& c) {
    for (const TileRow& row : kTiles)
        if (row.block_m == c.block_m && row.num_math_warpgroups == c.num_math_warpgroups && c.block_n > 0 &&
            c.block_n % row.block_n_step == 0 && c.block_n <= row.block_n_max)
            return &row;
    return nullptr;
}

// Why the kernel cannot be built or launched with a config; empty if it can.
std::string why_not(const Bf16GemmConfig& c, const ArchSpec& arch) {
    const bool known_cluster =
        std::any_of(std::begin(kClusters), std::end(kClusters),
                    [&](const ClusterRow& row) { return row.m == c.cluster_m && row.n == c.cluster_n; });
    const bool known_stage = std::any_of(std::begin(kStageRows), std::end(kStageRows), [&](const StageRow& row) {
        return row.k_blocks == c.k_blocks && c.block_n <= row.block_n_max && c.block_m <= row.block_m_max;
    });
    if (row_of(c) == nullptr || !known_stage || !known_cluster || c.store_boxes < 1 || c.store_boxes > store_boxes_of(c))
        return "tile, K blocks, store boxes or cluster are not in the kernel's table";
    if (c.k_blocks > 1 && (c.grouping == Grouping::kKGrouped || c.grouping == Grouping::kBatchSum))
        return "grouping: behind the end of K lie other operands, so a stage holds one K block";
    if (c.grouping == Grouping::kKGrouped && c.block_n > kKGroupedBlockNMax)
        return fmt::format("registers: {} columns and the walk over groups of K spill, at most {} do not", c.block_n,
                           kKGroupedBlockNMax);
    if (c.num_math_warpgroups == 3 && reads_c(c) && c.block_n > kReadCBlockNMax)
        return fmt::format("registers: {} columns of three warpgroups spill where threads read C, at most {} do not", c.block_n,
                           kReadCBlockNMax);
    if (divides_rows(c.grouping) && (c.a_major != Major::kK || c.cluster_m > 1))
        return "grouping: A is K-major, and clusters lie along N, for their rows share a group";
    if (c.block_n % (kSliceRows * c.cluster_m) != 0)
        return fmt::format("shares of {}/{} columns must be multiples of {}", c.block_n, c.cluster_m, kSliceRows);
    if (c.num_stages < kMinStages || c.num_stages > 2 * kMaxStages || smem_plan(c).total > arch.smem_per_block)
        return fmt::format("{} stages need {} bytes of shared memory, at least {} must fit in {}", c.num_stages,
                           smem_plan(c).total, kMinStages, arch.smem_per_block);
    return {};
}

// Why a config cannot run this shape; empty if it can.
std::string why_not(const Bf16GemmConfig& c, const Bf16GemmShape& shape, const ArchSpec& arch) {
    if (straddles_groups(shape.groups, c.block_m, c.cluster_m))
        return fmt::format("grouping: {} rows of {} CTAs along M may belong to two groups of a {} problem; tiles divide "
                           "the alignment, clusters lie along N",
                           c.block_m, c.cluster_m, text_of(c.grouping));
    return why_not(c, arch);
}

// Whether a part of every tile, or a CTA of every cluster, would have no work.
bool idles(const Bf16GemmConfig& c, const Bf16GemmShape& shape) {
    return c.block_m - kWgmmaM >= shape.m || ceil_div<int64_t>(shape.m, c.block_m) < c.cluster_m ||
           ceil_div<int64_t>(shape.n, c.block_n) < c.cluster_n;
}

Bf16GemmPlan plan_of(const Bf16GemmConfig& c, const Bf16GemmShape& asked, const ArchSpec& arch) {
    Bf16GemmShape shape = asked;
    shape.m = planning_m(asked.m);
    const Bf16Clusters clusters = most_clusters(c, asked, arch.usable_sms);
    Bf16GemmPlan plan;
    plan.config = c;
    plan.cluster = c.cluster_m * c.cluster_n;
    plan.grid = int(clusters_to_launch(asked.groups, clusters.count, clusters.slots)) * plan.cluster;
    plan.threads = num_threads(c);
    plan.smem_bytes = smem_plan(c).total;
    plan.raster = bf16_raster(c, asked, arch).order;
    plan.estimate_us = bf16_estimate_us(c, shape, arch);
    return plan;
}

// Among estimates that the model cannot tell apart: no cluster before a cluster, then fewer rows that no group wants, then
// the larger tile, which reads less.
bool simpler(const Bf16GemmPlan& a, const Bf16GemmPlan& b, const Bf16GemmShape& shape) {
    if (a.cluster != b.cluster) return a.cluster < b.cluster;
    const int64_t rows_a = rows_under_tiles(a.config.block_m, shape), rows_b = rows_under_tiles(b.config.block_m, shape);
    if (rows_a != rows_b) return rows_a < rows_b;
    return a.config.block_m * a.config.block_n > b.config.block_m * b.config.block_n;
}

void check_request(const Bf16GemmShape& shape, const ArchSpec& arch) {
    DG_CHECK(arch.major == kArchMajor, "No BF16 GEMM kernel for SM{}{}; there is one for SM{}0", arch.major, arch.minor,
             kArchMajor);
    DG_CHECK(shape.m > 0 && shape.n > 0 && shape.k > 0,
             "shape: planning expects positive m, n and k, got m={}, n={}, k={}; empty problems need no kernel", shape.m,
             shape.n, shape.k);
    check_groups(shape.groups);
    DG_CHECK(0 < arch.usable_sms && arch.usable_sms <= arch.sm_count, "usable_sms: expected 1 to {} SMs, got {}",
             arch.sm_count, arch.usable_sms);
}

std::vector<Bf16GemmConfig> enumerate(const Bf16GemmShape& shape, const ArchSpec& arch) {
    std::vector<Bf16GemmConfig> configs;
    Bf16GemmConfig c{};
    c.a_major = shape.a_major;
    c.b_major = shape.b_major;
    c.grouping = shape.groups.grouping;
    c.d_dtype = shape.d_dtype;
    c.has_c = shape.has_c;
    set_edge(c, shape);
    for (const TileRow& tile : kTiles) {
        c.block_m = tile.block_m;
        c.num_math_warpgroups = tile.num_math_warpgroups;
        for (c.block_n = tile.planned_step; c.block_n <= tile.block_n_max; c.block_n += tile.planned_step) {
            for (const StageRow& stage : kStageRows) {
                c.k_blocks = stage.k_blocks;
                fill_shared_memory(c, arch);
                for (const ClusterRow& cluster : kClusters) {
                    c.cluster_m = cluster.m;
                    c.cluster_n = cluster.n;
                    configs.push_back(c);
                }
            }
        }
    }
    return configs;
}

}  // namespace

std::vector<Bf16GemmPlan> plans_bf16_gemm(const Bf16GemmShape& shape, const ArchSpec& arch) {
    check_request(shape, arch);
    std::vector<Bf16GemmPlan> plans;
    for (const Bf16GemmConfig& config : enumerate(shape, arch))
        if (!idles(config, shape) && why_not(config, shape, arch).empty()) plans.push_back(plan_of(config, shape, arch));
    DG_CHECK(!plans.empty(), "No config of {} runs {} in {} bytes of shared memory per block", kKernel.entry,
             describe(shape), arch.smem_per_block);
    std::stable_sort(plans.begin(), plans.end(),
                     [](const Bf16GemmPlan& a, const Bf16GemmPlan& b) { return a.estimate_us < b.estimate_us; });
    const double limit = plans.front().estimate_us * (1 + kTie);
    const auto tied = std::find_if(plans.begin(), plans.end(), [&](const auto& plan) { return plan.estimate_us > limit; });
    const auto best = std::min_element(
        plans.begin(), tied, [&](const auto& a, const auto& b) { return simpler(a, b, shape); });
    std::rotate(plans.begin(), best, best + 1);
    return plans;
}

Bf16GemmPlan plan_bf16_gemm(const Bf16GemmShape& shape, const ArchSpec& arch) {
    return plans_bf16_gemm(shape, arch).front();
}

Bf16GemmPlan plan_with_config(Bf16GemmConfig config, const Bf16GemmShape& shape, const ArchSpec& arch) {
    check_request(shape, arch);
    set_edge(config, shape);
    DG_CHECK(config.a_major == shape.a_major && config.b_major == shape.b_major && config.d_dtype == shape.d_dtype &&
                 config.has_c == shape.has_c && config.grouping == shape.groups.grouping,
             "config: {} was made for other majors, D dtype, C or grouping than the shape's", describe(config));
    const std::string reason = why_not(config, shape, arch);
    DG_CHECK(reason.empty(), "config: {} cannot run: {}", describe(config), reason);
    return plan_of(config, shape, arch);
}

std::vector<BreakPoint<Bf16GemmConfig>> m_break_points(const Bf16GemmShape& shape, int64_t m_min, int64_t m_max,
                                                       const ArchSpec& arch) {
    return break_points(shape, m_min, m_max, [&](const Bf16GemmShape& at) { return plan_bf16_gemm(at, arch).config; });
}

std::string describe(const Bf16GemmShape& shape) {
    return fmt::format("m={} n={} k={}{}", shape.m, shape.n, shape.k, describe(shape.groups));
}

std::string describe(const Bf16GemmConfig& c) {
    const bool grouped = c.grouping != Grouping::kDense;
    return fmt::format("{}x{}x{} stages={} warpgroups={} kblocks={} boxes={} cluster={}x{} a={} b={} d={}{}{}{}{}", c.block_m,
                       c.block_n, kBf16BlockK, c.num_stages, c.num_math_warpgroups, c.k_blocks, c.store_boxes, c.cluster_m,
                       c.cluster_n, text_of(c.a_major), text_of(c.b_major), text_of(c.d_dtype), c.c_is_d ? " +=" : c.has_c ? " +c" : "",
                       c.ragged_n ? " ragged" : "", grouped ? " " : "", grouped ? text_of(c.grouping) : "");
}

std::string describe(const Bf16GemmPlan& plan) {
    return fmt::format("{:8.2f} us  {}  grid={} smem={} bands={}{}", plan.estimate_us, describe(plan.config), plan.grid,
                       plan.smem_bytes, plan.raster.group, plan.raster.bands_along_n ? "n" : "m");
}

KernelSource print_source(const Bf16GemmConfig& config, const ArchSpec&) {
    KernelTemplate kernel = kKernel;
    if (config.grouping == Grouping::kBatchSum) kernel.entry = kBatchSumEntry;
    return source_of(kernel, config);
}

}  // namespace deep_gemm::plan
