// The mainloop of a math warpgroup of the SM90 BF16 GEMM: one chain of sums along K in the accumulators.
#pragma once

#include <deep_gemm/kernels/bf16_gemm/sm90_context.cuh>
#include <deep_gemm/ptx/wgmma_bf16_shapes.cuh>

namespace deep_gemm {

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
// are done. By the second stage, the store of the tile before has left the staging area to `c`.
template <Bf16GemmConfig kConfig, int kActive, int kWaves, typename BroughtC>
DG_DEVICE void multiply_waves(const Bf16GemmContext<kConfig>& ctx, typename Bf16GemmContext<kConfig>::Cursor& cursor,
                              const Tile& tile, float (&sums)[kWaves][kConfig.block_n / 2], const BroughtC& c) {
    using Context = Bf16GemmContext<kConfig>;
    constexpr uint32_t kRequestC = 1;
    const uint32_t a_low = OperandDescriptor<kConfig.a_major>::low(ctx.a_stage(0, 0) + ctx.warp / 4 * kWaves * kWgmmaM * kBf16SpanBytes);
    const uint32_t b_low = OperandDescriptor<kConfig.b_major>::low(ctx.b_stage(0, 0));
    uint32_t last_stage = cursor.stage;
    const uint32_t num_k = ctx.num_k_stages(tile);
#pragma unroll 1
    for (uint32_t k = 0; k < num_k; ++k) {
        cursor.consumer_wait();
        multiply_stage<kConfig, kActive>(sums, a_low + cursor.stage * (Context::kSmem.a_stage >> 4),
                                         b_low + cursor.stage * (Context::kSmem.b_stage >> 4));
        if (k == min_of(kRequestC, num_k - 1)) c.request(tile, ctx.first_row(tile));
        ptx::wgmma_wait<1>();
        if (k > 0) consumer_release<Context::kClusterSize>(cursor.barriers, last_stage, ctx.lane);
        last_stage = cursor.stage;
        cursor.advance();
    }
    ptx::wgmma_wait<0>();
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave) ptx::pin_registers(sums[wave]);
    consumer_release<Context::kClusterSize>(cursor.barriers, last_stage, ctx.lane);
}

// The same with as many of the warpgroup's waves as have rows, a loop for each number of them; up to kMost have.
template <Bf16GemmConfig kConfig, int kMost, int kWaves, typename BroughtC>
DG_DEVICE void multiply_tile(const Bf16GemmContext<kConfig>& ctx, typename Bf16GemmContext<kConfig>::Cursor& cursor,
                             const Tile& tile, float (&sums)[kWaves][kConfig.block_n / 2], const BroughtC& c) {
    if constexpr (kMost > 0 && has_entry_per_group(kConfig.grouping)) {
        const uint32_t before = ctx.warp / 4 * kWaves;
        if (pieces_with_rows<kConfig.grouping>(tile, kWgmmaM, before + kMost) < before + kMost)
            return multiply_tile<kConfig, kMost - 1>(ctx, cursor, tile, sums, c);
    }
    if constexpr (kMost == 0)
        pass_stages<Bf16GemmContext<kConfig>::kClusterSize>(cursor, ctx.num_k_stages(tile), ctx.lane);
    else
        multiply_waves<kConfig, kMost>(ctx, cursor, tile, sums, c);
}

}  // namespace deep_gemm
