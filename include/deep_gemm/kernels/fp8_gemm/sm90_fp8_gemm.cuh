// SM90 FP8 GEMM: D[M,N] = C + (A * SFA) @ (B * SFB)^T, A [M,K] and B [N,K] E4M3 K-major, D BF16 or FP32.
//
//   global A, B --TMA--> smem stages --wgmma--> accumulators --promote (x SFA x SFB)--> FP32 sums --(+C)--> smem --TMA--> D
//   global SFA (SFB per block) --registers, well ahead--------------------^
//   global SFB (per row) --cp.async--> smem stages -----------------------^
//
//   barrier        arrivals                                          waits
//   tile_full[s]   1 (load role, + the stage's bytes); SFB per row:  every math warp
//                  + 32 (scale role's lanes, as their copies land)
//   tile_free[s]   every math warp of every CTA of the cluster       load role, scale role
//   named 1+w      the 128 threads of math warpgroup w               staging area of D free / staged
//
//   role     warps                       job
//   math     warpgroups 0..W-1           wgmma, promotion, epilogue; 64 rows a wave
//   load     warp 0 of warpgroup W       TMA of A and B, multicast within the cluster; runs ahead across tiles
//   scale    warp 1 of warpgroup W       SFB per row into the stages; idle otherwise
//
// The contract guarantees: K > 0, M and N > 0, 16-byte aligned rows, SFs for every row (or block) and every 128 of K.
#pragma once

#include <deep_gemm/epilogue/promote.cuh>
#include <deep_gemm/epilogue/scales.cuh>
#include <deep_gemm/epilogue/store.cuh>
#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/ptx/cluster.cuh>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/griddepcontrol.cuh>
#include <deep_gemm/ptx/setmaxnreg.cuh>
#include <deep_gemm/ptx/wgmma.cuh>
#include <deep_gemm/schedule/dense.cuh>
#include <deep_gemm/tile/pipeline.cuh>

namespace deep_gemm {

// What every role knows; built once by the entry.
template <Fp8GemmConfig kConfig>
struct Fp8GemmContext {
    static constexpr Fp8GemmSmem kSmem = smem_plan(kConfig);
    static constexpr int kWaves = kConfig.block_m / kWgmmaM / kConfig.num_math_warpgroups;
    static constexpr int kMathWarps = kConfig.num_math_warpgroups * 4;
    static constexpr int kClusterSize = kConfig.cluster_m * kConfig.cluster_n;
    static constexpr bool kSfbPerRow = kConfig.sfb_granularity == ScaleGranularity::kPerRow;
    // 128-column blocks of SFB a tile can touch.
    static constexpr int kSfbBlocks = kSfbPerRow ? 0 : kScaleBlock % kConfig.block_n == 0 ? 1 : 2;
    // K blocks whose scales are loaded at once: narrow tiles take them faster, and have the registers for more.
    static constexpr int kScaleBatch = kConfig.block_n <= 64 ? 8 : 4;
    using Feed = ScaleFeed<kWaves, kSfbBlocks, kScaleBatch>;
    using Schedule = DenseSchedule<kConfig.block_m, kConfig.block_n, kConfig.cluster_m, kConfig.cluster_n>;
    using Barriers = PipelineBarriers<kConfig.num_stages>;
    using Cursor = PipelineCursor<kConfig.num_stages>;

    static_assert(kConfig.block_m % (kWgmmaM * kConfig.num_math_warpgroups) == 0, "whole waves for each warpgroup");
    static_assert(kConfig.block_n % (8 * kConfig.cluster_m) == 0, "multicast slices are whole swizzle atoms");
    static_assert(kSmem.a_stage % 1024 == 0 && kSmem.b_stage % 1024 == 0, "stages start on swizzle atoms");
    static_assert(kConfig.num_accumulators == 2 || kConfig.n_parts == 1, "parts alternate between two accumulators");

    const Fp8GemmArgs& args;
    ptx::SmemAddr smem;  // 1024-byte aligned
    uint32_t warp, lane, cluster_rank;

    DG_DEVICE uint32_t num_k_blocks() const { return ceil_div<uint32_t>(args.k, kBlockK); }
    DG_DEVICE Barriers barriers() const { return {smem + kSmem.barrier_offset}; }
    DG_DEVICE Schedule schedule() const { return {args.m, args.n, args.raster, cluster_rank}; }
    DG_DEVICE ptx::SmemAddr a_stage(uint32_t s) const { return smem + kSmem.a_offset + s * kSmem.a_stage; }
    DG_DEVICE ptx::SmemAddr b_stage(uint32_t s) const { return smem + kSmem.b_offset + s * kSmem.b_stage; }
    DG_DEVICE ptx::SmemAddr sfb_stage(uint32_t s) const { return smem + kSmem.sfb_offset + s * kSmem.sfb_stage; }
    // This math thread's first row of a tile.
    DG_DEVICE uint32_t row_in_tile() const { return warp / 4 * kWaves * kWgmmaM + warp % 4 * 16 + lane / 4; }
};

// Loads `rows` x 128 bytes of an operand into a stage. Shared by several CTAs: this one's slice, multicast to `mask`.
template <bool kShared>
DG_DEVICE void load_slice(const TensorMap& map, ptx::SmemAddr stage, ptx::SmemAddr barrier, uint32_t k_idx, uint32_t row,
                          uint32_t first_in_tile, uint16_t mask, uint64_t policy) {
    const ptx::SmemAddr destination = stage + first_in_tile * kBlockK;
    if constexpr (kShared)
        ptx::tma_load_2d_multicast(map, destination, barrier, k_idx, row + first_in_tile, policy, mask);
    else
        ptx::tma_load_2d(map, destination, barrier, k_idx, row + first_in_tile, policy);
}

// One warp keeps the ring of A and B stages full: all lanes walk the ring, so that its state stays uniform; one issues.
template <Fp8GemmConfig kConfig>
DG_DEVICE void load_role(const Fp8GemmContext<kConfig>& ctx) {
    using Context = Fp8GemmContext<kConfig>;
    const bool issuer = ptx::elect_one();
    const SliceArgs a_slices = ctx.args.a_slices;
    const uint32_t stage_bytes = a_slices.rows * a_slices.count * kBlockK + Context::kSmem.b_stage;
    const uint32_t rank_m = ctx.cluster_rank % kConfig.cluster_m;
    const uint32_t rank_n = ctx.cluster_rank / kConfig.cluster_m;
    // CTAs with this rank_m differ in n: they share A. CTAs with this rank_n differ in m: they share B.
    uint16_t a_mask = 0;
    for (uint32_t i = 0; i < kConfig.cluster_n; ++i) a_mask |= 1u << (i * kConfig.cluster_m + rank_m);
    const uint16_t b_mask = ((1u << kConfig.cluster_m) - 1) << (rank_n * kConfig.cluster_m);
    const uint64_t policy = ptx::evict_normal_policy();

    typename Context::Cursor cursor{ctx.barriers()};
    auto schedule = ctx.schedule();
    for (TileCoord tile; schedule.next(tile);) {
        for (uint32_t k_idx = 0; k_idx < ctx.args.k; k_idx += kBlockK, cursor.advance()) {
            cursor.producer_acquire();
            if (!issuer) continue;
            const ptx::SmemAddr full = cursor.barriers.tile_full(cursor.stage);
            ptx::mbarrier_arrive_expect_tx(full, stage_bytes);
            if (rank_n < a_slices.count)
                load_slice<(kConfig.cluster_n > 1)>(ctx.args.a, ctx.a_stage(cursor.stage), full, k_idx, tile.m_idx,
                                                    rank_n * a_slices.rows, a_mask, policy);
            load_slice<(kConfig.cluster_m > 1)>(ctx.args.b, ctx.b_stage(cursor.stage), full, k_idx, tile.n_idx,
                                                rank_m * (kConfig.block_n / kConfig.cluster_m), b_mask, policy);
        }
    }
}

// SFB per row: one warp copies each K block's factors of the tile's columns into its stage.
template <Fp8GemmConfig kConfig>
DG_DEVICE void scale_role(const Fp8GemmContext<kConfig>& ctx) {
    typename Fp8GemmContext<kConfig>::Cursor cursor{ctx.barriers()};
    ColumnScaleCopier<kConfig.block_n> copier(ctx.args.sfb, ctx.args.n, ctx.lane);
    auto schedule = ctx.schedule();
    for (TileCoord tile; schedule.next(tile);) {
        copier.restart(tile.n_idx);
        for (uint32_t k = 0; k < ctx.num_k_blocks(); ++k, cursor.advance()) {
            cursor.producer_acquire();
            copier.copy(ctx.sfb_stage(cursor.stage));
            ptx::mbarrier_arrive_on_cp_async(cursor.barriers.tile_full(cursor.stage));
        }
    }
}

// One math warpgroup's work on one tile: issue the products of a K block, retire them into the sums.
template <Fp8GemmConfig kConfig>
class MathTile {
  public:
    using Context = Fp8GemmContext<kConfig>;
    static constexpr int kN = kConfig.block_n;
    static constexpr int kFragment = kN / 2;  // registers of one 64-row wave
    static constexpr int kPartN = kN / kConfig.n_parts;
    static constexpr int kUnits = Context::kWaves * kConfig.n_parts;  // products of a K block: wave by wave, part by part

    DG_DEVICE MathTile(const Context& ctx, typename Context::Cursor& cursor, typename Context::Feed& feed,
                       uint32_t n_idx)
        : ctx_(ctx),
          cursor_(cursor),
          feed_(feed),
          first_block_columns_(kScaleBlock - n_idx % kScaleBlock),
          a_low_(ptx::k_major_descriptor_low(ctx.a_stage(0) + ctx.warp / 4 * Context::kWaves * kWgmmaM * kBlockK)),
          b_low_(ptx::k_major_descriptor_low(ctx.b_stage(0))) {
#pragma unroll
        for (int wave = 0; wave < Context::kWaves; ++wave)
#pragma unroll
            for (int i = 0; i < kFragment; ++i) sums[wave][i] = 0.0f;
    }

    // Walks all of K.
    DG_DEVICE void run() {
        if constexpr (kConfig.num_accumulators == 2)
            run_two_deep();
        else
            run_one_deep();
    }

    float sums[Context::kWaves][kFragment];

  private:
    using Scales = typename Context::Feed::Scales;

    // Starts product `unit` of the stage under the cursor.
    DG_DEVICE void issue(float (&accumulators)[kPartN / 2], int unit) {
        const int wave = unit / kConfig.n_parts, part = unit % kConfig.n_parts;
        const uint32_t a = a_low_ + cursor_.stage * (Context::kSmem.a_stage >> 4) + wave * (kWgmmaM * kBlockK >> 4);
        const uint32_t b = b_low_ + cursor_.stage * (Context::kSmem.b_stage >> 4) + part * (kPartN * kBlockK >> 4);
        ptx::pin_registers(accumulators);
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kBlockK / 32; ++k)
            ptx::WgmmaE4m3<kPartN>::mma(accumulators, ptx::k_major_descriptor(a + k * 2),
                                        ptx::k_major_descriptor(b + k * 2), k != 0);
        ptx::wgmma_commit();
    }

    // Waits for all but the newest kStillPending products, then promotes product kUnit of `stage`; the last product of a
    // K block gives the stage back (before the promotion, unless that still reads SFB from it).
    template <int kStillPending, int kUnit>
    DG_DEVICE void retire(float (&accumulators)[kPartN / 2], const Scales& scales, uint32_t stage, bool any = true) {
        constexpr int kWave = kUnit / kConfig.n_parts, kFirst = kUnit % kConfig.n_parts * kPartN;
        constexpr bool kLast = kUnit == kUnits - 1;
        float* part_sums = sums[kWave] + kFirst / 2;
        ptx::wgmma_wait<kStillPending>();
        ptx::pin_registers(accumulators);
        if (kLast && !Context::kSfbPerRow && any) release(stage);
        if constexpr (Context::kSfbPerRow)
            promote_by_column<kPartN>(accumulators, part_sums, scales.value[kWave],
                                      ctx_.sfb_stage(stage) + kFirst * sizeof(float), ctx_.lane);
        else
            promote_by_block<kN, kFirst, kPartN>(accumulators, part_sums, scales.value[kWave], first_block_columns_);
        if (kLast && Context::kSfbPerRow && any) release(stage);
    }

    DG_DEVICE void release(uint32_t stage) {
        consumer_release<Context::kClusterSize>(cursor_.barriers, stage, ctx_.lane);
    }

    // Calls step(k, i) for every K block, i being its place in the batch of scales.
    template <typename Step>
    DG_DEVICE void for_each_k_block(const Step& step) {
        constexpr int kBatch = Context::kScaleBatch;
        const uint32_t num_k = ctx_.num_k_blocks();
#pragma unroll 1
        for (uint32_t k = 0; k < num_k; k += kBatch) {
            feed_.turn();
#pragma unroll
            for (int i = 0; i < kBatch; ++i)
                if (k + i < num_k) step(k + i, i);
        }
    }

    // One accumulator: the other warpgroups' products run while this one promotes.
    DG_DEVICE void run_one_deep() {
        for_each_k_block([&](uint32_t, int i) {
            const Scales scales = feed_.at(i);
            cursor_.consumer_wait();
            for_each_unit([&](auto unit) {
                issue(accumulators_[0], unit.value);
                retire<0, unit.value>(accumulators_[0], scales, cursor_.stage);
            });
            cursor_.advance();
        });
    }

    // Two accumulators: the next product is already running while this one is promoted.
    DG_DEVICE void run_two_deep() {
        // Before the first product there is none to retire: zeros stand in for it, so that the loop has no special case.
#pragma unroll
        for (int r = 0; r < kPartN / 2; ++r) accumulators_[1][r] = 0.0f;
        scales_[1] = {};
        stage_ = cursor_.stage;
        for_each_k_block([&](uint32_t k, int i) {
            scales_[i % 2] = feed_.at(i);
            cursor_.consumer_wait();
            for_each_unit([&](auto unit) {
                constexpr int kUnit = unit.value;
                const int slot = (i * kUnits + kUnit) % 2;
                issue(accumulators_[slot], kUnit);
                if constexpr (kUnit > 0)
                    retire<1, kUnit - 1>(accumulators_[1 - slot], scales_[i % 2], cursor_.stage);
                else
                    retire<1, kUnits - 1>(accumulators_[1 - slot], scales_[1 - i % 2], stage_, i > 0 || k > 0);
            });
            stage_ = cursor_.stage;
            cursor_.advance();
        });
        if (ctx_.num_k_blocks() % 2 == 1)
            retire<0, kUnits - 1>(accumulators_[(kUnits - 1) % 2], scales_[0], stage_);
        else
            retire<0, kUnits - 1>(accumulators_[1], scales_[1], stage_);
    }

    template <int kUnit = 0, typename Step>
    DG_DEVICE void for_each_unit(const Step& step) {
        if constexpr (kUnit < kUnits) {
            step(IntConstant<kUnit>{});
            for_each_unit<kUnit + 1>(step);
        }
    }

    const Context& ctx_;
    typename Context::Cursor& cursor_;
    typename Context::Feed& feed_;
    uint32_t first_block_columns_;
    uint32_t a_low_, b_low_;  // descriptors of stage 0
    float accumulators_[kConfig.num_accumulators][kPartN / 2];
    Scales scales_[kConfig.num_accumulators];
    uint32_t stage_;  // of the last K block, whose last product is not yet retired
};

// Adds C and stores through the warpgroup's own part of the staging area.
template <Fp8GemmConfig kConfig>
DG_DEVICE void store_tile(const Fp8GemmContext<kConfig>& ctx, MathTile<kConfig>& math, uint32_t warpgroup,
                          const TileCoord& tile) {
    using Context = Fp8GemmContext<kConfig>;
    constexpr uint32_t kStagingBytes = kConfig.store_boxes * Context::kSmem.store_tile;
    if constexpr (kConfig.has_c)
        for (int wave = 0; wave < Context::kWaves; ++wave)
            add_c<kConfig>(ctx.args, math.sums[wave], tile.m_idx + ctx.row_in_tile() + wave * kWgmmaM, tile.n_idx, ctx.lane);
    store_sums<kConfig, Context::kWaves>(ctx.args, math.sums, ctx.smem + Context::kSmem.d_offset + warpgroup * kStagingBytes,
                                         tile.m_idx + warpgroup * Context::kWaves * kWgmmaM, tile.n_idx, 1 + warpgroup);
}

// Tile after tile: while one is stored, the next one's first factors are on their way.
template <Fp8GemmConfig kConfig>
DG_DEVICE void math_role(const Fp8GemmContext<kConfig>& ctx) {
    const uint32_t warpgroup = ctx.warp / 4;
    typename Fp8GemmContext<kConfig>::Cursor cursor{ctx.barriers()};
    auto schedule = ctx.schedule();
    TileCoord tile;
    if (!schedule.next(tile)) return;
    typename Fp8GemmContext<kConfig>::Feed feed(ctx.args, ctx.lane);
    feed.restart(tile.m_idx + ctx.row_in_tile(), tile.n_idx);
    for (bool more = true; more;) {
        MathTile<kConfig> math(ctx, cursor, feed, tile.n_idx);
        math.run();
        const TileCoord finished = tile;
        more = schedule.next(tile);
        if (more) feed.restart(tile.m_idx + ctx.row_in_tile(), tile.n_idx);
        store_tile(ctx, math, warpgroup, finished);
    }
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
            ptx::prefetch_tensor_map(args.a);
            ptx::prefetch_tensor_map(args.b);
            ptx::prefetch_tensor_map(args.d);
        }
        ctx.barriers().init(Context::kSfbPerRow ? 1 + 32 : 1, Context::kMathWarps * Context::kClusterSize, ctx.lane);
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
        if (Context::kSfbPerRow && warp == Context::kMathWarps + 1) scale_role(ctx);
    } else {
        if constexpr (kConfig.num_math_warpgroups > 1) ptx::raise_register_limit<math_registers(kConfig)>();
        math_role(ctx);
    }
    // Peers may still arrive on this CTA's barriers or write into its stages.
    if constexpr (Context::kClusterSize > 1) ptx::cluster_sync();
}

}  // namespace deep_gemm
