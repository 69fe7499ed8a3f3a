// Psum grouping: the entry of a group is the row where it ends, in one matrix for all; it starts at the end of the group
// before it, rounded up. So its start needs no more than one other entry, whatever came before.
#pragma once

#include <deep_gemm/schedule/group_walk.cuh>

namespace deep_gemm {

class PsumRows {
  public:
    static constexpr TileOrder kOrder = TileOrder::kBanded;

    // Ends past the matrix, or below zero, are cut to it: no layout makes the kernel leave its buffers.
    DG_DEVICE void look_at(const GroupArgs& groups, uint32_t group, uint32_t m) {
        const bool exists = group < groups.count;
        const uint32_t end = exists ? row_of(groups.layout[group], m) : 0;
        const uint32_t before = exists && group > 0 ? row_of(groups.layout[group - 1], m) : 0;
        const uint32_t first = align_up(before, groups.alignment);
        first_ = first < end ? first : 0;
        end_ = first < end ? end : 0;
    }
    DG_DEVICE GroupRows mine(const GroupArgs& groups, uint32_t m) const { return rows(first_, end_, groups, m); }
    DG_DEVICE GroupRows of(uint32_t lane, const GroupArgs& groups, uint32_t m) const {
        return rows(__shfl_sync(kAllLanes, first_, lane), __shfl_sync(kAllLanes, end_, lane), groups, m);
    }

  private:
    DG_DEVICE static uint32_t row_of(int32_t entry, uint32_t m) { return min_of<uint32_t>(max_of(entry, 0), m); }
    DG_DEVICE static GroupRows rows(uint32_t first, uint32_t end, const GroupArgs& groups, uint32_t m) {
        return {first, end, min_of(align_up(end, groups.stored_alignment), m)};
    }

    uint32_t first_, end_;  // 0, 0: no rows
};

template <int kBlockM, int kBlockN, int kClusterN>
using PsumSchedule = GroupWalk<kBlockM, kBlockN, kClusterN, PsumRows>;

}  // namespace deep_gemm
