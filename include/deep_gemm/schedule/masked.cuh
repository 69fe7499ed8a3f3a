// Masked grouping: the entry of a group is the number of its wanted rows, from the first row of its own matrix on.
#pragma once

#include <deep_gemm/schedule/group_walk.cuh>

namespace deep_gemm {

struct MaskedRows {
    static constexpr TileOrder kOrder = TileOrder::kMFirst;
    static constexpr bool kPads = false;
    static constexpr bool kEvensTallRounds = true;

    // Counts past the capacity, or below zero, are cut to it: no count makes the kernel leave its buffers.
    DG_DEVICE static GroupRows of(const GroupArgs& groups, uint32_t group, uint32_t m) {
        const uint32_t count = min_of<uint32_t>(max_of(groups.layout[group], 0), m);
        return {0, count, count};
    }
};

template <int kBlockM, int kBlockN, int kClusterN>
using MaskedSchedule = GroupWalk<kBlockM, kBlockN, kClusterN, MaskedRows>;

}  // namespace deep_gemm
