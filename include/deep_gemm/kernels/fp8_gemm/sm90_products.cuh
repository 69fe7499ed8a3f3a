// The products of a math warpgroup of the SM90 FP8 GEMM. A product is what one commit covers: for each K block of a stage, 64 rows
// (a wave) by all or half of the tile's columns (a part).
#pragma once

#include <deep_gemm/kernels/fp8_gemm/sm90_context.cuh>
#include <deep_gemm/ptx/cluster.cuh>
#include <deep_gemm/ptx/wgmma_shapes.cuh>

namespace deep_gemm {

// Calls step(IntConstant<i>) for the products of a stage.
template <int kProducts, int kProduct = 0, typename Step>
DG_DEVICE void for_each_product(const Step& step) {
    if constexpr (kProduct < kProducts) {
        step(IntConstant<kProduct>{});
        for_each_product<kProducts, kProduct + 1>(step);
    }
}

// Turns at starting a product: a warpgroup starts one when the warpgroup before it has started its own.
template <bool kTaken, int kWarpgroups>
class ProductTurns {
  public:
    // The first turn is warpgroup 0's.
    DG_DEVICE explicit ProductTurns(uint32_t warpgroup) : warpgroup_(warpgroup) {
        if (warpgroup == kWarpgroups - 1) pass();
    }
    DG_DEVICE void await() const {
        if constexpr (kTaken) ptx::named_barrier_sync(kFirstBarrier + warpgroup_, kBoth);
    }
    DG_DEVICE void pass() const {
        if constexpr (kTaken)
            ptx::named_barrier_arrive(kFirstBarrier + (warpgroup_ == kWarpgroups - 1 ? 0 : warpgroup_ + 1), kBoth);
    }
    // After the last product: leaves no barrier half full.
    DG_DEVICE void end() const {
        if (warpgroup_ == 0) await();
    }

  private:
    static constexpr uint32_t kFirstBarrier = 1 + kWarpgroups, kBoth = 2 * kWarpgroupThreads;  // barriers below are the epilogue's
    uint32_t warpgroup_;
};

template <Fp8GemmConfig kConfig>
class Products {
  public:
    using Context = Fp8GemmContext<kConfig>;
    static constexpr int kPartN = kConfig.block_n / kConfig.n_parts;
    static constexpr int kKBlocks = kConfig.k_blocks;

    struct Accumulators {
        float k_block[kKBlocks][kPartN / 2];
    };
    // Low words of the descriptors of a stage.
    struct Operands {
        uint32_t a, b;
    };

    DG_DEVICE explicit Products(const Context& ctx)
        : ctx_(ctx),
          a_low_(low_word(Context::kSmem.a_offset) + ctx.warpgroup() * (Context::kFirstWaveStride * kBlockK >> 4)),
          b_low_(low_word(Context::kSmem.b_offset)) {}

    DG_DEVICE Operands operands(uint32_t stage) const {
        return {a_low_ + stage * (Context::kSmem.a_stage >> 4), b_low_ + stage * (Context::kSmem.b_stage >> 4)};
    }

    // Starts product `product` of a stage.
    DG_DEVICE void issue(Accumulators& accumulators, int product, const Operands& operands) const {
        const int wave = product / kConfig.n_parts, part = product % kConfig.n_parts;
        issue_columns<kPartN>(accumulators, operands.a + wave * (Context::kWaveStride * kBlockK >> 4),
                              operands.b + part * (kPartN * kBlockK >> 4));
    }

    // Starts this warpgroup's half of the columns of the wave that two share.
    DG_DEVICE void issue_shared(Accumulators& accumulators, const Operands& operands) const {
        constexpr int kHalf = kConfig.block_n / 2;
        const uint32_t below = Context::kWaveStride - ctx_.warpgroup() * Context::kFirstWaveStride;
        issue_columns<kHalf>(accumulators, operands.a + below * (kBlockK >> 4),
                             operands.b + ctx_.warpgroup() * (kHalf * kBlockK >> 4));
    }

  private:
    // Of what lies `offset` into shared memory. One base and constants: the assembler makes these words anew in the loop, between a
    // promotion and a product.
    DG_DEVICE uint32_t low_word(int offset) const { return ptx::k_major_descriptor_low(ctx_.smem) + (offset >> 4); }

    // Of kColumns columns, into the first registers of each K block's accumulator.
    template <int kColumns>
    DG_DEVICE static void issue_columns(Accumulators& accumulators, uint32_t a, uint32_t b) {
        constexpr int kSteps = kBlockK / 32;  // instructions of a K block, 32 bytes further each
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) {
            uint64_t a_steps[kSteps], b_steps[kSteps];
#pragma unroll
            for (int k = 0; k < kSteps; ++k) {
                a_steps[k] = ptx::k_major_descriptor(a + i * (Context::kSmem.a_stage / kKBlocks >> 4) + k * 2);
                b_steps[k] = ptx::k_major_descriptor(b + i * (Context::kSmem.b_stage / kKBlocks >> 4) + k * 2);
            }
            ptx::WgmmaE4m3<kColumns>::mma_block(reinterpret_cast<float(&)[kColumns / 2]>(accumulators.k_block[i]), a_steps, b_steps);
        }
        ptx::wgmma_commit();
    }

    const Context& ctx_;
    const uint32_t a_low_, b_low_;  // descriptors of stage 0
};

}  // namespace deep_gemm
