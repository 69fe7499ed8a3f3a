// Schedules of layouts with an entry a group (masked, psum): for each group the tiles that hold its rows, group after group;
// how many there are is read on the device. What an entry means is a policy, `Rows`:
//   of(groups, group, m)   the rows of a group that exists
//   kOrder                 the order of the tiles of a group
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/address.cuh>
#include <deep_gemm/schedule/raster.cuh>
#include <deep_gemm/schedule/warp_scan.cuh>

namespace deep_gemm {

// Rows of D that belong to a group: [first, end) have a product, [end, stored_end) are padding that is written as zeros.
struct GroupRows {
    uint32_t first, end, stored_end;
};

enum class TileOrder : uint8_t {
    kMFirst,  // tiles that share weights follow one another: for groups of few tiles along M
    kBanded,  // as a matrix of its own
};

// Every lane of a warp walks it together. Groups are looked at 32 at a time: lane l keeps the number of cluster tiles up to
// the end of group `first_ + l`. The rows of a tile's group are read again: that costs math warps no register between tiles.
// Clusters lie along N: their CTAs share rows, hence the group.
template <int kBlockM, int kBlockN, int kClusterN, typename Rows>
class GroupWalk {
  public:
    DG_DEVICE GroupWalk(uint32_t m, uint32_t n, const RasterArgs& raster, uint32_t cluster_rank, const GroupArgs& groups)
        : groups_(groups),
          raster_(raster),
          m_(m),
          n_tiles_(ceil_div<uint32_t>(n, kBlockN * kClusterN)),
          index_(blockIdx.x / kClusterN),
          rank_n_(cluster_rank) {
        look_at(0);
    }

    DG_DEVICE bool next(Tile& tile) {
        uint32_t ends_later = __ballot_sync(kAllLanes, index_ < tiles_end_);
        while (ends_later == 0) {
            if (first_ + 32 >= groups_.count) return false;
            index_ -= __shfl_sync(kAllLanes, tiles_end_, 31);
            look_at(first_ + 32);
            ends_later = __ballot_sync(kAllLanes, index_ < tiles_end_);
        }
        const uint32_t lane = __ffs(ends_later) - 1;
        const GroupRows rows = Rows::of(groups_, first_ + lane, m_);
        const uint32_t m_tiles = ceil_div<uint32_t>(rows.stored_end - rows.first, kBlockM);
        const uint32_t within = index_ - (__shfl_sync(kAllLanes, tiles_end_, lane) - m_tiles * n_tiles_);
        const TileCoord at = coord(within, m_tiles);
        tile.m_idx = rows.first + at.m_idx * kBlockM;
        tile.n_idx = (at.n_idx * kClusterN + rank_n_) * kBlockN;
        tile.m_end = rows.stored_end;
        tile.zero_from = rows.end;
        tile.group = first_ + lane;
        index_ += gridDim.x / kClusterN;
        return true;
    }

  private:
    static constexpr uint32_t kAllLanes = 0xffffffff;

    DG_DEVICE TileCoord coord(uint32_t within, uint32_t m_tiles) const {
        if constexpr (Rows::kOrder == TileOrder::kBanded)
            return raster_on_device(raster_, m_tiles, n_tiles_).tile(within);
        else if (m_tiles == 1)  // needs none of the divisions, of some 200 cycles each
            return {0, within};
        else
            return {within % m_tiles, within / m_tiles};
    }

    DG_DEVICE void look_at(uint32_t first) {
        const uint32_t lane = ptx::lane_id();
        first_ = first;
        const GroupRows rows = first + lane < groups_.count ? Rows::of(groups_, first + lane, m_) : GroupRows{0, 0, 0};
        tiles_end_ = inclusive_sum(ceil_div<uint32_t>(rows.stored_end - rows.first, kBlockM) * n_tiles_);
    }

    const GroupArgs& groups_;
    const RasterArgs& raster_;
    const uint32_t m_, n_tiles_;
    uint32_t index_;  // of the cluster's next tile, counted from the start of the 32 groups
    uint32_t rank_n_;
    uint32_t first_;
    uint32_t tiles_end_;
};

}  // namespace deep_gemm
