// The set of the SM90 FP8 GEMM: what every role knows of its CTA, and where things lie in shared memory.
#pragma once

#include <deep_gemm/epilogue/scales.cuh>
#include <deep_gemm/epilogue/store.cuh>
#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/schedule/grouping.cuh>
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
    // Warpgroups take turns at the waves where not all may have rows. Where three of four have, two of them share the third: each
    // multiplies it with half of the columns.
    static constexpr bool kTakesTurns = has_entry_per_group(kConfig.grouping);
    static constexpr uint32_t kFirstWaveStride = kWgmmaM * (kTakesTurns ? 1 : kWaves);
    static constexpr uint32_t kWaveStride = kWgmmaM * (kTakesTurns ? kConfig.num_math_warpgroups : 1);
    static constexpr bool kSharesWaves = shares_waves(kConfig);
    // Whether a tile's first product is issued before the tile ahead of it is stored. It gains 1 % in these kernels, and lost in all
    // others: stores into shared memory and products slow each other down. Tiles without a product, and the end of tiles, get a
    // stage without bytes then, and a product of whatever it holds, to be dropped; so does a warpgroup without a wave. Were there
    // none, the compiler would wait for products wherever the ways join.
    static constexpr bool kStartsUnderStore = kSharesWaves;
    // Whether three warpgroups start their products in turns: of narrow tiles; wider ones lose by it. Where waves may lack rows, their
    // warpgroups would miss a turn.
    static constexpr bool kTakesProductTurns = kConfig.num_math_warpgroups == 3 && kWaves == 1 && kConfig.block_n < kScaleBlock &&
                                               kConfig.num_accumulators == 1 &&
                                               kConfig.sfb_granularity == ScaleGranularity::kPerBlock && !kTakesTurns;
    static constexpr bool kKGrouped = kConfig.grouping == Grouping::kKGrouped;
    static constexpr bool kSfbPerRow = kConfig.sfb_granularity == ScaleGranularity::kPerRow;
    static constexpr bool kHoldsFactors = holds_column_factors(kConfig);
    // Whether TMA may load factors that come by way of the stages: not into stages of several K blocks, of which the last one's may be
    // zeros; nor for groups of K that read a C, which the scale role asks for.
    static constexpr bool kMayLoadScales = kSfbPerRow && kConfig.k_blocks == 1 && !(kKGrouped && kConfig.has_c && !kConfig.c_is_d);
    // 128-column blocks of SFB a tile can touch.
    static constexpr int kSfbBlocks = kSfbPerRow ? 0 : kScaleBlock % kConfig.block_n == 0 ? 1 : 2;
    // K blocks whose scales are loaded at once: narrow tiles take them faster, and have the registers for more. The loops of tall tiles
    // hold a whole batch, and the compiler's time goes with their length. With two they are as fast, but for masked groups (0.5 to 1.2 %) and
    // row-major SFA (1 to 2 %), whose sectors are drawn twice as often.
    static constexpr bool kShortBatch = kWaves == 2 && kConfig.num_math_warpgroups == 2 && kConfig.num_accumulators == 1 &&
                                        kConfig.k_blocks == 1 && !kSfbPerRow && kConfig.grouping != Grouping::kMasked;
    static constexpr int kScaleBatch = kConfig.block_n <= 64 ? 8 : kShortBatch ? 2 : 4;
    using Feed = ScaleFeed<Fp8GemmArgs, kWaves, kSfbBlocks, kScaleBatch>;
    using Barriers = PipelineBarriers<kConfig.num_stages>;
    using Cursor = PipelineCursor<kConfig.num_stages>;

    static_assert(kConfig.block_m % (kWgmmaM * kConfig.num_math_warpgroups) == 0, "whole waves for each warpgroup");
    static_assert(kConfig.block_n % (8 * kConfig.cluster_m) == 0, "multicast slices are whole swizzle atoms");
    static_assert(kSmem.a_stage % 1024 == 0 && kSmem.b_stage % 1024 == 0, "stages start on swizzle atoms");
    static_assert(kScaleBatch % (2 * kConfig.k_blocks) == 0, "batches hold whole stages, an even number of them");
    static_assert(kConfig.num_stages >= 2, "a stage is awaited while the one before it is in use");
    static_assert(!kSharesWaves || kConfig.block_n / 2 % kSmem.store_n == 0, "halves of a wave are whole store boxes");
    static_assert(!divides_rows(kConfig.grouping) || kConfig.cluster_m == 1, "a cluster stays within a group");
    static_assert(kConfig.num_math_warpgroups == 1 ||
                      registers_suffice(kConfig.num_math_warpgroups, math_registers(kConfig), load_registers(kConfig)),
                  "warpgroups share out what the CTA was launched with");
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
    DG_DEVICE bool has_product(const Tile& tile) const { return deep_gemm::has_product<kConfig.grouping>(tile, args.k); }
    DG_DEVICE Barriers barriers() const { return {smem + kSmem.barrier_offset}; }
    DG_DEVICE auto schedule() const { return schedule_of<kConfig, kBlockK>(args, cluster_rank); }
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
    DG_DEVICE ptx::SmemAddr sfa_stage(uint32_t s) const { return smem + kSmem.sfa_offset + s * kSmem.sfa_stage; }
    DG_DEVICE ptx::SmemAddr sfb_stage(uint32_t s, int i) const {
        return smem + kSmem.sfb_offset + s * kSmem.sfb_stage + i * (kSmem.sfb_stage / kConfig.k_blocks);
    }
    // Which role brings factors per row, if they come by way of the stages: the load role or the scale role.
    DG_DEVICE bool loads_scales() const { return kMayLoadScales && args.scales_in_units; }
    DG_DEVICE bool copies_scales() const { return kSfbPerRow && !loads_scales(); }
    DG_DEVICE uint32_t warpgroup() const { return warp / 4; }
    // This math thread's first row of a tile.
    DG_DEVICE uint32_t row_in_tile() const { return row_in_tile(lane); }
    DG_DEVICE uint32_t row_in_tile(uint32_t of_lane) const {
        return warpgroup() * kFirstWaveStride + warp % 4 * 16 + of_lane / 4;
    }
    DG_DEVICE uint32_t row_in_wave() const { return warp % 4 * 16 + lane / 4; }
    // A warp has read the stage, factors included: one lane gives it back for all.
    DG_DEVICE void release(const Cursor& cursor, uint32_t stage) const {
        if constexpr (kSfbPerRow) __syncwarp();
        consumer_release<kClusterSize>(cursor.barriers, stage, lane);
    }
    // Waves of a tile that have rows; of one that starts behind its group's rows, none or all.
    DG_DEVICE uint32_t waves_with_rows(const Tile& tile) const {
        return pieces_with_rows<kConfig.grouping>(tile, kWgmmaM, kConfig.block_m / kWgmmaM);
    }
    // Whether the warpgroups share the last of them: no wave of zeros is behind it, which one of them would have to write.
    DG_DEVICE bool shares_wave(const Tile& tile) const {
        return kSharesWaves && waves_with_rows(tile) == 3 && tile.m_end <= tile.m_idx + 3 * kWgmmaM;
    }
    // Where this warpgroup's waves lie in D.
    DG_DEVICE WavePlaces wave_places(const Tile& tile) const {
        const uint32_t first = tile.m_idx + warpgroup() * kFirstWaveStride;
        if (!shares_wave(tile)) return {.row = first, .stride = kWaveStride};
        return {.row = first,
                .stride = kWaveStride - warpgroup() * kFirstWaveStride,
                .shares_last = true,
                .shared_column = warpgroup() * (kConfig.block_n / 2)};
    }
};

}  // namespace deep_gemm
