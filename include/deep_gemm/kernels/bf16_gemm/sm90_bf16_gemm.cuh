// SM90 BF16 GEMM: D[M,N] = C + A @ B^T, A [M,K] and B [N,K] BF16, each of either major, D BF16 or FP32.
//
//   global A, B --TMA--> smem stages --wgmma--> FP32 accumulators, over all of K --(+C)--> smem --TMA--> D
//   global C --TMA--> smem, where D is staged afterwards --^    (BF16; FP32: read by threads, or C is D and TMA adds to it)
//
//   barrier        arrivals                                      waits
//   tile_full[s]   1 (load role, + the stage's bytes)            every math warp
//   tile_free[s]   every math warp of every CTA of the cluster   load role
//   c_full[w]      1 (math warpgroup w, + the bytes of C)        math warpgroup w; where C is staged
//   named 1+w      the 128 threads of math warpgroup w           staging area of D free / staged
//
//   role     warps                       job
//   math     warpgroups 0..W-1           wgmma, epilogue; 64 rows a wave; one thread of each: TMA of a staged C
//   load     warp 0 of warpgroup W       TMA of A and B, multicast within the cluster; runs ahead across tiles; asks for C in L2
//                                        where threads read it
//
// A K block is 64 of K, a stage one or several. K-major operand: a row of 128 bytes per M or N. MN-major: boxes of 64 along MN,
// a row of 128 bytes per K; A's 64 rows of a wave are one box. An element of D is one chain of sums along K in the accumulators:
// its bits depend on its own row of A and column of B alone. Groups along M have a B each.
// Batches: each has a D (kBatched), or D is their sum (kBatchSum): then the chain goes on from the K of one to that of the next.
// Groups along K (kKGrouped) are rows of A and B, MN-major both; those of their gaps are zeros, so stages may reach into them.
// The contract guarantees: M and N > 0, K > 0 (kMasked, kPsum, and of a group of kKGrouped: K >= 0), 16-byte aligned rows.
#pragma once

#include <deep_gemm/epilogue/add_c.cuh>
#include <deep_gemm/epilogue/staged_c.cuh>
#include <deep_gemm/kernels/bf16_gemm/sm90_context.cuh>
#include <deep_gemm/kernels/bf16_gemm/sm90_math_tile.cuh>
#include <deep_gemm/ptx/cluster.cuh>
#include <deep_gemm/ptx/griddepcontrol.cuh>
#include <deep_gemm/ptx/setmaxnreg.cuh>
#include <deep_gemm/tile/load.cuh>

namespace deep_gemm {

// One CTA's share of an operand's tile: `rank` of the kSharers that share it. kGrouping: as its rows are divided.
template <int kSharers, Grouping kGrouping>
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

// Loads the share of a K block. kMaps: of two dimensions (kDense), or three.
template <Major kMajor, Grouping kMaps, int kSharers, Grouping kGrouping>
DG_DEVICE void load_share(const OperandShare<kSharers, kGrouping>& share, const auto& place, ptx::SmemAddr stage,
                          ptx::SmemAddr full) {
    constexpr Sharing kSharing = sharing_among(kSharers);
    if constexpr (kMajor == Major::kK) {
        for_each_slice<kSharers, kGrouping>(share.rank, share.slices.count, [&](uint32_t slice) {
            const uint32_t first = slice * share.slices.rows;
            load_box<kSharing, kMaps>({share.map, place.k_idx, share.mn_idx + first, place.group},
                                      stage + first * kBf16SpanBytes, full, share.mask);
        });
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
    if constexpr (kConfig.grouping == Grouping::kKGrouped) schedule.start_late({.per_128_of_k = 1500, .once = 3600});
    for (Tile tile; schedule.next(tile);) {
        if (!ctx.has_product(tile)) continue;
        SliceArgs a_slices = ctx.args.a_slices;
        a_slices.count = pieces_with_rows<kConfig.grouping>(tile, a_slices.rows, a_slices.count);
        const uint32_t block_bytes = loaded_bytes<kConfig.a_major>(a_slices) + loaded_bytes<kConfig.b_major>(kBSlices);
        const OperandShare<kConfig.cluster_n, kConfig.grouping> a{ctx.args.a, tile.m_idx, rank_n, a_mask, a_slices};
        const OperandShare<kConfig.cluster_m, Grouping::kDense> b{ctx.args.b, tile.n_idx, rank_m, b_mask, kBSlices};
        KPlace<kBatchSum> a_place{ctx.first_k(tile), has_operand_per_group(kConfig.grouping) ? tile.group : 0};
        KPlace<kBatchSum> b_place{ctx.first_k(tile), tile.group};
        for (uint32_t k = 0; k < ctx.num_k_stages(tile); ++k, cursor.advance()) {
            cursor.producer_acquire();
            if constexpr (reads_c(kConfig))
                if (k == 0) prefetch_c<store_config(kConfig), kConfig.block_m>(ctx.args, tile, ctx.lane);
            if (!issuer) continue;
            const ptx::SmemAddr full = cursor.barriers.tile_full(cursor.stage);
            ptx::mbarrier_arrive_expect_tx(full, kConfig.k_blocks * block_bytes);
#pragma unroll
            for (int i = 0; i < kConfig.k_blocks; ++i) {
                load_share<kConfig.a_major, kMaps>(a, a_place, ctx.a_stage(cursor.stage, i), full);
                load_share<kConfig.b_major, kMaps>(b, b_place, ctx.b_stage(cursor.stage, i), full);
                a_place.advance(ctx.args.k);
                b_place.advance(ctx.args.k);
            }
        }
    }
}

// Keeps what the tile's group wants, and adds C where threads read it. Waves outside of D read no C: where C is D, another CTA
// may be writing the rows they would read instead.
template <Bf16GemmConfig kConfig, int kWaves>
DG_DEVICE void finish_sums(const Bf16GemmContext<kConfig>& ctx, float (&sums)[kWaves][kConfig.block_n / 2],
                           const Tile& tile) {
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave) {
        const uint32_t wave_row = ctx.first_row(tile) + wave * kWgmmaM;
        const uint32_t row = wave_row + ctx.row_in_wave();
        if constexpr (reads_c(kConfig))
            if (wave_row < ctx.args.m && tile.n_idx < ctx.args.n)
                add_c<store_config(kConfig)>(ctx.args, sums[wave], tile, row, ctx.lane);
        keep_rows_of_group<store_config(kConfig)>(ctx.args, sums[wave], tile, row);
    }
}

// What brings this warpgroup C.
template <Bf16GemmConfig kConfig>
DG_DEVICE auto staged_c(const Bf16GemmContext<kConfig>& ctx) {
    const Bf16GemmArgs& args = ctx.args;
    if constexpr (stages_c(kConfig))
        return StagedC<store_config(kConfig), Bf16GemmContext<kConfig>::kWaves>(args.c_map, args.c_box_rows, args.m, args.n,
                                                                                ctx.staging(), ctx.c_full());
    else
        return NoStagedC{};
}

template <Bf16GemmConfig kConfig>
DG_DEVICE void math_role(const Bf16GemmContext<kConfig>& ctx) {
    using Context = Bf16GemmContext<kConfig>;
    typename Context::Cursor cursor{ctx.barriers()};
    auto schedule = ctx.schedule();
    auto c = staged_c(ctx);
    // `between`: what may be done while the tile is stored (store_sums).
    const auto run = [&](const Tile& tile, const auto& between) {
        float sums[Context::kWaves][kConfig.block_n / 2];
        clear_sums(sums);
        if (ctx.has_product(tile))
            multiply_tile<kConfig, Context::kWaves>(ctx, cursor, tile, sums, c);
        else if constexpr (kConfig.grouping == Grouping::kKGrouped && kConfig.has_c)
            make_neutral(sums);
        if constexpr (stages_c(kConfig)) c.add_to(sums, tile, ctx.first_row(tile));
        finish_sums<kConfig>(ctx, sums, tile);
        store_sums<store_config(kConfig)>(ctx.args, sums, tile, ctx.staging(), {ctx.first_row(tile)}, 1 + ctx.warp / 4, between);
    };
    Tile tile;
    if constexpr (Context::kKGrouped) {  // whose schedule takes its time
        for (bool more = schedule.next(tile); more;) {
            const Tile current = tile;
            run(current, [&] { more = schedule.next(tile); });
        }
    } else {
        while (schedule.next(tile)) run(tile, [] {});
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
            if constexpr (stages_c(kConfig))
                for (int i = 0; i < kConfig.num_math_warpgroups; ++i)
                    ptx::mbarrier_init(smem + Context::kSmem.c_barrier_offset + i * 8, 1);
            ctx.barriers().init(1, Context::kMathWarps * Context::kClusterSize);
        }
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
