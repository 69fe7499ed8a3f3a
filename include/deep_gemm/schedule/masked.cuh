// Masked grouping: for each group the tiles that hold wanted rows, group after group; how many there are is read on the
// device. Within a group M goes first: tiles that share weights follow one another.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/address.cuh>
#include <deep_gemm/schedule/raster.cuh>

namespace deep_gemm {

// Every lane of a warp walks it together. Groups are looked at 32 at a time: lane l keeps the rows of group `first_ + l` and
// the number of cluster tiles up to its end. Clusters lie along N: their CTAs share rows, hence the group.
template <int kBlockM, int kBlockN, int kClusterN>
class MaskedSchedule {
  public:
    DG_DEVICE MaskedSchedule(uint32_t m, uint32_t n, uint32_t cluster_rank, const GroupArgs& groups)
        : groups_(groups),
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
        const uint32_t rows = __shfl_sync(kAllLanes, rows_, lane);
        const uint32_t m_tiles = ceil_div<uint32_t>(rows, kBlockM);
        const uint32_t within = index_ - (__shfl_sync(kAllLanes, tiles_end_, lane) - m_tiles * n_tiles_);
        const uint32_t n_tile = within / m_tiles;
        tile.m_idx = (within - n_tile * m_tiles) * kBlockM;
        tile.n_idx = (n_tile * kClusterN + rank_n_) * kBlockN;
        tile.m_end = rows;
        tile.group = first_ + lane;
        index_ += gridDim.x / kClusterN;
        return true;
    }

  private:
    static constexpr uint32_t kAllLanes = 0xffffffff;

    // Counts past the capacity, or below zero, are cut to it: no count makes the kernel leave its buffers.
    DG_DEVICE void look_at(uint32_t first) {
        const uint32_t lane = ptx::lane_id();
        first_ = first;
        const int32_t wanted = first + lane < groups_.count ? groups_.layout[first + lane] : 0;
        rows_ = min_of<uint32_t>(max_of(wanted, 0), m_);
        tiles_end_ = ceil_div<uint32_t>(rows_, kBlockM) * n_tiles_;
#pragma unroll
        for (uint32_t distance = 1; distance < 32; distance *= 2) {
            const uint32_t below = __shfl_up_sync(kAllLanes, tiles_end_, distance);
            if (lane >= distance) tiles_end_ += below;
        }
    }

    const GroupArgs& groups_;
    const uint32_t m_, n_tiles_;
    uint32_t index_;  // of the cluster's next tile, counted from the start of the 32 groups
    uint32_t rank_n_;
    uint32_t first_;
    uint32_t rows_, tiles_end_;
};

}  // namespace deep_gemm
