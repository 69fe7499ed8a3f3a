// How the CTAs of a cluster share operands, and the load of one box of a tile.
#pragma once

#include <deep_gemm/ptx/cp_async.cuh>

namespace deep_gemm {

enum class Sharing { kNone, kMulticast };

DG_HOST_DEVICE constexpr Sharing sharing_among(int ctas) { return ctas > 1 ? Sharing::kMulticast : Sharing::kNone; }

// Where a CTA stands in its cluster, and the CTAs it shares each operand with.
struct ClusterPlace {
    uint32_t rank_m, rank_n;
    uint16_t a_mask;  // those with the same rank_m, which differ in n
    uint16_t b_mask;  // those with the same rank_n, which differ in m
};

template <int kClusterM, int kClusterN>
DG_DEVICE ClusterPlace place_in_cluster(uint32_t cluster_rank) {
    ClusterPlace place{cluster_rank % kClusterM, cluster_rank / kClusterM, 0, 0};
    for (uint32_t i = 0; i < kClusterN; ++i) place.a_mask |= 1u << (i * kClusterM + place.rank_m);
    place.b_mask = ((1u << kClusterM) - 1) << (place.rank_n * kClusterM);
    return place;
}

// Calls load(slice) for the slices of one of `kSharers` CTAs: every kSharers-th of `count`. Without groups there are no more
// slices than sharers, and no loop (with one, 28 stages of four K blocks took 14 us instead of 10 on an H200).
template <int kSharers, Grouping kGrouping, typename Load>
DG_DEVICE void for_each_slice(uint32_t rank, uint32_t count, const Load& load) {
    if constexpr (has_entry_per_group(kGrouping)) {
        for (uint32_t slice = rank; slice < count; slice += kSharers) load(slice);
    } else {
        if (rank < count) load(rank);
    }
}

// A box of a tensor map by its first element; `group` is the coordinate in a map of three dimensions.
struct Box {
    const TensorMap& map;
    uint32_t inner, outer;
    int32_t group;
};

// Loads a box to `destination`; with multicast, to the same place of every CTA of `mask`.
template <Sharing kSharing, Grouping kGrouping>
DG_DEVICE void load_box(const Box& box, ptx::SmemAddr destination, ptx::SmemAddr barrier, uint16_t mask) {
    if constexpr (kGrouping == Grouping::kDense) {
        if constexpr (kSharing == Sharing::kMulticast)
            ptx::tma_load_2d_multicast(box.map, destination, barrier, box.inner, box.outer, mask);
        else
            ptx::tma_load_2d(box.map, destination, barrier, box.inner, box.outer);
    } else {
        if constexpr (kSharing == Sharing::kMulticast)
            ptx::tma_load_3d_multicast(box.map, destination, barrier, box.inner, box.outer, box.group, mask);
        else
            ptx::tma_load_3d(box.map, destination, barrier, box.inner, box.outer, box.group);
    }
}

}  // namespace deep_gemm
