// Psum grouping: the entry of a group is the row where it ends, in one matrix for all; it starts at the end of the group
// before it, rounded up. So its start needs no more than one other entry, whatever came before.
#pragma once

#include <deep_gemm/schedule/group_walk.cuh>

namespace deep_gemm {

struct PsumRows {
    static constexpr TileOrder kOrder = TileOrder::kBanded;
    static constexpr bool kPads = true;
    static constexpr bool kEvensTallRounds = false;  // its tiles, less alike, are shared out worse by fewer

    // Ends past the matrix, or below zero, are cut to it: no layout makes the kernel leave its buffers.
    DG_DEVICE static GroupRows of(const GroupArgs& groups, uint32_t group, uint32_t m) {
        const uint32_t end = end_of(groups, group, m), before = group > 0 ? end_of(groups, group - 1, m) : 0;
        const uint32_t first = align_up(before, groups.alignment);
        if (end <= first) return {0, 0, 0};
        return {first, end, min_of(align_up(end, groups.stored_alignment), m)};
    }

  private:
    DG_DEVICE static uint32_t end_of(const GroupArgs& groups, uint32_t group, uint32_t m) {
        return min_of<uint32_t>(max_of(groups.layout[group], 0), m);
    }
};

template <int kBlockM, int kBlockN, int kClusterN>
using PsumSchedule = GroupWalk<kBlockM, kBlockN, kClusterN, PsumRows>;

}  // namespace deep_gemm
