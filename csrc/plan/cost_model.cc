#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "plan/raster.h"

namespace deep_gemm::plan {

namespace {

// A shape cut into tiles and clusters.
struct Tiling {
    double clusters;
    double rows;   // of D, of all groups
    double slots;  // clusters that run at once
    double k_blocks;
    double loaded_rows;    // rows of A in a tile that memory really delivers
    double outside_bytes;  // operand bytes of tiles that lie wholly outside D
};

Tiling tiling_of(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const ArchSpec& arch) {
    const int64_t tiles_m = likely_tiles_along_m(shape.m, shape.groups, c.block_m);
    const int64_t tiles_n = ceil_div<int64_t>(shape.n, c.block_n);
    const int64_t clusters_m = ceil_div<int64_t>(tiles_m, c.cluster_m);
    const int64_t clusters_n = ceil_div<int64_t>(tiles_n, c.cluster_n);
    const double rows_outside = double(clusters_m * c.cluster_m - tiles_m) * double(clusters_n) * c.block_m +
                                double(clusters_n * c.cluster_n - tiles_n) * double(clusters_m) * c.block_n;
    Tiling t{};
    t.clusters = double(clusters_m) * double(clusters_n);
    t.rows = rows_of_d(shape.m, shape.groups);
    t.slots = resident_clusters(arch.sm_count, c.cluster_m * c.cluster_n);
    t.k_blocks = double(align_up<int64_t>(ceil_div<int64_t>(shape.k, kBlockK), c.k_blocks));
    t.loaded_rows = double(std::min<int64_t>(c.block_m, shape.m));
    t.outside_bytes = rows_outside * double(shape.k);
    return t;
}

// Cycles of one warpgroup for a K block: its wgmmas, then its promotion, unless a second accumulator runs
// them side by side; and what one wait costs, shared by the K blocks under it.
double chain_cycles(const CostConstants& cost, const Fp8GemmConfig& c, double fmas, double selects) {
    const double waves = double(c.block_m) / kWgmmaM / c.num_math_warpgroups;
    const double wgmma = waves * std::max(2 * c.block_n, kWgmmaM * c.n_parts + c.block_n);
    const bool beside = c.num_accumulators > 1;
    const double promote = waves * (fmas * (beside ? cost.fma_beside_product : cost.fma_alone) + selects);
    const double exposed = beside ? (c.n_parts > 1 ? cost.exposed_in_parts : 0) : 1;
    return std::max(wgmma, promote) + exposed * std::min(wgmma, promote) +
           (beside ? cost.chain_two * c.n_parts : cost.chain_one) / c.k_blocks;
}

// The p-norm: near the largest, a little above it where several are close.
double join(const CostConstants& cost, std::initializer_list<double> parts) {
    const double top = std::max(parts);
    double sum = 0;
    for (double part : parts) {
        double share = part / top;
        for (int i = 0; i < cost.overlap_doublings; ++i) share *= share;
        sum += share;
    }
    for (int i = 0; i < cost.overlap_doublings; ++i) sum = std::sqrt(sum);
    return top * sum;
}

bool is_tallest(const Fp8GemmConfig& c) {
    return c.block_m == 256;
}

// More of a load's latency for another CTA: less where products are long. The tallest tiles under a factor a row take so long for one
// that it does not count.
double cluster_latency(const CostConstants& cost, const Fp8GemmConfig& c) {
    if (c.block_m < 192 || c.block_n < 128) return cost.cluster_latency;
    if (!is_tallest(c)) return cost.tall_cluster_latency;
    return c.sfb_granularity == ScaleGranularity::kPerRow ? 0 : cost.tallest_cluster_latency;
}

// Stages that hide a load. More than three of the tallest tiles only even out the tiles of unequal groups: full ones were not
// seen to be faster.
int covering_stages(const Fp8GemmConfig& c) {
    constexpr int kOfTallest = 3;
    return is_tallest(c) ? std::min(c.num_stages, kOfTallest) : c.num_stages;
}

// Cycles between two K blocks of a tile in the steady state, as far as its own SM decides them.
double block_cycles(const CostConstants& cost, const Fp8GemmConfig& c, const Tiling& t) {
    const double row_groups = double(c.block_m) / kWgmmaM;
    const double operand_bytes = row_groups * (kBlockK / 32.0) * (kWgmmaM * c.n_parts + c.block_n) * 32;
    const double written_bytes = (t.loaded_rows + c.block_n) * kBlockK;
    const double tensor = double(c.block_m) * c.block_n * kBlockK / cost.mac_per_cycle;
    const double smem = (operand_bytes + written_bytes) / cost.smem_bytes_per_cycle;

    // Of 64 rows, in each scheduler.
    const bool per_row = c.sfb_granularity == ScaleGranularity::kPerRow;
    const double fmas = c.block_n / 2.0 * (per_row ? cost.promote_per_row : cost.promote_per_block);
    const bool two_factors = !per_row && kScaleBlock % c.block_n != 0;
    const double selects =
        two_factors ? cost.select_per_segment * c.block_n / gcd_of(c.block_n, kScaleBlock) : 0;
    const double promote = row_groups * (fmas * cost.fma_shared + selects);

    const int others = c.cluster_m * c.cluster_n - 1;
    const double latency = cost.tma_latency + others * cluster_latency(cost, c);
    const double supply = latency / (std::max(covering_stages(c) - 1, 1) * c.k_blocks);
    return join(cost, {tensor, smem, promote, chain_cycles(cost, c, fmas, selects), supply});
}

// Rows of A and B that one cluster draws from L2 for a K block. Where all of A is a few rows, every CTA asks
// for the same lines at once, and the slices that hold them serve one after another.
double drawn_rows(const CostConstants& cost, const Fp8GemmConfig& c, const Tiling& t) {
    const double rows_in_use =
        std::clamp<double>(t.rows, kWgmmaM, double(c.block_m) * c.cluster_m * kRasterGroup);
    const double crowding = 1 + cost.crowding * kWgmmaM / rows_in_use;
    return t.loaded_rows * c.cluster_m * crowding + double(c.block_n) * c.cluster_n;
}

// Cycles a tile keeps its warpgroups from the next one.
double epilogue_cycles(const CostConstants& cost, const Fp8GemmConfig& c) {
    const double row_groups = double(c.block_m) / kWgmmaM / c.num_math_warpgroups;
    const double boxes = row_groups * (c.block_n / store_columns(c));
    const double per_column = cost.epilogue_per_column + (c.has_c && !c.c_is_d ? cost.c_per_column : 0);
    return cost.tile_fixed + std::max(0.0, boxes - c.store_boxes) * cost.store_wait +
           row_groups * c.block_n * per_column * d_element_bytes(c) / 2;
}

// Bytes of D, and of C where there is one.
double output_bytes(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const Tiling& t) {
    return t.rows * double(shape.n) * d_element_bytes(c) * (c.has_c ? 2 : 1);
}

// How much longer a kernel of `us` takes at the clock that the power limit leaves it.
double slowdown_of(const CostConstants& cost, const ArchSpec& arch, double us) {
    const double fall = std::log(std::max(us, cost.sustained_from_us) / cost.sustained_from_us) /
                        std::log(cost.sustained_at_us / cost.sustained_from_us);
    return 1 + (arch.clock_ghz / arch.sustained_ghz - 1) * std::min(fall, 1.0);
}

}  // namespace

CostParts cost_of(const CostConstants& cost, const Fp8GemmConfig& c, const Fp8GemmShape& asked,
                  const ArchSpec& arch) {
    Fp8GemmShape shape = asked;
    shape.m = planning_m(asked.m);
    const Tiling t = tiling_of(c, shape, arch);
    const double cycles_per_us = arch.clock_ghz * 1e3;
    const double block_us = block_cycles(cost, c, t) / cycles_per_us;
    const double epilogue_us = epilogue_cycles(cost, c) / cycles_per_us;
    const double dram_us =
        (pick_raster(c, shape, arch).operand_bytes + output_bytes(c, shape, t)) / (arch.dram_tb_per_s * 1e6);
    // Of one cluster that draws alone from what all SMs share.
    const double cluster_l2_us = drawn_rows(cost, c, t) * kBlockK * t.k_blocks / (arch.l2_tb_per_s * 1e6);

    CostParts parts;
    double busy = 0;
    const double full_waves = std::floor(t.clusters / t.slots);
    const auto run_waves = [&](double waves, double clusters) {
        const double math = block_us * t.k_blocks, dram = dram_us * clusters / t.clusters;
        const double l2 = cluster_l2_us * clusters;
        parts.math += waves * (math + epilogue_us);
        parts.dram += waves * dram;
        parts.l2 += waves * l2;
        busy += waves * (join(cost, {math, dram, l2}) + epilogue_us);
    };
    run_waves(full_waves, t.slots);
    if (t.clusters > full_waves * t.slots) run_waves(1, t.clusters - full_waves * t.slots);
    parts.outside = t.outside_bytes / (cost.outside_tb_per_s * 1e6);

    const double slower = slowdown_of(cost, arch, busy);
    for (double* part : {&parts.math, &parts.dram, &parts.l2}) *part *= slower;
    parts.overhead = cost.start_and_drain_us;
    parts.total = std::hypot(busy * slower, parts.outside) + parts.overhead;
    return parts;
}

}  // namespace deep_gemm::plan
