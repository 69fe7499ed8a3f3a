// Contiguous grouping: the tiles of one M x N matrix, each with the group of its rows. Groups start at aligned rows, so a tile
// (whose height divides the alignment) belongs to one group: that of its first row, for real rows come first.
#pragma once

#include <deep_gemm/schedule/dense.cuh>

namespace deep_gemm {

// Clusters lie along N: their CTAs share rows, hence the group.
template <int kBlockM, int kBlockN, int kClusterN>
class ContiguousSchedule : public DenseSchedule<kBlockM, kBlockN, 1, kClusterN> {
  public:
    DG_DEVICE ContiguousSchedule(uint32_t m, uint32_t n, const RasterArgs& raster, uint32_t cluster_rank,
                                 const GroupArgs& groups)
        : Base(m, n, raster, cluster_rank), groups_(groups) {}

    DG_DEVICE bool next(Tile& tile) {
        if (!Base::next(tile)) return false;
        // A group that does not exist is none: no layout makes the kernel leave its buffers.
        const int32_t group = groups_.layout[tile.m_idx];
        tile.group = group < static_cast<int32_t>(groups_.count) ? group : -1;
        return true;
    }

  private:
    using Base = DenseSchedule<kBlockM, kBlockN, 1, kClusterN>;
    const GroupArgs& groups_;
};

}  // namespace deep_gemm
