// Contiguous grouping: the tiles of one M x N matrix, each with the group of its rows. Groups start at aligned rows, where real
// rows come first, so a block of the alignment belongs to one group: that of its first row. A tile whose height does not divide the
// alignment is cut where its blocks differ, and its parts are tiles of their own, one after the other, for the same CTA. It may begin
// inside of a block, at a row of no group: then the rest of that block has none either.
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
        if (row_ >= end_) {
            if (!Base::next(whole_)) return false;
            row_ = whole_.m_idx;
            end_ = min_of<uint32_t>(whole_.m_idx + kBlockM, this->m_);
        }
        tile = whole_;
        tile.m_idx = row_;
        tile.group = group_of(row_);
        row_ = next_block(row_);
        while (row_ < end_ && group_of(row_) == tile.group) row_ = next_block(row_);
        row_ = min_of(row_, end_);
        tile.m_end = row_;
        return true;
    }

  private:
    using Base = DenseSchedule<kBlockM, kBlockN, 1, kClusterN>;

    DG_DEVICE uint32_t next_block(uint32_t row) const { return align_up(row + 1, groups_.alignment); }
    // A group that does not exist is none: no layout makes the kernel leave its buffers.
    DG_DEVICE int32_t group_of(uint32_t row) const {
        const int32_t group = groups_.layout[row];
        return group < static_cast<int32_t>(groups_.count) ? group : -1;
    }

    const GroupArgs& groups_;
    Tile whole_;                  // the tile that is cut
    uint32_t row_ = 0, end_ = 0;  // from where on, and up to where, it is still to come
};

}  // namespace deep_gemm
