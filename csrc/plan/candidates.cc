#include "plan/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/config_text.h"
#include "plan/edge.h"

namespace deep_gemm::plan {

namespace {

constexpr int kMinStages = 2;
constexpr int kMaxStages = 32;
constexpr int kMinDeepStages = 3;
constexpr int kMinDeepStagesOfGroups = 4;  // whose tiles take unequal times; docs/sm90-fp8-gemm.md
constexpr int kLeanStoreBoxes = 2;    // one is filled while the other is read
constexpr int kEnoughCycles = 2048;   // of products in the pipeline; more of D staged at once is worth more than another stage
constexpr int64_t kLongK = 2048;      // measured at 2048, 4096 and 7168: docs/sm90-fp8-gemm.md
constexpr int kMacPerCycle = 4096;    // of an SM
constexpr int kSwizzleRows = 8;             // rows of a 128-byte swizzle atom
constexpr int kOtherRegisters = 40;         // addresses, scales, loop state: seen in compiled kernels
constexpr int kOtherRegistersOfThree = 32;  // under the 160 of three warpgroups: 192x128 compiles clean
constexpr int kOddBoxRegisters =
    16;  // more where store boxes are no power of two wide: 128x120 spilled without
constexpr const char* kBetweenWidths = "a width between the planned ones gains little and costs a kernel";
constexpr const char* kTallInCluster = "tall tiles share enough in clusters of two";
constexpr const char* kWideUnmeasured = "so wide a tile fills the registers and was not measured";
constexpr int kMaxScaleSpan = 2;  // SFB blocks one 1D2D tile may touch

const TileRow* row_of(const CandidateSpace& space, const Fp8GemmConfig& c) {
    for (const TileRow& row : space.tiles)
        if (row.block_m == c.block_m && row.num_math_warpgroups == c.num_math_warpgroups) return &row;
    return nullptr;
}

const ClusterRow* cluster_of(const CandidateSpace& space, const Fp8GemmConfig& c) {
    for (const ClusterRow& row : space.clusters)
        if (row.m == c.cluster_m && row.n == c.cluster_n) return &row;
    return nullptr;
}

// The most 128-row blocks of SFB that a tile touches, wherever it starts.
int scale_span(int block_n) {
    const int last_start = kScaleBlock - gcd_of(block_n, kScaleBlock);
    return ceil_div(last_start + block_n, kScaleBlock);
}

const ProductRow* product_of(const CandidateSpace& space, const Fp8GemmConfig& c) {
    for (const ProductRow& row : space.products)
        if (row.num_accumulators == c.num_accumulators && row.n_parts == c.n_parts &&
            row.k_blocks == c.k_blocks)
            return &row;
    return nullptr;
}

const GroupingRow* grouping_of(const CandidateSpace& space, const Fp8GemmConfig& c) {
    for (const GroupingRow& row : space.groupings)
        if (row.grouping == c.grouping) return &row;
    return nullptr;
}

// 64-row boxes of D that one math warpgroup stores.
int boxes_of(const Fp8GemmConfig& c) {
    return c.block_n / store_columns(c) * (c.block_m / kWgmmaM / c.num_math_warpgroups);
}

bool is_deep(const Fp8GemmConfig& c) {
    const int stage_cycles = c.block_m * c.block_n * c.k_blocks * kBlockK / kMacPerCycle;
    const int least = has_entry_per_group(c.grouping) ? kMinDeepStagesOfGroups : kMinDeepStages;
    return c.num_stages >= least && c.num_stages * stage_cycles >= kEnoughCycles;
}

// Whether another stage is worth more than a second box of D: with SFB per block, loads of narrow tiles of three warpgroups come late
// with four stages, and of a long K a box's wait for the one before is little. 192x96 was measured; 192x128 was slower by it.
bool prefers_stages(const Fp8GemmConfig& c, int64_t k) {
    const bool narrow = c.num_math_warpgroups == 3 && c.block_n < kScaleBlock && c.store_boxes == 2 && boxes_of(c) == 2;
    return narrow && k >= kLongK && c.sfb_granularity == ScaleGranularity::kPerBlock && c.d_dtype == Dtype::kBf16 &&
           !has_entry_per_group(c.grouping);
}

// As much of D is staged at once as leaves a deep pipeline; two boxes of it, if none does, or one where another stage is worth more.
void fill_shared_memory(Fp8GemmConfig& c, int64_t k, const ArchSpec& arch) {
    c.store_boxes = boxes_of(c);
    c.num_stages = deepest_pipeline(c, arch);
    while (c.store_boxes > kLeanStoreBoxes && !is_deep(c)) {
        c.store_boxes = std::max((c.store_boxes + 1) / 2, kLeanStoreBoxes);
        c.num_stages = deepest_pipeline(c, arch);
    }
    if (!prefers_stages(c, k)) return;
    Fp8GemmConfig lean = c;
    lean.store_boxes = 1;
    lean.num_stages = deepest_pipeline(lean, arch);
    if (lean.num_stages > c.num_stages) c = lean;
}

const char* why_off(const CandidateSpace& space, const Fp8GemmConfig& c) {
    const TileRow* tile = row_of(space, c);
    const ClusterRow* cluster = cluster_of(space, c);
    if (tile != nullptr && tile->off != nullptr) return tile->off;
    if (tile != nullptr && c.block_n % tile->planned_step != 0) return kBetweenWidths;
    if (cluster != nullptr && cluster->off != nullptr) return cluster->off;
    if (cluster != nullptr && c.block_m > cluster->planned_block_m) return kTallInCluster;
    const ProductRow* product = product_of(space, c);
    if (product == nullptr || product->off != nullptr) return product == nullptr ? nullptr : product->off;
    if (c.block_n > product->planned_max) return kWideUnmeasured;
    return c.block_n % product->planned_step != 0 ? kBetweenWidths : nullptr;
}

bool tile_in_space(const CandidateSpace& space, const Fp8GemmConfig& c) {
    const TileRow* row = row_of(space, c);
    return row != nullptr && c.block_n > 0 && c.block_n % row->block_n_step == 0 &&
           c.block_n <= row->block_n_max && cluster_of(space, c) != nullptr &&
           product_of(space, c) != nullptr && c.block_n % (8 * c.n_parts) == 0 && 0 < c.store_boxes &&
           c.store_boxes <= boxes_of(c);
}

}  // namespace

RegisterNeed register_need(const Fp8GemmConfig& c) {
    const int waves = c.block_m / kWgmmaM / c.num_math_warpgroups;
    const int box = store_columns(c.block_n, d_element_bytes(c));  // heads narrow the boxes, not the need
    const int other = c.num_math_warpgroups == 3 ? kOtherRegistersOfThree : kOtherRegisters;
    const bool odd_box = (box & (box - 1)) != 0;
    return {c.block_n / 2 * waves, c.block_n / 2 / c.n_parts * c.num_accumulators * c.k_blocks,
            other + (odd_box ? kOddBoxRegisters : 0)};
}

int deepest_pipeline(const Fp8GemmConfig& config, const ArchSpec& arch) {
    Fp8GemmConfig none = config, one = config;
    none.num_stages = 0;
    one.num_stages = 1;
    const int fixed = smem_plan(none).total,
              stage = smem_plan(one).total - fixed;  // the plan is linear in its stages
    return std::clamp((arch.smem_per_block - fixed) / stage, 0, kMaxStages);
}

std::vector<Fp8GemmConfig> enumerate(const CandidateSpace& space, const Fp8GemmShape& shape,
                                     const ArchSpec& arch) {
    std::vector<Fp8GemmConfig> configs;
    Fp8GemmConfig c{};
    c.sfb_granularity = shape.sfb_granularity;
    c.grouping = shape.groups.grouping;
    c.d_dtype = shape.d_dtype;
    c.has_c = shape.has_c;
    c.head_unit = shape.head_unit;
    set_edge(c, shape);
    for (const TileRow& tile : space.tiles) {
        c.block_m = tile.block_m;
        c.num_math_warpgroups = tile.num_math_warpgroups;
        for (c.block_n = tile.block_n_step; c.block_n <= tile.block_n_max; c.block_n += tile.block_n_step) {
            for (const ProductRow& product : space.products) {
                c.num_accumulators = product.num_accumulators;
                c.n_parts = product.n_parts;
                c.k_blocks = product.k_blocks;
                fill_shared_memory(c, shape.k, arch);
                for (const ClusterRow& cluster : space.clusters) {
                    c.cluster_m = cluster.m;
                    c.cluster_n = cluster.n;
                    configs.push_back(c);
                }
            }
        }
    }
    return configs;
}

Refusal check_config(const CandidateSpace& space, const Fp8GemmConfig& c, const ArchSpec& arch) {
    if (!tile_in_space(space, c)) return Refusal::kTile;
    if (const GroupingRow* row = grouping_of(space, c); row == nullptr || c.cluster_m > row->max_cluster_m)
        return Refusal::kGrouping;
    if (c.block_n % (kSwizzleRows * c.cluster_m) != 0 || c.block_m % (kSwizzleRows * c.cluster_n) != 0)
        return Refusal::kMulticast;
    if (c.sfb_granularity == ScaleGranularity::kPerBlock && scale_span(c.block_n) > kMaxScaleSpan)
        return Refusal::kScaleSpan;
    const ProductRow& product = *product_of(space, c);
    if (c.block_n < product.block_n_min || c.block_n > product.block_n_max) return Refusal::kProducts;
    if (register_need(c).total() > row_of(space, c)->register_limit) return Refusal::kRegisters;
    if (c.num_stages < kMinStages || smem_plan(c).total > arch.smem_per_block) return Refusal::kSharedMemory;
    return Refusal::kNone;
}

Refusal check_shape(const CandidateSpace& space, const Fp8GemmConfig& c, const Fp8GemmShape& shape,
                    const ArchSpec& arch) {
    const Refusal refusal = check_config(space, c, arch);
    if (refusal != Refusal::kNone) return refusal;
    const bool cuts_waves = c.grouping == Grouping::kContiguous && shape.groups.alignment % kWgmmaM != 0;
    return cuts_waves ? Refusal::kGrouping : Refusal::kNone;
}

Refusal check_candidate(const CandidateSpace& space, const Fp8GemmConfig& c, const Fp8GemmShape& shape,
                        const ArchSpec& arch) {
    const Refusal refusal = check_shape(space, c, shape, arch);
    if (refusal != Refusal::kNone) return refusal;
    if (why_off(space, c) != nullptr) return Refusal::kNotPlanned;
    const bool idle = ceil_div<int64_t>(shape.m, c.block_m) < c.cluster_m ||
                      ceil_div<int64_t>(shape.n, c.block_n) < c.cluster_n;
    if (idle) return Refusal::kIdleCluster;
    return c.block_m - kWgmmaM >= shape.m ? Refusal::kIdleRows : Refusal::kNone;
}

std::string explain(Refusal refusal, const CandidateSpace& space, const Fp8GemmConfig& c,
                    const ArchSpec& arch) {
    const RegisterNeed need = register_need(c);
    switch (refusal) {
        case Refusal::kNone:
            return "feasible";
        case Refusal::kNotPlanned:
            return fmt::format("not planned: {}", why_off(space, c));
        case Refusal::kTile:
            return fmt::format(
                "tile: {}x{} with {} math warpgroups, {} accumulators, {} parts, {} K blocks, {} store boxes "
                "and cluster "
                "{}x{} "
                "is not in the kernel's table",
                c.block_m, c.block_n, c.num_math_warpgroups, c.num_accumulators, c.n_parts, c.k_blocks,
                c.store_boxes, c.cluster_m, c.cluster_n);
        case Refusal::kGrouping:
            if (grouping_of(space, c) == nullptr)
                return fmt::format("grouping: no kernel with SFB {} runs {} problems", text_of(c.sfb_granularity),
                                   text_of(c.grouping));
            return fmt::format(
                "grouping: a wave of {} rows, or a cluster of {} CTAs along M, may belong to two groups of a {} problem; the "
                "alignment is a multiple of waves, clusters lie along N",
                kWgmmaM, c.cluster_m, text_of(c.grouping));
        case Refusal::kMulticast:
            return fmt::format(
                "multicast: shares of {}/{} rows of B and {}/{} rows of A must be multiples of {}", c.block_n,
                c.cluster_m, c.block_m, c.cluster_n, kSwizzleRows);
        case Refusal::kScaleSpan:
            return fmt::format("scale span: {} columns may touch {} blocks of SFB, at most {}", c.block_n,
                               scale_span(c.block_n), kMaxScaleSpan);
        case Refusal::kProducts:
            return fmt::format(
                "products: {} accumulators of {} parts and {} K blocks are for {} to {} columns, not {}",
                c.num_accumulators, c.n_parts, c.k_blocks, product_of(space, c)->block_n_min,
                product_of(space, c)->block_n_max, c.block_n);
        case Refusal::kRegisters:
            return fmt::format("registers: {} sums + {} in flight + {} = {} per thread, at most {}",
                               need.sums, need.in_flight, need.other, need.total(),
                               row_of(space, c)->register_limit);
        case Refusal::kSharedMemory:
            return fmt::format("shared memory: {} stages need {} bytes of {}, at least {} stages must fit",
                               c.num_stages, smem_plan(c).total, arch.smem_per_block, kMinStages);
        case Refusal::kIdleCluster:
            return fmt::format("idle cluster: fewer tiles than the {}x{} CTAs of a cluster", c.cluster_m,
                               c.cluster_n);
        case Refusal::kIdleRows:
            return fmt::format("idle rows: M leaves {} or more of a tile's {} rows without work", kWgmmaM,
                               c.block_m);
    }
    return "unknown";
}

}  // namespace deep_gemm::plan
