// Contiguous grouping: the tiles of one M x N matrix, each with the group of its rows. Groups start at aligned rows, where real
// rows come first, so a block of the alignment belongs to one group: that of its first row. Blocks of one group that follow one
// another are a run, and tiles are counted from the start of a run. No tile has rows of two runs, and the CTAs share out all of them.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/address.cuh>
#include <deep_gemm/schedule/raster.cuh>
#include <deep_gemm/schedule/warp_scan.cuh>

namespace deep_gemm {

// Every lane of a warp walks it together. Each lane counts the tiles of the runs that end in its share of the blocks. Clusters lie
// along N: their CTAs share rows, hence the group.
template <int kBlockM, int kBlockN, int kClusterN>
class ContiguousSchedule {
  public:
    DG_DEVICE ContiguousSchedule(uint32_t m, uint32_t n, const RasterArgs& raster, uint32_t cluster_rank,
                                 const GroupArgs& groups)
        : groups_(groups),
          m_(m),
          index_(blockIdx.x / kClusterN),
          rank_n_(cluster_rank) {
        const uint32_t m_tiles = divides_blocks() ? ceil_div<uint32_t>(m, kBlockM) : count_tiles();
        raster_ = raster_on_device(raster, m_tiles, ceil_div<uint32_t>(n, kBlockN * kClusterN));
    }

    // The next tile of this CTA; false when there is none. All CTAs of a cluster get the same answer.
    DG_DEVICE bool next(Tile& tile) {
        if (index_ >= raster_.size()) return false;
        const TileCoord at = raster_.tile(index_);
        tile.n_idx = (at.n_idx * kClusterN + rank_n_) * kBlockN;
        if (divides_blocks())
            place(tile, 0, m_, at.m_idx);
        else
            place_in_run(tile, at.m_idx);
        index_ += gridDim.x / kClusterN;
        return true;
    }

  private:
    static constexpr uint32_t kAllLanes = 0xffffffff;
    static constexpr int32_t kPastTheEnd = -2;  // what group_of returns for no row

    // Then tiles counted from row 0 are those of runs, too.
    DG_DEVICE bool divides_blocks() const { return groups_.alignment % kBlockM == 0; }
    DG_DEVICE uint32_t blocks() const { return ceil_div(m_, groups_.alignment); }
    // Of the blocks, what a lane counts.
    DG_DEVICE uint32_t share() const { return ceil_div(blocks(), 32u); }

    // A group that does not exist is none: no layout makes the kernel leave its buffers.
    DG_DEVICE int32_t group_of(uint32_t row) const {
        const int32_t group = groups_.layout[row];
        return static_cast<uint32_t>(group) < static_cast<uint32_t>(groups_.count) ? group : -1;
    }
    DG_DEVICE int32_t group_of_block(uint32_t block) const {
        return block < blocks() ? group_of(block * groups_.alignment) : kPastTheEnd;
    }

    // Tiles of the run of blocks [start, end).
    DG_DEVICE uint32_t tiles_of(uint32_t start, uint32_t end) const {
        return ceil_div<uint32_t>(min_of(end * groups_.alignment, m_) - start * groups_.alignment, kBlockM);
    }

    DG_DEVICE uint32_t count_tiles() {
        const uint32_t lane = ptx::lane_id(), first = lane * share(), last = min_of(first + share(), blocks());
        uint32_t first_end = 0, start = 0;  // where the first run ends, and the last one starts; 0: in another share
        uint32_t tiles = 0;
        int32_t group = group_of_block(first);
#pragma unroll 4
        for (uint32_t block = first; block < last; ++block) {
            const int32_t following = group_of_block(block + 1);
            if (following != group) {
                if (start == 0)
                    first_end = block + 1;
                else
                    tiles += tiles_of(start, block + 1);
                start = block + 1;
            }
            group = following;
        }
        run_start_ = __shfl_up_sync(kAllLanes, inclusive_max(start), 1);
        if (lane == 0) run_start_ = 0;
        if (first_end > 0) tiles += tiles_of(run_start_, first_end);
        tiles_end_ = inclusive_sum(tiles);
        return __shfl_sync(kAllLanes, tiles_end_, 31);
    }

    // The tile `index` of a run of rows [first, end). One inside of a block may have none but padding: real rows come first.
    DG_DEVICE void place(Tile& tile, uint32_t first, uint32_t end, uint32_t index) const {
        tile.m_idx = first + index * kBlockM;
        tile.m_end = min_of(tile.m_idx + kBlockM, end);
        const bool in_one_block = tile.m_idx / groups_.alignment == (tile.m_end - 1) / groups_.alignment;
        tile.group = group_of(in_one_block ? tile.m_idx : first);
    }

    DG_DEVICE void place_in_run(Tile& tile, uint32_t index) const {
        const uint32_t lane = __ffs(__ballot_sync(kAllLanes, index < tiles_end_)) - 1;
        const uint32_t passed = __shfl_sync(kAllLanes, tiles_end_, max_of(lane, 1u) - 1);
        if (lane > 0) index -= passed;
        uint32_t start = __shfl_sync(kAllLanes, run_start_, lane);
        for (uint32_t base = lane * share(); base < blocks(); base += 32) {
            const uint32_t block = base + ptx::lane_id();
            uint32_t ends = __ballot_sync(kAllLanes, group_of_block(block) != group_of_block(block + 1));
            for (; ends != 0; ends &= ends - 1) {
                const uint32_t end = base + __ffs(ends), tiles = tiles_of(start, end);
                if (index < tiles) return place(tile, start * groups_.alignment, min_of(end * groups_.alignment, m_), index);
                index -= tiles;
                start = end;
            }
        }
        place(tile, 0, m_, 0);  // not reached, unless the layout is written to meanwhile
    }

    const GroupArgs& groups_;
    const uint32_t m_;
    BandRaster<DeviceRasterDivisors> raster_;
    uint32_t index_;
    uint32_t rank_n_;
    // Of this lane's share of the blocks: the tiles of runs that end in it or before it, and the block where the run starts that
    // it begins in.
    uint32_t tiles_end_, run_start_;
};

}  // namespace deep_gemm
