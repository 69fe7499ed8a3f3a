#include "plan/raster.h"

#include <algorithm>

#include "plan/group_shape.h"

namespace deep_gemm::plan {

namespace {

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

Raster pick_raster(const RasterSide& side_m, const RasterSide& side_n, int cluster, const ArchSpec& arch) {
    const auto side_of = [](const RasterSide& side) {
        return Side{ceil_div(side.rows, side.rows_per_tile), side.rows_per_tile,
                    double(side.rows) * side.bytes_per_row};
    };
    const Side m = side_of(side_m), n = side_of(side_n);
    const int64_t slots = resident_clusters(arch.sm_count, cluster);
    const Candidate along_m = assess(m, n, kRasterGroup, arch, slots),
                    along_n = assess(n, m, kRasterGroup, arch, slots);
    const bool fewer_bytes = along_n.operand_bytes < along_m.operand_bytes;
    const bool fewer_rows =
        along_n.operand_bytes == along_m.operand_bytes && along_n.wave_rows < along_m.wave_rows;
    const bool bands_along_n = fewer_bytes || fewer_rows;
    return {{uint32_t(kRasterGroup), bands_along_n}, (bands_along_n ? along_n : along_m).operand_bytes};
}

Raster pick_raster(const Fp8GemmConfig& c, const Fp8GemmShape& shape, const ArchSpec& arch) {
    const GroupRows group = group_rows(shape.m, shape.groups);
    Raster raster = pick_raster({group.rows, int64_t(c.block_m) * c.cluster_m, double(shape.k)},
                                {shape.n, int64_t(c.block_n) * c.cluster_n, double(shape.k)},
                                c.cluster_m * c.cluster_n, arch);
    raster.operand_bytes *= double(group.count);
    return raster;
}

}  // namespace deep_gemm::plan
