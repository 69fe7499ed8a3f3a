// The schedule of each grouping, by a constant of the kernel's config.
#pragma once

#include <deep_gemm/schedule/batched.cuh>
#include <deep_gemm/schedule/contiguous.cuh>
#include <deep_gemm/schedule/dense.cuh>
#include <deep_gemm/schedule/k_grouped.cuh>
#include <deep_gemm/schedule/masked.cuh>
#include <deep_gemm/schedule/psum.cuh>

namespace deep_gemm {

// A fresh walk over this CTA's tiles. `Config` has grouping and the extents of tiles and clusters; `Args` m,
// n, k, raster, groups. `kKStep`: of K in a block, which parts of K are made of.
template <auto kConfig, int kKStep, typename Args>
DG_DEVICE auto schedule_of(const Args& args, uint32_t cluster_rank) {
    constexpr int kM = kConfig.block_m, kN = kConfig.block_n, kClusterM = kConfig.cluster_m, kClusterN = kConfig.cluster_n;
    if constexpr (kConfig.grouping == Grouping::kDense || kConfig.grouping == Grouping::kBatchSum)
        return DenseSchedule<kM, kN, kClusterM, kClusterN>(args.m, args.n, args.raster, cluster_rank);
    else if constexpr (kConfig.grouping == Grouping::kBatched)
        return BatchedSchedule<kM, kN, kClusterM, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
    else if constexpr (kConfig.grouping == Grouping::kKGrouped)
        return KGroupedSchedule<kM, kN, kClusterM, kClusterN, kKStep>({args.m, args.n, args.k}, args.raster, cluster_rank,
                                                                      args.groups);
    else if constexpr (kConfig.grouping == Grouping::kContiguous)
        return ContiguousSchedule<kM, kN, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
    else if constexpr (kConfig.grouping == Grouping::kMasked)
        return MaskedSchedule<kM, kN, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
    else
        return PsumSchedule<kM, kN, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
}

// Whether there is anything to multiply: padding has no B, and K may be 0 where only the device knows what to
// zero.
template <Grouping kGrouping>
DG_DEVICE bool has_product(const Tile& tile, uint32_t k) {
    if constexpr (kGrouping == Grouping::kDense || kGrouping == Grouping::kBatched || kGrouping == Grouping::kBatchSum)
        return true;
    else if constexpr (kGrouping == Grouping::kKGrouped)
        return tile.k > 0;
    else if constexpr (kGrouping == Grouping::kContiguous)
        return tile.group >= 0;
    else
        return k > 0 && (kGrouping == Grouping::kMasked || tile.m_idx < tile.zero_from);
}

// Pieces of `rows` rows that hold rows of a tile with a product, of `most` in the tile.
template <Grouping kGrouping>
DG_DEVICE uint32_t pieces_with_rows(const Tile& tile, uint32_t rows, uint32_t most) {
    if constexpr (has_entry_per_group(kGrouping))
        return min_of(ceil_div(tile.zero_from - tile.m_idx, rows), most);
    else
        return most;
}

}  // namespace deep_gemm
