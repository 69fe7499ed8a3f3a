// The set of the SM90 BF16 GEMM: what every role knows of its CTA, and where things lie in shared memory.
#pragma once

#include <deep_gemm/kernels/bf16_gemm/interface.h>
#include <deep_gemm/ptx/address.cuh>
#include <deep_gemm/schedule/grouping.cuh>
#include <deep_gemm/tile/pipeline.cuh>

namespace deep_gemm {

// What every role knows; built once by the entry.
template <Bf16GemmConfig kConfig>
struct Bf16GemmContext {
    static constexpr Bf16GemmSmem kSmem = smem_plan(kConfig);
    static constexpr int kWaves = kConfig.block_m / kWgmmaM / kConfig.num_math_warpgroups;
    static constexpr int kMathWarps = kConfig.num_math_warpgroups * 4;
    static constexpr int kClusterSize = kConfig.cluster_m * kConfig.cluster_n;
    using Barriers = PipelineBarriers<kConfig.num_stages>;
    using Cursor = PipelineCursor<kConfig.num_stages>;
    static constexpr bool kKGrouped = kConfig.grouping == Grouping::kKGrouped, kBatchSum = kConfig.grouping == Grouping::kBatchSum;

    static_assert(kConfig.block_m % (kWgmmaM * kConfig.num_math_warpgroups) == 0, "whole waves for each warpgroup");
    static_assert(kConfig.block_n % (8 * kConfig.cluster_m) == 0, "multicast slices are whole swizzle atoms");
    static_assert(kSmem.a_stage % 1024 == 0 && kSmem.b_stage % 1024 == 0, "stages start on swizzle atoms");
    static_assert(!divides_rows(kConfig.grouping) || kConfig.cluster_m == 1, "a cluster stays within a group");
    static_assert(kConfig.num_math_warpgroups == 1 ||
                      registers_suffice(kConfig.num_math_warpgroups, math_registers(kConfig), load_registers(kConfig)),
                  "warpgroups share out what the CTA was launched with");
    static_assert(!divides_rows(kConfig.grouping) || kConfig.a_major == Major::kK, "slices of A are of rows");
    static_assert(kConfig.k_blocks == 1 || (!kKGrouped && !kBatchSum), "stages that K does not fill are filled with zeros");

    const Bf16GemmArgs& args;
    ptx::SmemAddr smem;  // 1024-byte aligned
    uint32_t warp, lane, cluster_rank;

    DG_DEVICE uint32_t num_k_stages(const Tile& tile) const {
        const uint32_t stages = ceil_div<uint32_t>(kKGrouped ? tile.k : args.k, kConfig.k_blocks * kBf16BlockK);
        return kBatchSum ? stages * args.groups.count : stages;
    }
    DG_DEVICE uint32_t first_k(const Tile& tile) const { return kKGrouped ? tile.k_idx : 0; }  // where its part of K starts
    DG_DEVICE Barriers barriers() const { return {smem + kSmem.barrier_offset}; }
    DG_DEVICE bool has_product(const Tile& tile) const { return deep_gemm::has_product<kConfig.grouping>(tile, args.k); }
    DG_DEVICE auto schedule() const { return schedule_of<kConfig, kBf16BlockK>(args, cluster_rank); }
    static constexpr int kABlock = kSmem.a_stage / kConfig.k_blocks, kBBlock = kSmem.b_stage / kConfig.k_blocks;
    // Where K block `i` of stage `s` lies.
    DG_DEVICE ptx::SmemAddr a_stage(uint32_t s, int i) const { return smem + kSmem.a_offset + s * kSmem.a_stage + i * kABlock; }
    DG_DEVICE ptx::SmemAddr b_stage(uint32_t s, int i) const { return smem + kSmem.b_offset + s * kSmem.b_stage + i * kBBlock; }
    // First row of this math warpgroup's part of a tile.
    DG_DEVICE uint32_t first_row(const Tile& tile) const { return tile.m_idx + warp / 4 * kWaves * kWgmmaM; }
    DG_DEVICE ptx::SmemAddr staging() const { return smem + warp / 4 * kConfig.store_boxes * kStoreBoxBytes; }
    DG_DEVICE ptx::SmemAddr c_full() const { return smem + kSmem.c_barrier_offset + warp / 4 * 8; }
    // This math thread's first row of a wave.
    DG_DEVICE uint32_t row_in_wave() const { return warp % 4 * 16 + lane / 4; }
};

}  // namespace deep_gemm
