// The order in which clusters walk the tiles of a matrix, and the tile a CTA takes of its cluster's.
#pragma once

#include <deep_gemm/base/math.h>

namespace deep_gemm {

struct TileCoord {
    uint32_t m_idx;  // first row of the tile
    uint32_t n_idx;  // first column
};

// Walks bands of `group` cluster tiles along M, all of N within a band: a band's rows of A stay in L2 while B streams by.
struct BandRaster {
    uint32_t m_tiles, n_tiles, group;

    DG_DEVICE uint32_t size() const { return m_tiles * n_tiles; }
    DG_DEVICE TileCoord tile(uint32_t index) const {
        const uint32_t band_tiles = group * n_tiles;
        const uint32_t band = index / band_tiles;
        const uint32_t within = index - band * band_tiles;
        const uint32_t rows = min_of(group, m_tiles - band * group);
        const uint32_t n = within / rows;
        return {band * group + (within - n * rows), n};
    }
};

}  // namespace deep_gemm
