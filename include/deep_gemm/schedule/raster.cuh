// The order in which clusters walk the tiles of a matrix, and the tile a CTA takes of its cluster's.
#pragma once

#include <deep_gemm/base/math.h>

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

// Walks bands of `group` tiles along one dimension, all of the other within a band: the band's operand stays in L2 while
// the other one streams by.
struct BandRaster {
    uint32_t m_tiles, n_tiles, group;
    bool bands_along_n;

    DG_DEVICE uint32_t size() const { return m_tiles * n_tiles; }
    DG_DEVICE TileCoord tile(uint32_t index) const {
        const uint32_t banded_tiles = bands_along_n ? n_tiles : m_tiles;
        const uint32_t other_tiles = bands_along_n ? m_tiles : n_tiles;
        const uint32_t band = index / (group * other_tiles);
        const uint32_t within = index - band * group * other_tiles;
        const uint32_t width = min_of(group, banded_tiles - band * group);
        const uint32_t other = within / width;
        const uint32_t banded = band * group + (within - other * width);
        return bands_along_n ? TileCoord{other, banded} : TileCoord{banded, other};
    }
};

}  // namespace deep_gemm
