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
//
// Up to eight groups come by falling K, and every second round of tiles is dealt out backwards: no cluster then gets the longer tiles
// of each round, and the last ones are the shortest. Sixteen groups lost by it (docs/sm90-fp8-gemm.md, "Order of groups of K").
template <int kBlockM, int kBlockN, int kClusterM, int kClusterN, int kStep>
class KGroupedSchedule {
  public:
    DG_DEVICE KGroupedSchedule(const KGroupedExtents& extents, const RasterArgs& raster, uint32_t cluster_rank,
                               const GroupArgs& groups)
        : groups_(groups),
          m_(extents.m),
          k_(extents.k),
          raster_(raster_of_matrix<kBlockM * kClusterM, kBlockN * kClusterN>(raster, extents.m, extents.n)),
          index_(cluster()),
          rank_m_(cluster_rank % kClusterM),
          rank_n_(cluster_rank / kClusterM),
          is_ordered_(groups.count <= kMostOrderedGroups),
          step_(is_ordered_ ? 2 * (clusters() - cluster()) - 1 : clusters()),
          place_(is_ordered_ ? place_by_falling_k() : 0) {
        if (groups.count != 0) turn_to(0);
    }

    // Ahead of the first tile, by the warp that loads. All tiles of a group take as long, so all clusters would store theirs together,
    // and wait for L2 together. If some get a tile less than others, they have its time to spare: each starts at another point of it. In
    // groups as they are the mean tile's is taken for it. A 64th of the whole is asked for at most (nanosleep may take twice that).
    DG_DEVICE void start_late(const TileTime& time) const {
        constexpr float kMost = 1e6f;  // of nanosleep
        const uint32_t tiles = raster_.size() * groups_.count;
        const uint32_t full_rounds = tiles / clusters(), with_more = tiles - full_rounds * clusters();
        const bool backwards = is_ordered_ && full_rounds % 2 == 1;  // the round that not all have
        const uint32_t place = backwards ? clusters() - 1 - cluster() : cluster();
        if (full_rounds == 0 || with_more == 0 || place < with_more) return;
        const float k = is_ordered_ ? static_cast<float>(k_at_most(group_at(groups_.count - 1))) : mean_k();
        const float tile = (k / 128 * time.per_128_of_k + time.once) * (kBlockM * kBlockN) / (256 * 128);
        const float spare = tile * min_of(full_rounds / 64.0f, 1.0f);
        ptx::nanosleep(static_cast<uint32_t>(min_of(spare * (place - with_more) / (clusters() - with_more), kMost)));
    }

    DG_DEVICE bool next(Tile& tile) {
        const uint32_t passed = raster_.divisors.all.quotient(index_);
        if (passed >= groups_.count - position_) return false;
        index_ -= passed * raster_.size();
        if (passed != 0) turn_to(position_ + passed);
        const TileCoord cluster_tile = raster_.tile(index_);
        tile.m_idx = (cluster_tile.m_idx * kClusterM + rank_m_) * kBlockM;
        tile.n_idx = (cluster_tile.n_idx * kClusterN + rank_n_) * kBlockN;
        tile.m_end = m_;
        tile.group = group_;
        tile.k_idx = part_.k_idx;
        tile.k = part_.k;
        index_ += step_;
        if (is_ordered_) step_ = 2 * clusters() - step_;
        return true;
    }

  private:
    static constexpr uint32_t kClusterSize = kClusterM * kClusterN;
    static constexpr uint32_t kAllLanes = 0xffffffff;
    static constexpr uint32_t kMostOrderedGroups = 8;

    DG_DEVICE static uint32_t cluster() { return blockIdx.x / kClusterSize; }
    DG_DEVICE static uint32_t clusters() { return gridDim.x / kClusterSize; }
    DG_DEVICE bool holds_ends() const { return groups_.alignment != 0; }

    // An entry of the layout, not below zero; sizes are whole steps.
    DG_DEVICE uint32_t entry(uint32_t group) const {
        const uint32_t value = max_of(groups_.layout[group], 0);
        return holds_ends() ? min_of(value, k_) : value / kStep * kStep;
    }

    // Of `count` groups, the lanes together: 32 at a time. Not unrolled: each role walks, and the loop is seldom run twice.
    DG_DEVICE uint32_t sum_of_sizes(uint32_t first, uint32_t count) const {
        uint32_t sum = 0;
#pragma unroll 1
        for (uint32_t i = ptx::lane_id(); i < count; i += 32) sum += entry(first + i);
        return __reduce_add_sync(kAllLanes, sum);
    }

    struct Part {
        uint32_t k_idx, k;
    };

    // Where sizes are given, `before` is the sum of those before the group's.
    DG_DEVICE Part part_of(uint32_t group, uint32_t before) const {
        const uint32_t last = entry(group);
        if (!holds_ends()) {
            const uint32_t start = min_of(before, k_);
            return {start, min_of(last, k_ - start)};
        }
        const uint32_t start = min_of(align_up(group > 0 ? entry(group - 1) : 0, groups_.alignment), k_);
        return {start, last > start ? last - start : 0};
    }
    // Without a look at other groups: of sizes that lie, some may have less.
    DG_DEVICE uint32_t k_at_most(uint32_t group) const { return part_of(group, 0).k; }

    DG_DEVICE float mean_k() const {
        const uint32_t k = holds_ends() ? entry(groups_.count - 1) : sum_of_sizes(0, groups_.count);
        return static_cast<float>(min_of(k, k_)) / groups_.count;
    }

    // Of lane l: the place of group l.
    DG_DEVICE uint32_t place_by_falling_k() const {
        const uint32_t lane = ptx::lane_id();
        const bool is_group = lane < groups_.count;
        const uint32_t k = is_group ? k_at_most(lane) : 0;
        uint32_t place = 0;
#pragma unroll 1
        for (uint32_t other = 0; other < groups_.count; ++other) {
            const uint32_t other_k = __shfl_sync(kAllLanes, k, other);
            place += other_k > k || (other_k == k && other < lane);
        }
        return is_group ? place : kAllLanes;
    }
    DG_DEVICE uint32_t group_at(uint32_t position) const {
        return is_ordered_ ? __ffs(__ballot_sync(kAllLanes, place_ == position)) - 1 : position;
    }

    DG_DEVICE void turn_to(uint32_t position) {
        const uint32_t group = group_at(position);
        uint32_t before = 0;
        if (!holds_ends()) before = is_ordered_ ? sum_of_sizes(0, group) : part_.k_idx + sum_of_sizes(group_, group - group_);
        part_ = part_of(group, before);
        position_ = position;
        group_ = group;
    }

    const GroupArgs& groups_;
    const uint32_t m_, k_;
    const BandRaster<HostRasterDivisors> raster_;
    uint32_t index_;  // of the cluster's next tile, counted from the first of `group_`
    uint32_t rank_m_, rank_n_;
    bool is_ordered_;                    // by falling K
    uint32_t step_;                      // to the tile after the next: ordered, by turns 2 * (clusters - cluster) - 1 and 2 * cluster + 1
    uint32_t place_;                     // ordered: of this lane's group
    uint32_t position_ = 0, group_ = 0;  // in the order of groups, and which group it is
    Part part_{};                        // of `group_`
};

}  // namespace deep_gemm
