// K grouping: all tiles of D of one group after those of another; which part of K a group has is read on the device. Clusters
// are given to tiles whole, and a group's tiles are counted in clusters: none has CTAs of two groups.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/address.cuh>
#include <deep_gemm/ptx/nanosleep.cuh>
#include <deep_gemm/schedule/raster.cuh>

namespace deep_gemm {

// Extents of one group's D, and of K over all groups.
struct KGroupedExtents {
    uint32_t m, n, k;
};

// What a tile of 256x128 takes, in nanoseconds, in each 128 of K whatever the type, and once (docs/sm90-fp8-gemm.md, "K groups").
// Roughly: for starting late alone.
struct TileTime {
    uint32_t per_128_of_k, once;
};

// Every lane of a warp walks it together. A group without K has tiles all the same: their D is C, or zero. Parts of K start and
// end at multiples of kStep and within K, whatever the layout says: no layout makes the kernel leave its buffers.
template <int kBlockM, int kBlockN, int kClusterM, int kClusterN, int kStep>
class KGroupedSchedule {
  public:
    DG_DEVICE KGroupedSchedule(const KGroupedExtents& extents, const RasterArgs& raster, uint32_t cluster_rank,
                               const GroupArgs& groups)
        : groups_(groups),
          m_(extents.m),
          k_(extents.k),
          raster_(raster_of_matrix<kBlockM * kClusterM, kBlockN * kClusterN>(raster, extents.m, extents.n)),
          index_(blockIdx.x / kClusterSize),
          rank_m_(cluster_rank % kClusterM),
          rank_n_(cluster_rank / kClusterM) {}

    // Ahead of the first tile, by the warp that loads. All tiles of a group take as long, so all clusters would store theirs together,
    // and wait for L2 together. If some get a tile less than others, they have its time to spare: each starts at another point of it. That
    // is right where groups have about as much K; where not, a 64th of the whole is asked for at most (nanosleep may take twice that).
    DG_DEVICE void start_late(const TileTime& time) const {
        constexpr float kMost = 1e6f;  // of nanosleep
        const uint32_t clusters = gridDim.x / kClusterSize, tiles = raster_.size() * groups_.count;
        const uint32_t full_rounds = tiles / clusters, with_more = tiles - full_rounds * clusters;
        if (full_rounds == 0 || with_more == 0 || index_ < with_more) return;
        const uint32_t k = min_of(holds_ends() ? entry(groups_.count - 1) : sum_of_sizes(0, groups_.count), k_);
        const float mean_k = static_cast<float>(k) / groups_.count;
        const float tile = (mean_k / 128 * time.per_128_of_k + time.once) * (kBlockM * kBlockN) / (256 * 128);
        const float spare = tile * min_of(full_rounds / 64.0f, 1.0f);
        ptx::nanosleep(static_cast<uint32_t>(min_of(spare * (index_ - with_more) / (clusters - with_more), kMost)));
    }

    DG_DEVICE bool next(Tile& tile) {
        const uint32_t passed = raster_.divisors.all.quotient(index_);
        if (passed >= groups_.count - group_) return false;
        index_ -= passed * raster_.size();
        pass_groups(passed);
        const TileCoord cluster_tile = raster_.tile(index_);
        tile.m_idx = (cluster_tile.m_idx * kClusterM + rank_m_) * kBlockM;
        tile.n_idx = (cluster_tile.n_idx * kClusterN + rank_n_) * kBlockN;
        tile.m_end = m_;
        tile.group = group_;
        find_part(tile);
        index_ += gridDim.x / kClusterSize;
        return true;
    }

  private:
    static constexpr uint32_t kClusterSize = kClusterM * kClusterN;
    static constexpr uint32_t kAllLanes = 0xffffffff;

    DG_DEVICE bool holds_ends() const { return groups_.alignment != 0; }

    // An entry of the layout, not below zero; sizes are whole steps.
    DG_DEVICE uint32_t entry(uint32_t group) const {
        const uint32_t value = max_of(groups_.layout[group], 0);
        return holds_ends() ? min_of(value, k_) : value / kStep * kStep;
    }

    // Of `count` groups, the lanes together: 32 at a time.
    DG_DEVICE uint32_t sum_of_sizes(uint32_t first, uint32_t count) const {
        uint32_t sum = 0;
        for (uint32_t i = ptx::lane_id(); i < count; i += 32) sum += entry(first + i);
        return __reduce_add_sync(kAllLanes, sum);
    }

    // Where sizes are given, a group's start is the sum of those before.
    DG_DEVICE void pass_groups(uint32_t count) {
        if (count == 0) return;
        if (!holds_ends()) k_idx_ += sum_of_sizes(group_, count);
        group_ += count;
    }

    DG_DEVICE void find_part(Tile& tile) const {
        const uint32_t last = entry(group_);
        if (holds_ends()) {
            tile.k_idx = min_of(align_up(group_ > 0 ? entry(group_ - 1) : 0, groups_.alignment), k_);
            tile.k = last > tile.k_idx ? last - tile.k_idx : 0;
        } else {
            tile.k_idx = min_of(k_idx_, k_);
            tile.k = min_of(last, k_ - tile.k_idx);
        }
    }

    const GroupArgs& groups_;
    const uint32_t m_, k_;
    const BandRaster<HostRasterDivisors> raster_;
    uint32_t index_;  // of the cluster's next tile, counted from the first of `group_`
    uint32_t group_ = 0;
    uint32_t k_idx_ = 0;  // where sizes are given: start of `group_`
    uint32_t rank_m_, rank_n_;
};

}  // namespace deep_gemm
