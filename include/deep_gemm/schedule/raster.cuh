// The order in which clusters walk the tiles of a matrix, and the tile a CTA takes of its cluster's.
#pragma once

#include <deep_gemm/base/kernel_args.h>

namespace deep_gemm {

// A place in the matrix of tiles, counted in tiles.
struct TileCoord {
    uint32_t m_idx, n_idx;
};

// A tile of a group: the first row and column, and where the group's rows end.
struct Tile {
    uint32_t m_idx, n_idx;
    uint32_t m_end;      // rows from here on are not this tile's to write
    uint32_t zero_from;  // kMasked, kPsum: rows from here on have no product; of kPsum, D is zero there
    int32_t group;       // 0 for dense problems; -1: rows of no group, D is zero there
    uint32_t k_idx, k;   // kKGrouped: the group's part of K, where it starts and how long it is
};

// A divisor that is known on the device alone.
struct DeviceDivisor {
    uint32_t value;
    DG_DEVICE uint32_t quotient(uint32_t n) const { return n / value; }
};

// The divisors of a matrix of tiles that is known on the device alone.
struct DeviceRasterDivisors {
    DeviceDivisor band;
    DG_DEVICE DeviceDivisor of_width(uint32_t width) const { return {width}; }
};

// The same from the host.
struct HostRasterDivisors : RasterDivisors {
    DG_DEVICE Divisor of_width(uint32_t value) const { return value == width.value ? width : last_width; }
};

// Walks bands of `group` tiles along one dimension, all of the other within a band: the band's operand stays in L2 while
// the other one streams by.
template <typename Divisors>
struct BandRaster {
    uint32_t m_tiles, n_tiles, group;
    bool bands_along_n;
    Divisors divisors;

    DG_DEVICE uint32_t size() const { return m_tiles * n_tiles; }
    DG_DEVICE TileCoord tile(uint32_t index) const {
        const uint32_t band = divisors.band.quotient(index);
        const uint32_t within = index - band * divisors.band.value;
        const auto width = divisors.of_width(min_of(group, (bands_along_n ? n_tiles : m_tiles) - band * group));
        const uint32_t other = width.quotient(within);
        const uint32_t banded = band * group + (within - other * width.value);
        return bands_along_n ? TileCoord{other, banded} : TileCoord{banded, other};
    }
};

// Of so many cluster tiles, which the host did not know.
DG_DEVICE BandRaster<DeviceRasterDivisors> raster_on_device(const RasterArgs& args, uint32_t m_tiles, uint32_t n_tiles) {
    const uint32_t band = args.group * (args.bands_along_n ? m_tiles : n_tiles);
    return {m_tiles, n_tiles, args.group, args.bands_along_n, {{band}}};
}

// Of an M x N matrix in cluster tiles of kRows x kColumns, as raster_over() was told.
template <int kRows, int kColumns>
DG_DEVICE BandRaster<HostRasterDivisors> raster_of_matrix(const RasterArgs& args, uint32_t m, uint32_t n) {
    return {ceil_div<uint32_t>(m, kRows), ceil_div<uint32_t>(n, kColumns), args.group, args.bands_along_n, {args.divisors}};
}

}  // namespace deep_gemm
