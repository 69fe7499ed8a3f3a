// SM90 BF16 GEMM: D[M,N] = C + A @ B^T, A [M,K] and B [N,K] BF16, each of either major, D BF16 or FP32.
//
//   global A, B --TMA--> smem stages --wgmma--> FP32 accumulators, over all of K --(+C)--> smem --TMA--> D
//
//   barrier        arrivals                                      waits
//   tile_full[s]   1 (load role, + the stage's bytes)            every math warp
//   tile_free[s]   every math warp of every CTA of the cluster   load role
//   named 1+w      the 128 threads of math warpgroup w           staging area of D free / staged
//
//   role     warps                       job
//   math     warpgroups 0..W-1           wgmma, epilogue; 64 rows a wave
//   load     warp 0 of warpgroup W       TMA of A and B, multicast within the cluster; runs ahead across tiles
//
// A K block is 64 of K, a stage one or several. K-major operand: a row of 128 bytes per M or N. MN-major: boxes of 64 along MN,
// a row of 128 bytes per K; A's 64 rows of a wave are one box. An element of D is one chain of sums along K in the accumulators:
// its bits depend on its own row of A and column of B alone. Groups along M have a B each.
// Batches: each has a D (kBatched), or D is their sum (kBatchSum): then the chain goes on from the K of one to that of the next.
// Groups along K (kKGrouped) are rows of A and B, MN-major both; those of their gaps are zeros, so stages may reach into them.
// The contract guarantees: M and N > 0, K > 0 (kMasked, kPsum, and of a group of kKGrouped: K >= 0), 16-byte aligned rows.
#pragma once

#include <deep_gemm/epilogue/store.cuh>
#include <deep_gemm/kernels/bf16_gemm/interface.h>
#include <deep_gemm/ptx/cluster.cuh>
#include <deep_gemm/ptx/griddepcontrol.cuh>
#include <deep_gemm/ptx/setmaxnreg.cuh>
#include <deep_gemm/ptx/wgmma_bf16_shapes.cuh>
#include <deep_gemm/schedule/grouping.cuh>
#include <deep_gemm/tile/load.cuh>
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
    // This math thread's first row of a wave.
    DG_DEVICE uint32_t row_in_wave() const { return warp % 4 * 16 + lane / 4; }
};

// One CTA's share of an operand's tile: `rank` of those that share it.
struct OperandShare {
    const TensorMap& map;
    uint32_t mn_idx;  // first row of the tile
    uint32_t rank;
    uint16_t mask;
    SliceArgs slices;  // K-major: rows of a slice, slices; MN-major: boxes of 64 rows, CTAs that divide K
};

// Where along K a block is: a row of K, and the group of operands.
template <bool kBatchSum>
struct KPlace {
    uint32_t k_idx;
    int32_t group;

    // To the next K block; past the `k` of a batch that is summed, to the next batch.
    DG_DEVICE void advance(uint32_t k) {
        k_idx += kBf16BlockK;
        if (!kBatchSum || k_idx < k) return;
        k_idx = 0;
        ++group;
    }
};

// Loads the share of a K block.
template <Major kMajor, int kSharers, Grouping kMaps, typename Place>
DG_DEVICE void load_share(const OperandShare& share, const Place& place, ptx::SmemAddr stage, ptx::SmemAddr full) {
    constexpr Sharing kSharing = sharing_among(kSharers);
    if constexpr (kMajor == Major::kK) {
        for (uint32_t slice = share.rank; slice < share.slices.count; slice += kSharers) {
            const uint32_t first = slice * share.slices.rows;
            load_box<kSharing, kMaps>({share.map, place.k_idx, share.mn_idx + first, place.group},
                                      stage + first * kBf16SpanBytes, full, share.mask);
        }
    } else {
        constexpr uint32_t kBoxBytes = kBf16BlockK * kBf16SpanBytes;
        const uint32_t first_k = share.rank * (kBf16BlockK / kSharers);
        for (uint32_t i = 0; i < share.slices.rows; ++i)
            load_box<kSharing, kMaps>({share.map, share.mn_idx + i * kMnBoxColumns, place.k_idx + first_k, place.group},
                                      stage + i * kBoxBytes + first_k * kBf16SpanBytes, full, share.mask);
    }
}

// Bytes of an operand's K block that land in a stage, all shares together.
template <Major kMajor>
DG_DEVICE uint32_t loaded_bytes(const SliceArgs& slices) {
    return slices.rows * (kMajor == Major::kK ? slices.count : kBf16BlockK) * kBf16SpanBytes;
}

// One warp keeps the ring of A and B stages full: all lanes walk the ring, so that its state stays uniform; one issues.
template <Bf16GemmConfig kConfig>
DG_DEVICE void load_role(const Bf16GemmContext<kConfig>& ctx) {
    constexpr Grouping kMaps = has_grouped_maps(kConfig) ? Grouping::kBatched : Grouping::kDense;
    constexpr bool kBatchSum = Bf16GemmContext<kConfig>::kBatchSum;
    const bool issuer = ptx::elect_one();
    constexpr SliceArgs kBSlices = b_slices(kConfig);
    const auto [rank_m, rank_n, a_mask, b_mask] = place_in_cluster<kConfig.cluster_m, kConfig.cluster_n>(ctx.cluster_rank);
    typename Bf16GemmContext<kConfig>::Cursor cursor{ctx.barriers()};
    auto schedule = ctx.schedule();
    for (Tile tile; schedule.next(tile);) {
        if (!ctx.has_product(tile)) continue;
        SliceArgs a_slices = ctx.args.a_slices;
        a_slices.count = pieces_with_rows<kConfig.grouping>(tile, a_slices.rows, a_slices.count);
        const uint32_t block_bytes = loaded_bytes<kConfig.a_major>(a_slices) + loaded_bytes<kConfig.b_major>(kBSlices);
        const OperandShare a{ctx.args.a, tile.m_idx, rank_n, a_mask, a_slices};
        const OperandShare b{ctx.args.b, tile.n_idx, rank_m, b_mask, kBSlices};
        KPlace<kBatchSum> a_place{ctx.first_k(tile), has_operand_per_group(kConfig.grouping) ? tile.group : 0};
        KPlace<kBatchSum> b_place{ctx.first_k(tile), tile.group};
        for (uint32_t k = 0; k < ctx.num_k_stages(tile); ++k, cursor.advance()) {
            cursor.producer_acquire();
            if (!issuer) continue;
            const ptx::SmemAddr full = cursor.barriers.tile_full(cursor.stage);
            ptx::mbarrier_arrive_expect_tx(full, kConfig.k_blocks * block_bytes);
#pragma unroll
            for (int i = 0; i < kConfig.k_blocks; ++i) {
                load_share<kConfig.a_major, kConfig.cluster_n, kMaps>(a, a_place, ctx.a_stage(cursor.stage, i), full);
                load_share<kConfig.b_major, kConfig.cluster_m, kMaps>(b, b_place, ctx.b_stage(cursor.stage, i), full);
                a_place.advance(ctx.args.k);
                b_place.advance(ctx.args.k);
            }
        }
    }
}

// Descriptor of an operand: the low word of its start, and how far 16 of K move it.
template <Major kMajor>
struct OperandDescriptor {
    static constexpr uint32_t kStep = (kMajor == Major::kK ? 32 : 16 * kBf16SpanBytes) >> 4;
    static DG_DEVICE uint32_t low(ptx::SmemAddr start) {
        if constexpr (kMajor == Major::kK)
            return ptx::k_major_descriptor_low(start);
        else
            return ptx::mn_major_descriptor_low(start, kBf16BlockK * kBf16SpanBytes);
    }
    static DG_DEVICE uint64_t at(uint32_t low, int k_step) {
        if constexpr (kMajor == Major::kK)
            return ptx::k_major_descriptor(low + k_step * kStep);
        else
            return ptx::mn_major_descriptor(low + k_step * kStep);
    }
};

// The products of a stage's first kActive waves, one commit.
template <Bf16GemmConfig kConfig, int kActive, int kWaves>
DG_DEVICE void multiply_stage(float (&sums)[kWaves][kConfig.block_n / 2], uint32_t a_low, uint32_t b_low) {
    using Context = Bf16GemmContext<kConfig>;
    constexpr uint32_t kWaveStep = kWgmmaM * kBf16SpanBytes >> 4;  // in both majors: 64 rows, or one box
    using A = OperandDescriptor<kConfig.a_major>;
    using B = OperandDescriptor<kConfig.b_major>;
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kConfig.k_blocks; ++i)
#pragma unroll
        for (int k = 0; k < kBf16BlockK / 16; ++k)
#pragma unroll
            for (int wave = 0; wave < kActive; ++wave)
                ptx::WgmmaBf16<kConfig.block_n>::template mma<kConfig.a_major, kConfig.b_major>(
                    sums[wave], A::at(a_low + i * (Context::kABlock >> 4) + wave * kWaveStep, k),
                    B::at(b_low + i * (Context::kBBlock >> 4), k), ptx::Accumulate::kYes);
    ptx::wgmma_commit();
}

template <int kWaves, int kFragment>
DG_DEVICE void clear_sums(float (&sums)[kWaves][kFragment]) {
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave) {
#pragma unroll
        for (int i = 0; i < kFragment; ++i) sums[wave][i] = 0.0f;
        ptx::pin_registers(sums[wave]);
    }
}

// Walks all of K, one stage's products in flight while the next stage's are issued; a stage is given back when its own
// are done. Of no wave: all of K is given back.
template <Bf16GemmConfig kConfig, int kActive, int kWaves>
DG_DEVICE void multiply_waves(const Bf16GemmContext<kConfig>& ctx, typename Bf16GemmContext<kConfig>::Cursor& cursor,
                             const Tile& tile, float (&sums)[kWaves][kConfig.block_n / 2]) {
    using Context = Bf16GemmContext<kConfig>;
    const uint32_t a_low = OperandDescriptor<kConfig.a_major>::low(ctx.a_stage(0, 0) + ctx.warp / 4 * kWaves * kWgmmaM * kBf16SpanBytes);
    const uint32_t b_low = OperandDescriptor<kConfig.b_major>::low(ctx.b_stage(0, 0));
    uint32_t last_stage = cursor.stage;
    const uint32_t num_k = ctx.num_k_stages(tile);
#pragma unroll 1
    for (uint32_t k = 0; k < num_k; ++k) {
        cursor.consumer_wait();
        if constexpr (kActive == 0) {
            consumer_release<Context::kClusterSize>(cursor.barriers, cursor.stage, ctx.lane);
            cursor.advance();
            continue;
        }
        multiply_stage<kConfig, kActive>(sums, a_low + cursor.stage * (Context::kSmem.a_stage >> 4),
                                b_low + cursor.stage * (Context::kSmem.b_stage >> 4));
        ptx::wgmma_wait<1>();
        if (k > 0) consumer_release<Context::kClusterSize>(cursor.barriers, last_stage, ctx.lane);
        last_stage = cursor.stage;
        cursor.advance();
    }
    if constexpr (kActive == 0) return;
    ptx::wgmma_wait<0>();
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave) ptx::pin_registers(sums[wave]);
    consumer_release<Context::kClusterSize>(cursor.barriers, last_stage, ctx.lane);
}

// The same with as many of the warpgroup's waves as have rows, a loop for each number of them; up to kMost have.
template <Bf16GemmConfig kConfig, int kMost, int kWaves>
DG_DEVICE void multiply_tile(const Bf16GemmContext<kConfig>& ctx, typename Bf16GemmContext<kConfig>::Cursor& cursor,
                             const Tile& tile, float (&sums)[kWaves][kConfig.block_n / 2]) {
    if constexpr (kMost > 0 && has_entry_per_group(kConfig.grouping)) {
        const uint32_t before = ctx.warp / 4 * kWaves;
        if (pieces_with_rows<kConfig.grouping>(tile, kWgmmaM, before + kMost) < before + kMost)
            return multiply_tile<kConfig, kMost - 1>(ctx, cursor, tile, sums);
    }
    multiply_waves<kConfig, kMost>(ctx, cursor, tile, sums);
}

// Adds C, or keeps what the tile's group wants. Waves outside of D read no C: where C is D, another CTA may be writing the
// rows they would read instead.
template <Bf16GemmConfig kConfig, int kWaves>
DG_DEVICE void finish_sums(const Bf16GemmContext<kConfig>& ctx, float (&sums)[kWaves][kConfig.block_n / 2],
                           const Tile& tile) {
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave) {
        const uint32_t wave_row = tile.m_idx + (ctx.warp / 4 * kWaves + wave) * kWgmmaM;
        const uint32_t row = wave_row + ctx.row_in_wave();
        if constexpr (kConfig.has_c)
            if (wave_row < ctx.args.m && tile.n_idx < ctx.args.n)
                add_c<store_config(kConfig)>(ctx.args, sums[wave], tile, row, ctx.lane);
        keep_rows_of_group<store_config(kConfig)>(ctx.args, sums[wave], tile, row, wave_row);
    }
}

template <Bf16GemmConfig kConfig>
DG_DEVICE void math_role(const Bf16GemmContext<kConfig>& ctx) {
    using Context = Bf16GemmContext<kConfig>;
    const uint32_t warpgroup = ctx.warp / 4;
    const ptx::SmemAddr staging = ctx.smem + warpgroup * kConfig.store_boxes * kStoreBoxBytes;
    typename Context::Cursor cursor{ctx.barriers()};
    auto schedule = ctx.schedule();
    for (Tile tile; schedule.next(tile);) {
        float sums[Context::kWaves][kConfig.block_n / 2];
        clear_sums(sums);
        if (ctx.has_product(tile))
            multiply_tile<kConfig, Context::kWaves>(ctx, cursor, tile, sums);
        else if constexpr (kConfig.grouping == Grouping::kKGrouped && kConfig.has_c)
            make_neutral(sums);
        finish_sums<kConfig>(ctx, sums, tile);
        store_sums<store_config(kConfig)>(ctx.args, sums, tile, staging,
                                          tile.m_idx + warpgroup * Context::kWaves * kWgmmaM, 1 + warpgroup);
    }
    if (threadIdx.x % kWarpgroupThreads == 0) ptx::bulk_wait_group<0>();
}

// Sets the stage, then hands each warpgroup its role.
template <Bf16GemmConfig kConfig>
DG_DEVICE void sm90_bf16_gemm(const Bf16GemmArgs& args) {
    using Context = Bf16GemmContext<kConfig>;
    extern __shared__ uint8_t dynamic_smem[];
    const ptx::SmemAddr smem = align_up<uint32_t>(ptx::smem_addr(dynamic_smem), 1024);
    const uint32_t warp = ptx::broadcast_lane0(threadIdx.x / 32);
    const Context ctx{args, smem, warp, ptx::lane_id(), Context::kClusterSize > 1 ? ptx::cluster_rank() : 0};

    if (warp == Context::kMathWarps) {
        if (ptx::elect_one()) {
            ptx::prefetch_tensor_map(args.a);
            ptx::prefetch_tensor_map(args.b);
            ptx::prefetch_tensor_map(args.d);
        }
        ctx.barriers().init(1, Context::kMathWarps * Context::kClusterSize, ctx.lane);
    }
    if constexpr (Context::kClusterSize > 1)
        ptx::cluster_sync();
    else
        ptx::cta_sync();
    ptx::wait_for_primary_grid();
    ptx::launch_dependent_grid();

    if (warp < Context::kMathWarps) {
        if constexpr (kConfig.num_math_warpgroups > 1) ptx::raise_register_limit<math_registers(kConfig)>();
        math_role(ctx);
    } else {
        if constexpr (kConfig.num_math_warpgroups > 1) ptx::lower_register_limit<load_registers(kConfig)>();
        if (warp == Context::kMathWarps) load_role(ctx);
    }
    // Peers may still arrive on this CTA's barriers or write into its stages.
    if constexpr (Context::kClusterSize > 1) ptx::cluster_sync();
}

}  // namespace deep_gemm
