#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "plan/raster.h"

namespace deep_gemm::plan {

namespace {

// A shape cut into tiles and clusters.
struct Tiling {
    double m_tiles, n_tiles;  // whole clusters' worth, m of all groups
    double rows;              // of D, of all groups
    double k_blocks;
    double slots;  // clusters that run at once
    double waves;
    double loaded_rows;  // rows of A in a tile that memory really delivers
};

// Wanted rows of masked groups scatter about what is expected: percent of it, for groups that stand for all.
constexpr int kScatter[] = {70, 85, 100, 115, 130};

// Clusters along M, of all groups. Only masked groups are cut each for itself.
int64_t clusters_along_m(const Fp8GemmShape& shape, int64_t rows_of_cluster) {
    if (shape.groups.grouping != Grouping::kMasked) return ceil_div(shape.m, rows_of_cluster);
    const GroupRows group = group_rows(shape);
    int64_t clusters = 0;
    for (const int percent : kScatter)
        clusters += ceil_div(std::min(ceil_div<int64_t>(group.rows * percent, 100), shape.m), rows_of_cluster);
    return ceil_div<int64_t>(clusters * group.count, std::size(kScatter));
}

double rows_of_d(const Fp8GemmShape& shape) {
    if (shape.groups.grouping != Grouping::kMasked) return double(shape.m);
    const GroupRows group = group_rows(shape);
    return double(group.rows) * double(group.count);
}

Tiling tiling_of(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const ArchSpec& arch) {
    const int64_t clusters_m = clusters_along_m(shape, int64_t(c.block_m) * c.cluster_m);
    const int64_t clusters_n = ceil_div<int64_t>(shape.n, int64_t(c.block_n) * c.cluster_n);
    const int64_t slots = std::max(1, arch.sm_count / (c.cluster_m * c.cluster_n));
    Tiling t{};
    t.m_tiles = double(clusters_m * c.cluster_m);
    t.n_tiles = double(clusters_n * c.cluster_n);
    t.rows = rows_of_d(shape);
    t.k_blocks = double(align_up<int64_t>(ceil_div<int64_t>(shape.k, kBlockK), c.k_blocks));
    t.slots = double(slots);
    t.waves = double(ceil_div(clusters_m * clusters_n, slots));
    t.loaded_rows = double(std::min<int64_t>(c.block_m, shape.m));
    return t;
}

// Cycles between two K blocks of a tile in the steady state.
double block_cycles(const CostConstants& cost, const Fp8GemmConfig& c, const Tiling& t) {
    const double groups = c.num_math_warpgroups;
    const double instructions = c.block_m / double(kWgmmaM) * (kBlockK / 32.0);
    const double operand_bytes = instructions * (kWgmmaM * c.n_parts + c.block_n) * 32;
    const double written_bytes = (t.loaded_rows + c.block_n) * kBlockK;
    const double tensor = double(c.block_m) * c.block_n * kBlockK / cost.mac_per_cycle;
    const double smem = (operand_bytes + written_bytes) / cost.smem_bytes_per_cycle;
    const double ingest = written_bytes / cost.ingest_bytes_per_cycle;

    const bool per_row = c.sfb_granularity == ScaleGranularity::kPerRow;
    const double per_element = per_row ? cost.promote_per_row : cost.promote_per_block;
    const double warps = 4 * groups;
    const double promote =
        c.block_m / groups * c.block_n / kWarpgroupThreads * per_element * warps / cost.issue_per_cycle;

    // One warpgroup's own chain: its wgmmas, then its promotion, unless a second accumulator runs them side
    // by side.
    const double own_wgmma = std::max(tensor, operand_bytes / cost.smem_bytes_per_cycle) / groups;
    const double own_promote = promote / groups;
    const double chain = c.num_accumulators > 1
                             ? std::max(own_wgmma, own_promote) + cost.chain_two * c.n_parts / c.k_blocks
                             : own_wgmma + own_promote + cost.chain_one / c.k_blocks;
    const bool shared = c.cluster_m * c.cluster_n > 1;
    const double supply =
        (cost.tma_latency + (shared ? cost.cluster_latency : 0)) / (c.num_stages * c.k_blocks);
    return std::max({tensor, smem, ingest, promote, chain, supply});
}

// Cycles a tile keeps its warpgroups from the next one.
double epilogue_cycles(const CostConstants& cost, const Fp8GemmConfig& c) {
    const double row_groups = c.block_m / double(kWgmmaM);
    const double width = d_element_bytes(c) / 2.0;
    const double boxes = row_groups * (c.block_n / store_columns(c.block_n, d_element_bytes(c)));
    const double waits = std::max(0.0, boxes / c.num_math_warpgroups - c.store_boxes);
    const double per_column = (cost.epilogue_per_column + (c.has_c ? cost.c_per_column : 0)) * width;
    return cost.tile_fixed + boxes * cost.store_box + waits * cost.store_wait +
           row_groups * c.block_n * per_column / c.num_math_warpgroups;
}

// Bytes of D, and of C where there is one.
double output_bytes(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const Tiling& t) {
    return t.rows * double(shape.n) * d_element_bytes(c) * (c.has_c ? 2 : 1);
}

// Bytes the SMs draw from L2: each tile row of A for every tile column not sharing it, and the reverse.
double l2_bytes(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const Tiling& t) {
    const double a = t.rows * shape.k * t.n_tiles / c.cluster_n;
    const double b = double(shape.n) * shape.k * t.m_tiles / c.cluster_m;
    return a + b + output_bytes(c, shape, t);
}

// The p-norm: near the largest, a little above it where several are close.
double join(const CostConstants& cost, const CostParts& parts) {
    const double top = std::max({parts.math, parts.power, parts.dram, parts.l2});
    double sum = 0;
    for (double part : {parts.math, parts.power, parts.dram, parts.l2}) {
        double share = part / top;
        for (int i = 0; i < cost.overlap_doublings; ++i) share *= share;
        sum += share;
    }
    for (int i = 0; i < cost.overlap_doublings; ++i) sum = std::sqrt(sum);
    return top * sum;
}

}  // namespace

int64_t planning_m(int64_t m) {
    return align_up<int64_t>(m, m <= kWgmmaM ? 8 : kWgmmaM);
}

GroupRows group_rows(const Fp8GemmShape& shape) {
    const GroupShape& groups = shape.groups;
    switch (groups.grouping) {
        case Grouping::kDense:
            break;
        case Grouping::kContiguous: {
            // No more groups have rows than there are places to start one.
            const int64_t places = ceil_div(shape.m, groups.alignment);
            const int64_t count = std::clamp<int64_t>(groups.count, 1, places);
            return {ceil_div(shape.m, count), count};
        }
        case Grouping::kMasked:
            // Nobody knows: all rows are wanted.
            return {groups.expected_m == 0 ? shape.m : std::min(planning_m(groups.expected_m), shape.m),
                    groups.count};
    }
    return {shape.m, 1};
}

CostParts cost_of(const CostConstants& cost, const Fp8GemmConfig& c, const Fp8GemmShape& asked,
                  const ArchSpec& arch) {
    Fp8GemmShape shape = asked;
    shape.m = planning_m(asked.m);
    const Tiling t = tiling_of(c, shape, arch);
    const double cycles_per_us = arch.clock_ghz * 1e3;
    const double epilogue = epilogue_cycles(cost, c);

    CostParts parts;
    parts.math = (t.waves * t.k_blocks * block_cycles(cost, c, t) + (t.waves - 1) * epilogue) / cycles_per_us;
    parts.power = 2.0 * t.rows * double(shape.n) * double(shape.k) / (arch.fp8_tflops * 1e6);
    parts.dram =
        (pick_raster(c, shape, arch).operand_bytes + output_bytes(c, shape, t)) / (arch.dram_tb_per_s * 1e6);
    parts.l2 = l2_bytes(c, shape, t) / (arch.l2_tb_per_s * 1e6);
    parts.overhead = cost.launch_us + (cost.fill + epilogue + cost.drain) / cycles_per_us;
    parts.total = join(cost, parts) + parts.overhead;
    return parts;
}

}  // namespace deep_gemm::plan
