// Schedules of layouts with an entry a group (masked, psum): for each group the tiles that hold its rows, group after group;
// how many there are is read on the device. What an entry means is a policy, `Rows`:
//   of(groups, group, m)   the rows of a group that exists
//   kOrder                 the order of the tiles of a group
//   kPads                  whether there may be tiles of padding alone
//   kEvensTallRounds       whether tall tiles are left to the fewest clusters that take no more rounds of them
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

// Every lane of a warp walks it together. Groups are looked at 32 at a time: lane l keeps where the cluster tiles of group
// `first_ + l` begin and end. The rows of a tile's group are read again: that costs math warps no register between tiles.
// Clusters lie along N: their CTAs share rows, hence the group.
//
// Of 32 groups those with the most waves in a tile come first. Every cluster then gets about as many of them as any other, and the
// last tiles, which not all clusters have, are the shortest. Their tiles of padding alone come ahead of all others, and are stored
// while the first products are loaded: among the others they would leave some clusters more products than others, 4 where 384 on
// 132 CTAs make 3 (6 groups of ~20 rows, 6144 columns, tiles of 64x96, alignment 128).
template <int kBlockM, int kBlockN, int kClusterN, typename Rows>
class GroupWalk {
  public:
    DG_DEVICE GroupWalk(uint32_t m, uint32_t n, const RasterArgs& raster, uint32_t cluster_rank, const GroupArgs& groups)
        : groups_(groups),
          raster_(raster),
          m_(m),
          n_tiles_(ceil_div<uint32_t>(n, kBlockN * kClusterN)),
          index_(blockIdx.x / kClusterN),
          rank_n_(cluster_rank),
          clusters_(gridDim.x / kClusterN),
          in_padding_(pads()) {
        look_at(0);
        if constexpr (kEvensRounds) even_rounds();
    }

    DG_DEVICE bool next(Tile& tile) {
        while (index_ >= tiles_)
            if (!look_further()) return false;
        const uint32_t lane = __ffs(__ballot_sync(kAllLanes, tiles_begin_ <= index_ && index_ < tiles_end_)) - 1;
        const GroupRows rows = Rows::of(groups_, first_ + lane, m_);
        const uint32_t within = index_ - __shfl_sync(kAllLanes, tiles_begin_, lane);
        const TileCoord at = coord(within, m_tiles_of(rows));
        tile.m_idx = rows.first + (at.m_idx + (in_padding_ ? product_tiles_of(rows) : 0)) * kBlockM;
        tile.n_idx = (at.n_idx * kClusterN + rank_n_) * kBlockN;
        tile.m_end = rows.stored_end;
        tile.zero_from = rows.end;
        tile.group = first_ + lane;
        index_ += kEvensRounds ? clusters_ : gridDim.x / kClusterN;
        return true;
    }

  private:
    static constexpr uint32_t kAllLanes = 0xffffffff;
    // Tiles of 256 rows, which seldom are of padding alone, have no register for it: the compiler would order their products one
    // after another.
    static constexpr bool kPadsFirst = Rows::kPads && kBlockM < 256;
    static constexpr bool kEvensRounds = Rows::kEvensTallRounds && kBlockM >= 192;

    DG_DEVICE static uint32_t product_tiles_of(const GroupRows& rows) {
        return ceil_div<uint32_t>(rows.end - rows.first, kBlockM);
    }
    // Tiles of a group along M: all of them, or those with a product, or those of padding alone.
    DG_DEVICE uint32_t m_tiles_of(const GroupRows& rows) const {
        if (kPadsFirst && !in_padding_) return product_tiles_of(rows);
        return ceil_div<uint32_t>(rows.stored_end - rows.first, kBlockM) - (kPadsFirst ? product_tiles_of(rows) : 0);
    }

    DG_DEVICE TileCoord coord(uint32_t within, uint32_t m_tiles) const {
        if constexpr (Rows::kOrder == TileOrder::kBanded)
            return raster_on_device(raster_, m_tiles, n_tiles_).tile(within);
        else if (m_tiles == 1)  // needs none of the divisions, of some 200 cycles each
            return {0, within};
        else
            return {within % m_tiles, within / m_tiles};
    }

    // Whether a tile may be of padding alone: not where whole ones end a group.
    DG_DEVICE bool pads() const { return kPadsFirst && kBlockM % groups_.stored_alignment != 0; }

    // Leaves out what clusters it can, as the host does where it knows how many tiles there are. With more than 32 groups no warp knows it at the
    // start; and kernels of low tiles lose by the divisions what they gain.
    DG_DEVICE void even_rounds() {
        if (groups_.count > 32 || tiles_ <= clusters_) return;
        clusters_ = clusters_of_even_rounds(tiles_, clusters_);
        if (index_ >= clusters_) index_ = tiles_;
    }

    // From padding to the products of the same groups, or to the next 32.
    DG_DEVICE bool look_further() {
        if (!in_padding_ && first_ + 32 >= groups_.count) return false;
        index_ -= tiles_;
        const uint32_t first = in_padding_ ? first_ : first_ + 32;
        in_padding_ = !in_padding_ && pads();
        look_at(first);
        return true;
    }

    DG_DEVICE void look_at(uint32_t first) {
        constexpr uint32_t kTileWaves = kBlockM / kWgmmaM;
        const uint32_t lane = ptx::lane_id(), lanes_below = (1u << lane) - 1;
        first_ = first;
        const GroupRows rows = first + lane < groups_.count ? Rows::of(groups_, first + lane, m_) : GroupRows{0, 0, 0};
        const uint32_t m_tiles = m_tiles_of(rows);
        const bool is_whole = m_tiles > 1 || in_padding_;
        const uint32_t waves = is_whole ? kTileWaves : ceil_div<uint32_t>(rows.end - rows.first, kWgmmaM);
        // Groups of whole tiles have one or more along M, all others one.
        const uint32_t whole = waves == kTileWaves ? m_tiles : 0, up_to_mine = inclusive_sum(whole);
        uint32_t before = up_to_mine - whole, placed = __shfl_sync(kAllLanes, up_to_mine, 31);
#pragma unroll
        for (uint32_t fewer = kTileWaves - 1; fewer > 0; --fewer) {
            const uint32_t alike = __ballot_sync(kAllLanes, waves == fewer);
            if (waves == fewer) before = placed + __popc(alike & lanes_below);
            placed += __popc(alike);
        }
        tiles_begin_ = before * n_tiles_;
        tiles_end_ = tiles_begin_ + m_tiles * n_tiles_;
        tiles_ = placed * n_tiles_;
    }

    const GroupArgs& groups_;
    const RasterArgs& raster_;
    const uint32_t m_, n_tiles_;
    uint32_t index_;  // of the cluster's next tile, counted from the start of the 32 groups
    uint32_t rank_n_;
    uint32_t clusters_;  // that share out the tiles
    bool in_padding_;
    uint32_t first_;
    uint32_t tiles_begin_, tiles_end_;  // of this lane's group
    uint32_t tiles_;                    // of all 32
};

}  // namespace deep_gemm
