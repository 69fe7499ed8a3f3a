// The set of the SM90 FP8 GEMM: what every role knows of its CTA, and where things lie in shared memory.
#pragma once

#include <deep_gemm/epilogue/scales.cuh>
#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/schedule/batched.cuh>
#include <deep_gemm/schedule/contiguous.cuh>
#include <deep_gemm/schedule/dense.cuh>
#include <deep_gemm/schedule/k_grouped.cuh>
#include <deep_gemm/schedule/masked.cuh>
#include <deep_gemm/schedule/psum.cuh>
#include <deep_gemm/tile/group_maps.cuh>
#include <deep_gemm/tile/pipeline.cuh>

namespace deep_gemm {

// What every role knows; built once by the entry.
template <Fp8GemmConfig kConfig>
struct Fp8GemmContext {
    static constexpr Fp8GemmSmem kSmem = smem_plan(kConfig);
    static constexpr int kWaves = kConfig.block_m / kWgmmaM / kConfig.num_math_warpgroups;
    static constexpr int kMathWarps = kConfig.num_math_warpgroups * 4;
    static constexpr int kClusterSize = kConfig.cluster_m * kConfig.cluster_n;
    static constexpr bool kKGrouped = kConfig.grouping == Grouping::kKGrouped;
    static constexpr bool kBatched = kConfig.grouping == Grouping::kBatched;
    static constexpr bool kSfbPerRow = kConfig.sfb_granularity == ScaleGranularity::kPerRow;
    // 128-column blocks of SFB a tile can touch.
    static constexpr int kSfbBlocks = kSfbPerRow ? 0 : kScaleBlock % kConfig.block_n == 0 ? 1 : 2;
    // K blocks whose scales are loaded at once: narrow tiles take them faster, and have the registers for more.
    static constexpr int kScaleBatch = kConfig.block_n <= 64 ? 8 : 4;
    using Feed = ScaleFeed<Fp8GemmArgs, kWaves, kSfbBlocks, kScaleBatch>;
    using Barriers = PipelineBarriers<kConfig.num_stages>;
    using Cursor = PipelineCursor<kConfig.num_stages>;

    static_assert(kConfig.block_m % (kWgmmaM * kConfig.num_math_warpgroups) == 0, "whole waves for each warpgroup");
    static_assert(kConfig.block_n % (8 * kConfig.cluster_m) == 0, "multicast slices are whole swizzle atoms");
    static_assert(kSmem.a_stage % 1024 == 0 && kSmem.b_stage % 1024 == 0, "stages start on swizzle atoms");
    static_assert(kScaleBatch % (2 * kConfig.k_blocks) == 0, "batches hold whole stages, an even number of them");
    static_assert(kConfig.grouping == Grouping::kDense || kBatched || kKGrouped || kConfig.cluster_m == 1,
                  "a cluster stays within a group");
    static_assert(kConfig.grouping != Grouping::kBatchSum, "sums of batches are not promoted");
    static_assert(kConfig.num_accumulators == 2 || kConfig.n_parts == 1, "parts alternate between two accumulators");

    const Fp8GemmArgs& args;
    ptx::SmemAddr smem;  // 1024-byte aligned
    uint32_t warp, lane, cluster_rank;

    // Stages a tile takes: K is rounded up to whole stages, whose excess is loaded as zeros.
    DG_DEVICE uint32_t num_k_stages(const Tile& tile) const {
        return ceil_div<uint32_t>(k_of(tile), kConfig.k_blocks * kBlockK);
    }
    DG_DEVICE uint32_t k_of(const Tile& tile) const { return kKGrouped ? tile.k : args.k; }
    // Where a tile's SFs start, in strides between groups: of kKGrouped, whose groups share a matrix of SFs, in K blocks.
    DG_DEVICE int32_t scale_group(const Tile& tile) const { return kKGrouped ? tile.k_idx / kBlockK : tile.group; }
    // Whether there is anything to multiply: padding has no B, and K may be 0 where only the device knows what to zero.
    DG_DEVICE bool has_product(const Tile& tile) const {
        if constexpr (kConfig.grouping == Grouping::kDense || kBatched)
            return true;
        else if constexpr (kConfig.grouping == Grouping::kContiguous)
            return tile.group >= 0;
        else if constexpr (kKGrouped)
            return tile.k > 0;
        else
            return args.k > 0 && (kConfig.grouping == Grouping::kMasked || tile.m_idx < tile.zero_from);
    }
    DG_DEVICE Barriers barriers() const { return {smem + kSmem.barrier_offset}; }
    // A fresh walk over this CTA's tiles.
    DG_DEVICE auto schedule() const {
        constexpr int kM = kConfig.block_m, kN = kConfig.block_n, kClusterN = kConfig.cluster_n;
        if constexpr (kConfig.grouping == Grouping::kDense)
            return DenseSchedule<kM, kN, kConfig.cluster_m, kClusterN>(args.m, args.n, args.raster, cluster_rank);
        else if constexpr (kConfig.grouping == Grouping::kContiguous)
            return ContiguousSchedule<kM, kN, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
        else if constexpr (kBatched)
            return BatchedSchedule<kM, kN, kConfig.cluster_m, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
        else if constexpr (kConfig.grouping == Grouping::kMasked)
            return MaskedSchedule<kM, kN, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
        else if constexpr (kKGrouped)
            return KGroupedSchedule<kM, kN, kConfig.cluster_m, kClusterN, kBlockK>({args.m, args.n, args.k}, args.raster,
                                                                                  cluster_rank, args.groups);
        else
            return PsumSchedule<kM, kN, kClusterN>(args.m, args.n, args.raster, cluster_rank, args.groups);
    }
    // The maps of A and B for the load role.
    DG_DEVICE auto operand_maps() const {
        if constexpr (kKGrouped)
            return GroupMaps<map_slots(kConfig.num_stages)>(args.matrices, args.a, args.b, smem + kSmem.maps_offset);
        else
            return GivenMaps(args.a, args.b);
    }
    // Where K block `i` of stage `s` lies.
    DG_DEVICE ptx::SmemAddr a_stage(uint32_t s, int i) const {
        return smem + kSmem.a_offset + s * kSmem.a_stage + i * (kSmem.a_stage / kConfig.k_blocks);
    }
    DG_DEVICE ptx::SmemAddr b_stage(uint32_t s, int i) const {
        return smem + kSmem.b_offset + s * kSmem.b_stage + i * (kSmem.b_stage / kConfig.k_blocks);
    }
    DG_DEVICE ptx::SmemAddr sfb_stage(uint32_t s, int i) const {
        return smem + kSmem.sfb_offset + s * kSmem.sfb_stage + i * (kSmem.sfb_stage / kConfig.k_blocks);
    }
    // This math thread's first row of a tile.
    DG_DEVICE uint32_t row_in_tile() const { return warp / 4 * kWaves * kWgmmaM + warp % 4 * 16 + lane / 4; }
};

}  // namespace deep_gemm
