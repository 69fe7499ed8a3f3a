#include "plan/bf16_cost_model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace deep_gemm::plan {

namespace {

// The first is the architecture's rate. The others are fitted by random search to docs/benchmarks/bf16_gemm_configs_h200.csv, no
// shape held out: they are what orders configs as the measurements do, not properties of the device.
constexpr double kMacPerCycle = 2048;         // of an SM's tensor cores
constexpr double kSmemBytesPerCycle = 107;    // that operands are read at
constexpr double kLoadLatency = 2660;         // cycles from a stage's request to its arrival
constexpr double kDrawnBytesPerCycle = 47;    // by one SM
constexpr double kMergedAnyway = 0.1;         // of what a cluster shares: L2 merges requests of neighbouring SMs by itself
constexpr double kWaitCycles = 131;           // of a stage: wait, issue, release
constexpr double kClusterCycles = 79;         // more of a stage for another CTA that it is shared with
constexpr double kBlockCycles = 127;          // the least between two K blocks of a stage
constexpr double kTileCycles = 334;           // start of a tile's pipeline and of its store
constexpr double kCyclesPerColumn = 3.45;     // of the epilogue, for 64 rows of BF16
constexpr double kReadCyclesPerColumn = 58.6; // more where threads read C
constexpr double kLaunchUs = 2.01;
constexpr double kFewRows = 128;              // a matrix of so few is
constexpr double kFewRowsDrawn = 0.31;        // drawn as if it were so much of it: all SMs ask for the same lines
constexpr double kSpare = 0.19;               // of a last wave's time for what of the device it leaves idle
constexpr double kReadOfC = 1.56;             // bytes of C beside those of D
constexpr double kWrittenBeside = 0.15;       // of the time to write D, and to read C, that nothing hides, in tiles of 128x128;
constexpr double kWrittenAtOnce = 1.37;       // the power of a tile's size with which that grows

// Batches that one D sums.
int64_t summed_batches(const Bf16GemmShape& shape) {
    return shape.groups.grouping == Grouping::kBatchSum ? shape.groups.count : 1;
}

// `tiles_along_m`: of a shape's groups, likely_ or most_tiles_along_m.
Bf16Clusters clusters_of(const Bf16GemmConfig& c, const Bf16GemmShape& shape, int sms, const auto& tiles_along_m) {
    return {tiles_along_m(shape.m, shape.groups, int64_t(c.block_m) * c.cluster_m) *
                ceil_div<int64_t>(shape.n, int64_t(c.block_n) * c.cluster_n),
            resident_clusters(sms, c.cluster_m * c.cluster_n)};
}

// The 4-norm: near the largest, a little above it where several are close.
double join(std::initializer_list<double> parts) {
    const double top = std::max(parts);
    double sum = 0;
    for (const double part : parts) sum += std::pow(part / top, 4);
    return top * std::pow(sum, 0.25);
}

// Rows of A that a K block of a tile draws from L2.
double drawn_rows_of_a(const Bf16GemmConfig& c, const Bf16GemmShape& shape) {
    const double rows = double(std::min<int64_t>(c.block_m, shape.m));
    return shape.m <= kFewRows ? rows * kFewRowsDrawn : rows;
}

// Cycles between two stages of a tile in the steady state.
double stage_cycles(const Bf16GemmConfig& c, double a_rows) {
    const double tensor = c.k_blocks * double(c.block_m) * c.block_n * kBf16BlockK / kMacPerCycle;
    const double waves = double(c.block_m) / kWgmmaM;
    const double smem = c.k_blocks * waves * (kWgmmaM + c.block_n) * kBf16SpanBytes / kSmemBytesPerCycle;
    const auto shared = [](double bytes, int ctas) { return bytes * (kMergedAnyway + (1 - kMergedAnyway) / ctas); };
    const double drawn =
        shared(c.k_blocks * a_rows * kBf16SpanBytes, c.cluster_n) + shared(double(smem_plan(c).b_stage), c.cluster_m);
    const double waiting = kWaitCycles + (c.cluster_m * c.cluster_n - 1) * kClusterCycles + c.k_blocks * kBlockCycles;
    return join({tensor, smem, drawn / kDrawnBytesPerCycle, kLoadLatency / std::max(c.num_stages - 1, 1), waiting});
}

// Rounds of clusters; the last one is a little faster where it leaves SMs idle.
double rounds_of(const Bf16Clusters& clusters) {
    const double rounds = double(clusters.count) / clusters.slots, full = std::floor(rounds);
    return rounds > full ? full + 1 - kSpare * (1 - (rounds - full)) : full;
}

}  // namespace

Bf16Clusters most_clusters(const Bf16GemmConfig& config, const Bf16GemmShape& shape, int sms) {
    return clusters_of(config, shape, sms, most_tiles_along_m);
}

int64_t rows_under_tiles(int block_m, const Bf16GemmShape& shape) {
    const GroupRows group = group_rows(shape.m, shape.groups);
    if (!has_entry_per_group(shape.groups.grouping)) return group.rows;
    const int64_t tiles = likely_tiles_along_m(shape.m, shape.groups, block_m);
    return std::min(ceil_div(tiles * block_m, group.count), shape.m);
}

Raster bf16_raster(const Bf16GemmConfig& c, const Bf16GemmShape& shape, const ArchSpec& arch) {
    const double row_bytes = 2.0 * double(shape.k) * double(summed_batches(shape));
    const GroupRows group = group_rows(shape.m, shape.groups);
    Raster raster = pick_raster({rows_under_tiles(c.block_m, shape), int64_t(c.block_m) * c.cluster_m, row_bytes},
                                {shape.n, int64_t(c.block_n) * c.cluster_n, row_bytes}, c.cluster_m * c.cluster_n, arch);
    raster.operand_bytes *= double(group.count);
    return raster;
}

double bf16_estimate_us(const Bf16GemmConfig& c, const Bf16GemmShape& shape, const ArchSpec& arch) {
    const Bf16Clusters clusters = clusters_of(c, shape, arch.sm_count, likely_tiles_along_m);
    const double stages = double(ceil_div<int64_t>(shape.k, c.k_blocks * kBf16BlockK) * summed_batches(shape));
    const double a_rows = drawn_rows_of_a(c, shape);
    const int d_bytes = output_bytes(c.d_dtype);
    const double per_column = kCyclesPerColumn + (reads_c(c) ? kReadCyclesPerColumn : 0);
    const double row_groups = double(c.block_m) / kWgmmaM / c.num_math_warpgroups;
    const double epilogue = kTileCycles + per_column * c.block_n * d_bytes / 2 * row_groups;
    const double math = rounds_of(clusters) * (stages * stage_cycles(c, a_rows) + epilogue) / (arch.clock_ghz * 1e3);

    const int b_rows = smem_plan(c).b_stage / kBf16SpanBytes;  // of all its K blocks
    const double drawn =
        double(clusters.count) * stages * (c.k_blocks * a_rows * c.cluster_m + double(b_rows) * c.cluster_n);
    const double l2 = drawn * kBf16SpanBytes / (arch.l2_tb_per_s * 1e6);
    const double written =
        rows_of_d(shape.m, shape.groups) * double(shape.n) * d_bytes * (c.has_c ? 1 + kReadOfC : 1) / (arch.dram_tb_per_s * 1e6);
    const double dram = bf16_raster(c, shape, arch).operand_bytes / (arch.dram_tb_per_s * 1e6) + written;
    const double burst = kWrittenBeside * std::pow(double(c.block_m) * c.block_n / (128 * 128), kWrittenAtOnce);
    return kLaunchUs + join({math, l2, dram}) + burst * written;
}

}  // namespace deep_gemm::plan
