// SM90 FP8 GEMM: D[M,N] = C + (A * SFA) @ (B * SFB)^T, A [M,K] and B [N,K] E4M3 K-major, D BF16 or FP32.
//
//   global A, B --TMA--> smem stages --wgmma--> accumulators --promote (x SFA x SFB)--> FP32 sums --(+C)--> smem --TMA--> D
//   global SFA (SFB per block) --registers, well ahead--------------------^
//   global SFB (per row; of some tiles SFA, too) --TMA or cp.async--> smem stages ^
//
//   barrier        arrivals                                          waits
//   tile_full[s]   1 (load role, + the stage's bytes, if any); and   every math warp
//                  32 where there is a scale role (its lanes, as their copies land)
//   tile_free[s]   every math warp of every CTA of the cluster       load role, scale role
//   named 1+w      the 128 threads of math warpgroup w               staging area of D free / staged
//   named 1+W+w    math warpgroup w and the one before it            math warpgroup w, its turn to start a product (kTakesProductTurns)
//
//   role     warps                       job
//   math     warpgroups 0..W-1           wgmma, promotion, epilogue; 64 rows a wave
//   load     warp 0 of warpgroup W       TMA of A and B, multicast within the cluster; runs ahead across tiles; kKGrouped: makes
//                                        the maps of each group it comes to; C that is D: asks for it ahead of the epilogue
//   scale    warp 1 of warpgroup W       SFB per row into the stages, and SFA where the math role looks for it there, unless the load
//                                        role does it; kKGrouped: asks for C that is not D ahead of the epilogue
//
// The contract guarantees: K > 0 (kMasked, kPsum, and groups of kKGrouped: K >= 0), M and N > 0, 16-byte aligned rows, SFs for every row (or block) and every 128 of K.
#pragma once

#include <deep_gemm/epilogue/add_c.cuh>
#include <deep_gemm/epilogue/store.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_context.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_math_tile.cuh>
#include <deep_gemm/ptx/cluster.cuh>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/griddepcontrol.cuh>
#include <deep_gemm/ptx/setmaxnreg.cuh>
#include <deep_gemm/tile/load.cuh>

namespace deep_gemm {

// One slice of an operand: 128 bytes of K by the rows of the map's box.
struct Slice {
    const TensorMap& map;
    uint32_t k_idx, row;
    int32_t group;       // coordinate in a 3-D map
    uint32_t first_in_tile;  // row of the tile where it starts
};

// Loads a slice into a stage; with multicast, into the same place of every CTA of `mask`.
template <Sharing kSharing, Grouping kGrouping>
DG_DEVICE void load_slice(const Slice& slice, ptx::SmemAddr stage, ptx::SmemAddr barrier, uint16_t mask) {
    const ptx::SmemAddr destination = stage + slice.first_in_tile * kBlockK;
    const uint32_t row = slice.row + slice.first_in_tile;
    load_box<kSharing, kGrouping>({slice.map, slice.k_idx, row, slice.group}, destination, barrier, mask);
}

// One warp keeps the ring of A and B stages full: all lanes walk the ring, so that its state stays uniform; one issues.
template <Fp8GemmConfig kConfig>
DG_DEVICE void load_role(const Fp8GemmContext<kConfig>& ctx) {
    using Context = Fp8GemmContext<kConfig>;
    // Of two or three dimensions. The cast is for NVRTC 12.4 and before, which take no mix of const and non-const here.
    constexpr Grouping kMaps = Context::kKGrouped ? Grouping::kDense : static_cast<Grouping>(kConfig.grouping);
    const bool issuer = ptx::elect_one();
    const SliceArgs a_slices = ctx.args.a_slices;
    const auto [rank_m, rank_n, a_mask, b_mask] = place_in_cluster<kConfig.cluster_m, kConfig.cluster_n>(ctx.cluster_rank);

    typename Context::Cursor cursor{ctx.barriers()};
    auto schedule = ctx.schedule();
    if constexpr (Context::kKGrouped) schedule.start_late({.per_128_of_k = 960, .once = 3600});
    auto maps = ctx.operand_maps();
    ScaleLoads<kConfig.block_m> sfa;
    ScaleLoads<kConfig.block_n> sfb;
    const auto give_empty_stage = [&] {
        if constexpr (!Context::kStartsUnderStore) return;
        cursor.producer_acquire();
        if (issuer) ptx::mbarrier_arrive(cursor.barriers.tile_full(cursor.stage));
        cursor.advance();
    };
    for (Tile tile; schedule.next(tile);) {
        if (!ctx.has_product(tile)) {
            give_empty_stage();
            continue;
        }
        maps.turn_to(tile, ctx.args.m, ctx.args.n);
        const uint32_t slices = pieces_with_rows<kConfig.grouping>(tile, a_slices.rows, a_slices.count);
        uint32_t stage_bytes = a_slices.rows * slices * kConfig.k_blocks * kBlockK + Context::kSmem.b_stage;
        if (ctx.loads_scales()) {
            if constexpr (Context::kHoldsFactors) sfa.restart(ctx.args.sfa, ctx.args.m, tile.m_idx, ctx.scale_group(tile));
            sfb.restart(ctx.args.sfb, ctx.args.n, tile.n_idx, ctx.scale_group(tile));
            stage_bytes += sfa.bytes() + sfb.bytes();
        }
        for (uint32_t k = 0; k < ctx.num_k_stages(tile); ++k, cursor.advance()) {
            cursor.producer_acquire();
            if (!issuer) continue;
            const ptx::SmemAddr full = cursor.barriers.tile_full(cursor.stage);
            ptx::mbarrier_arrive_expect_tx(full, stage_bytes);
#pragma unroll
            for (int i = 0; i < kConfig.k_blocks; ++i) {
                const uint32_t k_idx = (k * kConfig.k_blocks + i) * kBlockK;
                const int32_t a_group = has_operand_per_group(kConfig.grouping) ? tile.group : 0;
                for_each_slice<kConfig.cluster_n, kConfig.grouping>(rank_n, slices, [&](uint32_t slice) {
                    const Slice a{maps.a(), k_idx, tile.m_idx, a_group, slice * a_slices.rows};
                    load_slice<sharing_among(kConfig.cluster_n), kMaps>(a, ctx.a_stage(cursor.stage, i), full, a_mask);
                });
                const Slice b{maps.b(), k_idx, tile.n_idx, tile.group, rank_m * (kConfig.block_n / kConfig.cluster_m)};
                load_slice<sharing_among(kConfig.cluster_m), kMaps>(b, ctx.b_stage(cursor.stage, i), full, b_mask);
            }
            if constexpr (Context::kMayLoadScales) {
                sfa.load(k, ctx.sfa_stage(cursor.stage), full);
                sfb.load(k, ctx.sfb_stage(cursor.stage, 0), full);
            }
            if constexpr (kConfig.c_is_d)
                prefetch_boxes<store_config(kConfig), kConfig.block_m>(ctx.args.d, tile, ctx.args.m, k, ctx.num_k_stages(tile));
        }
    }
    give_empty_stage();
}

// SFB per row that the load role does not bring: one warp copies each K block's factors of the tile's columns, and of its rows if need
// be, into its stage.
template <Fp8GemmConfig kConfig>
DG_DEVICE void scale_role(const Fp8GemmContext<kConfig>& ctx) {
    using Context = Fp8GemmContext<kConfig>;
    typename Context::Cursor cursor{ctx.barriers()};
    ScaleCopier<kConfig.block_m> sfa(ctx.args.sfa, ctx.args.m, ctx.lane);
    ScaleCopier<kConfig.block_n> sfb(ctx.args.sfb, ctx.args.n, ctx.lane);
    auto schedule = ctx.schedule();
    for (Tile tile; schedule.next(tile);) {
        if (!ctx.has_product(tile)) continue;
        if constexpr (Context::kHoldsFactors) sfa.restart(tile.m_idx, ctx.scale_group(tile));
        sfb.restart(tile.n_idx, ctx.scale_group(tile));
        for (uint32_t k = 0; k < ctx.num_k_stages(tile); ++k, cursor.advance()) {
            cursor.producer_acquire();
            if constexpr (kConfig.has_c && !kConfig.c_is_d && Context::kKGrouped)
                if (k == 0) prefetch_c<store_config(kConfig), kConfig.block_m>(ctx.args, tile, ctx.lane);
            for (int i = 0; i < kConfig.k_blocks; ++i) {
                if constexpr (Context::kHoldsFactors) sfa.copy(ctx.sfa_stage(cursor.stage));
                if ((k * kConfig.k_blocks + i) * kBlockK < ctx.k_of(tile))
                    sfb.copy(ctx.sfb_stage(cursor.stage, i));
                else
                    sfb.clear(ctx.sfb_stage(cursor.stage, i));
            }
            ptx::mbarrier_arrive_on_cp_async(cursor.barriers.tile_full(cursor.stage));
        }
    }
}

// Adds C, or drops rows of no group, and stores through the warpgroup's own part of the staging area. `between`: what may be done
// meanwhile (store_sums).
template <Fp8GemmConfig kConfig>
DG_DEVICE void store_tile(const Fp8GemmContext<kConfig>& ctx, MathTile<kConfig>& math, uint32_t warpgroup, const Tile& tile, const auto& between) {
    using Context = Fp8GemmContext<kConfig>;
    constexpr uint32_t kStagingBytes = kConfig.store_boxes * Context::kSmem.store_tile;
    const WavePlaces places = ctx.wave_places(tile);
#pragma unroll
    for (int wave = 0; wave < Context::kWaves; ++wave) {
        const uint32_t wave_row = places.row_of(wave), thread_row = wave_row + ctx.row_in_wave();
        // Waves outside of D read no C: where C is D, another CTA may be writing the rows they would read instead.
        if constexpr (kConfig.has_c && !kConfig.c_is_d)
            if (wave_row < ctx.args.m && tile.n_idx < ctx.args.n)
                add_c<store_config(kConfig)>(ctx.args, math.sums[wave], tile, thread_row, ctx.lane);
        keep_rows_of_group<store_config(kConfig)>(ctx.args, math.sums[wave], tile, thread_row);
    }
    store_sums<store_config(kConfig)>(ctx.args, math.sums, tile,
                                      ctx.smem + Context::kSmem.d_offset + warpgroup * kStagingBytes, places, 1 + warpgroup, between);
}

// Tile after tile: while one is stored, the next one's first factors are on their way, and of some its first product. Where factors come
// by way of the stages, the next tile is found meanwhile.
template <Fp8GemmConfig kConfig>
DG_DEVICE void math_role(const Fp8GemmContext<kConfig>& ctx) {
    typename Fp8GemmContext<kConfig>::Cursor cursor{ctx.barriers()};
    const uint32_t warpgroup = ctx.warpgroup();
    auto schedule = ctx.schedule();
    Tile tile;
    if (!schedule.next(tile)) return;
    typename Fp8GemmContext<kConfig>::Feed feed(ctx.args, ctx.lane);
    const auto restart = [&] {
        if (!Fp8GemmContext<kConfig>::kHoldsFactors && ctx.has_product(tile))
            feed.restart(tile.m_idx + ctx.row_in_tile(), ctx.wave_places(tile).stride, tile.n_idx, ctx.scale_group(tile),
                         ctx.k_of(tile));
    };
    restart();
    MathTile<kConfig> math(ctx, cursor, feed);
    math.issue_ahead();
    for (bool more = true; more;) {
        math.turn_to(tile.n_idx);
        math.run(tile);
        const Tile finished = tile;
        const auto advance = [&] { more = schedule.next(tile); };
        if constexpr (Fp8GemmContext<kConfig>::kHoldsFactors) {  // there are no first factors to start
            store_tile(ctx, math, warpgroup, finished, advance);
        } else {
            math.issue_ahead();
            advance();
            if (more) restart();
            store_tile(ctx, math, warpgroup, finished, [] {});
        }
    }
    math.end();
    if (threadIdx.x % kWarpgroupThreads == 0) ptx::bulk_wait_group<0>();
}

// Sets the stage, then hands each warpgroup its role.
template <Fp8GemmConfig kConfig>
DG_DEVICE void sm90_fp8_gemm(const Fp8GemmArgs& args) {
    using Context = Fp8GemmContext<kConfig>;
    extern __shared__ uint8_t dynamic_smem[];
    const ptx::SmemAddr smem = align_up<uint32_t>(ptx::smem_addr(dynamic_smem), 1024);
    const uint32_t warp = ptx::broadcast_lane0(threadIdx.x / 32);
    const Context ctx{args, smem, warp, ptx::lane_id(), Context::kClusterSize > 1 ? ptx::cluster_rank() : 0};

    if (warp == Context::kMathWarps) {
        if (ptx::elect_one()) {
            if constexpr (!Context::kKGrouped) {
                ptx::prefetch_tensor_map(args.a);
                ptx::prefetch_tensor_map(args.b);
            }
            ptx::prefetch_tensor_map(args.d);
            ctx.barriers().init(ctx.copies_scales() ? 1 + 32 : 1, Context::kMathWarps * Context::kClusterSize);
        }
    }
    if constexpr (Context::kClusterSize > 1)
        ptx::cluster_sync();
    else
        ptx::cta_sync();
    ptx::wait_for_primary_grid();
    ptx::launch_dependent_grid();

    if (warp >= Context::kMathWarps) {
        if constexpr (kConfig.num_math_warpgroups > 1) ptx::lower_register_limit<load_registers(kConfig)>();
        if (warp == Context::kMathWarps) load_role(ctx);
        if constexpr (Context::kSfbPerRow)
            if (warp == Context::kMathWarps + 1 && ctx.copies_scales()) scale_role(ctx);
    } else {
        if constexpr (kConfig.num_math_warpgroups > 1) ptx::raise_register_limit<math_registers(kConfig)>();
        math_role(ctx);
    }
    // Peers may still arrive on this CTA's barriers or write into its stages.
    if constexpr (Context::kClusterSize > 1) ptx::cluster_sync();
}

}  // namespace deep_gemm
