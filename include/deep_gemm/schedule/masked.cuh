// Masked grouping: the entry of a group is the number of its wanted rows, from the first row of its own matrix on.
#pragma once

#include <deep_gemm/schedule/group_walk.cuh>

namespace deep_gemm {

class MaskedRows {
  public:
    static constexpr TileOrder kOrder = TileOrder::kMFirst;

    // Counts past the capacity, or below zero, are cut to it: no count makes the kernel leave its buffers.
    DG_DEVICE void look_at(const GroupArgs& groups, uint32_t group, uint32_t m) {
        const int32_t wanted = group < groups.count ? groups.layout[group] : 0;
        count_ = min_of<uint32_t>(max_of(wanted, 0), m);
    }
    DG_DEVICE GroupRows mine(const GroupArgs&, uint32_t) const { return {0, count_, count_}; }
    DG_DEVICE GroupRows of(uint32_t lane, const GroupArgs&, uint32_t) const {
        const uint32_t count = __shfl_sync(kAllLanes, count_, lane);
        return {0, count, count};
    }

  private:
    uint32_t count_;
};

template <int kBlockM, int kBlockN, int kClusterN>
using MaskedSchedule = GroupWalk<kBlockM, kBlockN, kClusterN, MaskedRows>;

}  // namespace deep_gemm
