#include "plan/raster.h"

#include <algorithm>

#include "plan/cost_model.h"

namespace deep_gemm::plan {

namespace {

constexpr int64_t kWidths[] = {1, 2, 4, 8, 16, 32};
constexpr double kL2Share =
    0.5;  // of the capacity one operand may count on: the other one and D pass through

// One dimension of the output in cluster tiles.
struct Side {
    int64_t tiles;
    int64_t rows_per_tile;  // rows of its operand
    double bytes;           // the whole operand
};

struct Candidate {
    double operand_bytes;
    double wave_rows;  // distinct rows of A and B under the tiles that run at once
};

// Bands of `group` tiles of `banded`; `other` is walked within each.
Candidate assess(const Side& banded, const Side& other, int64_t group, const ArchSpec& arch, int64_t slots) {
    const double held = arch.l2_mb * 1e6 * kL2Share;
    const int64_t bands = ceil_div(banded.tiles, group);
    const int64_t wave_other = std::min(other.tiles, ceil_div(slots, group));
    const double band_bytes = banded.bytes / double(bands);
    // A band that L2 cannot hold is read again by each wave that walks along it.
    const int64_t waves_along = band_bytes > held ? ceil_div(other.tiles, wave_other) : 1;
    const int64_t sweeps = other.bytes > held ? bands : 1;
    return {banded.bytes * double(waves_along) + other.bytes * double(sweeps),
            double(group * banded.rows_per_tile + wave_other * other.rows_per_tile)};
}

}  // namespace

// Of the groups of a problem, one stands for all.
Raster pick_raster(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const ArchSpec& arch) {
    const int64_t rows_m = int64_t(c.block_m) * c.cluster_m, rows_n = int64_t(c.block_n) * c.cluster_n;
    const GroupRows group = group_rows(shape);
    const Side m{ceil_div(group.rows, rows_m), rows_m, double(group.rows) * double(shape.k)};
    const Side n{ceil_div(shape.n, rows_n), rows_n, double(shape.n) * double(shape.k)};
    const int64_t slots = std::max(1, arch.sm_count / (c.cluster_m * c.cluster_n));
    Raster best{};
    double best_rows = 0;
    for (const bool along_n : {false, true}) {
        const Side& banded = along_n ? n : m;
        for (const int64_t width : kWidths) {
            if (width > 1 && width / 2 >= banded.tiles) break;  // the same order as the width before
            const Candidate seen = assess(banded, along_n ? m : n, width, arch, slots);
            const bool first = best.args.group == 0;
            const bool fewer_rows = seen.operand_bytes == best.operand_bytes && seen.wave_rows < best_rows;
            if (first || seen.operand_bytes < best.operand_bytes || fewer_rows) {
                best = {{uint32_t(width), along_n}, seen.operand_bytes};
                best_rows = seen.wave_rows;
            }
        }
    }
    best.operand_bytes *= double(group.count);
    return best;
}

}  // namespace deep_gemm::plan
