// The loop over K of tiles with SFB per row whose warpgroups have several waves: they hold the factors of columns for all of them.
#pragma once

#include <deep_gemm/epilogue/promote.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_context.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_products.cuh>

namespace deep_gemm {

// One product at a time, and factors of columns in registers from the first wave on. Products leave loads from shared memory a
// quarter of its bandwidth, so they are spread: half of them come under the first product, the rest during its promotion, but
// for a few that came in the last promotion of the stage before. What is still on its way when a product is issued delays it.
template <int kWavesInUse, Fp8GemmConfig kConfig>
DG_DEVICE void multiply_holding_factors(const Fp8GemmContext<kConfig>& ctx, typename Fp8GemmContext<kConfig>::Cursor& cursor,
                                        const Products<kConfig>& products, typename Products<kConfig>::Accumulators& accumulators,
                                        float (&sums)[Fp8GemmContext<kConfig>::kWaves][kConfig.block_n / 2], uint32_t num_stages) {
    using Context = Fp8GemmContext<kConfig>;
    constexpr int kN = kConfig.block_n;
    // Columns of the next stage. Groups of K wait for stages more often, and lose by looking ahead.
    constexpr int kNext = Context::kKGrouped ? 0 : 8, kUnderProduct = min_of(kN, kNext + kN / 2);
    HeldColumnFactors<kN> sfb;
    const auto staged_in = [&](uint32_t s, uint32_t lane) { return StagedColumnFactors(ctx.sfb_stage(s, 0), lane); };
    if constexpr (kNext > 0) {
        cursor.consumer_wait();
        sfb.template fetch<0, kNext>(staged_in(cursor.stage, ctx.lane));
    }
    auto current = products.operands(cursor.stage);
#pragma unroll 1
    for (uint32_t left = num_stages;; --left) {
        const bool more = left > 1;
        const uint32_t stage = cursor.stage;
        auto next = current;
        if constexpr (kNext == 0) cursor.consumer_wait();
        for_each_product<kWavesInUse>([&](auto wave) {
            constexpr bool kFirst = wave.value == 0, kLast = wave.value == kWavesInUse - 1;
            products.issue(accumulators, wave.value, current);
            ptx::keep_order(ctx.args.n);
            const uint32_t lane = ptx::lane_id_read_here();
            const auto sfa = read_staged_sfa(ctx.sfa_stage(stage), ctx.row_in_tile(lane) + wave.value * Context::kWaveStride);
            const auto staged = staged_in(stage, lane);
            if constexpr (kFirst) sfb.template fetch<kNext, kUnderProduct>(staged);
            if constexpr (kLast) {
                cursor.advance();
                next = products.operands(cursor.stage);
                // Made while this product runs, not ahead of the next one. Tiles of one group were no faster by it.
                if constexpr (Context::kKGrouped) ptx::keep_order(next.a & next.b);
            }
            if (kLast && kNext > 0 && more) cursor.consumer_wait();
            ptx::wgmma_wait<0>();
            ptx::pin_registers(accumulators.k_block[0]);
            if (kLast && !kFirst) ctx.release(cursor, stage);
            const auto promote = [&](auto first, auto end) {
                promote_by_column<first.value, end.value>(accumulators.k_block[0], sums[wave.value], sfa.value[0],
                                                          ArrivingColumnFactors<kN, kFirst ? kUnderProduct : kN>{sfb, staged});
            };
            constexpr int kSplit = kLast ? kNext : 0;
            promote(IntConstant<0>{}, IntConstant<kSplit>{});
            if (kSplit > 0 && more) {
                ptx::keep_order(ctx.args.n);
                sfb.template fetch<0, kNext>(staged_in(cursor.stage, lane));
            }
            promote(IntConstant<kSplit>{}, IntConstant<kN>{});
            if (kLast && kFirst) ctx.release(cursor, stage);
        });
        if (!more) return;
        current = next;
    }
}

}  // namespace deep_gemm
