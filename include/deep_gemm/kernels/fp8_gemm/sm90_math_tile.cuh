// The mainloop of a math warpgroup of the SM90 FP8 GEMM: products, and their promotion into FP32 sums.
#pragma once

#include <deep_gemm/epilogue/promote.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_context.cuh>
#include <deep_gemm/ptx/wgmma_shapes.cuh>

namespace deep_gemm {

// One math warpgroup's work on one tile: issue products, retire them into the sums. A product is what one commit covers:
// for each K block of a stage, 64 rows (a wave) by all or half of the tile's columns (a part).
template <Fp8GemmConfig kConfig>
class MathTile {
  public:
    using Context = Fp8GemmContext<kConfig>;
    static constexpr int kN = kConfig.block_n;
    static constexpr int kPartN = kN / kConfig.n_parts;
    static constexpr int kKBlocks = kConfig.k_blocks;

    DG_DEVICE MathTile(const Context& ctx, typename Context::Cursor& cursor, typename Context::Feed& feed,
                       uint32_t n_idx)
        : ctx_(ctx),
          cursor_(cursor),
          feed_(feed),
          first_block_columns_(kScaleBlock - n_idx % kScaleBlock),
          a_low_(ptx::k_major_descriptor_low(ctx.a_stage(0, 0) + ctx.warp / 4 * Context::kWaves * kWgmmaM * kBlockK)),
          b_low_(ptx::k_major_descriptor_low(ctx.b_stage(0, 0))) {
#pragma unroll
        for (int wave = 0; wave < Context::kWaves; ++wave)
#pragma unroll
            for (int i = 0; i < kN / 2; ++i) sums[wave][i] = 0.0f;
    }

    // Walks all of the tile's K, with as many of the warpgroup's waves as have rows.
    DG_DEVICE void run(const Tile& tile) { run_waves<Context::kWaves>(tile); }

    float sums[Context::kWaves][kN / 2];

  private:
    // Up to kMost waves have rows: a loop for each number of them.
    template <int kMost>
    DG_DEVICE void run_waves(const Tile& tile) {
        if constexpr (kMost > 0 && has_entry_per_group(kConfig.grouping)) {
            const uint32_t before = ctx_.warp / 4 * Context::kWaves;
            if (pieces_with_rows<kConfig.grouping>(tile, kWgmmaM, before + kMost) < before + kMost)
                return run_waves<kMost - 1>(tile);
        }
        if constexpr (kMost == 0)
            pass_stages<Context::kClusterSize>(cursor_, ctx_.num_k_stages(tile), ctx_.lane);
        else if constexpr (Context::kHoldsFactors)
            run_holding_factors<kMost>(tile);
        else if constexpr (kConfig.num_accumulators == 2)
            run_two_deep<kMost * kConfig.n_parts>(tile);
        else
            run_one_deep<kMost * kConfig.n_parts>(tile);
    }

    struct Accumulators {
        float k_block[kKBlocks][kPartN / 2];
    };
    struct StageScales {
        using Floats = float[sizeof(typename Context::Feed::Scales) / sizeof(float) * kKBlocks];
        typename Context::Feed::Scales k_block[kKBlocks];
        DG_DEVICE const Floats& all() const { return reinterpret_cast<const Floats&>(k_block); }
    };

    // Low words of the descriptors of a stage.
    struct Operands {
        uint32_t a, b;
    };
    DG_DEVICE Operands operands() const {
        return {a_low_ + cursor_.stage * (Context::kSmem.a_stage >> 4),
                b_low_ + cursor_.stage * (Context::kSmem.b_stage >> 4)};
    }

    // Starts product `product` of a stage.
    DG_DEVICE void issue(Accumulators& accumulators, int product, const Operands& operands) {
        constexpr int kSteps = kBlockK / 32;  // instructions of a K block, 32 bytes further each
        const int wave = product / kConfig.n_parts, part = product % kConfig.n_parts;
        const uint32_t a = operands.a + wave * (kWgmmaM * kBlockK >> 4);
        const uint32_t b = operands.b + part * (kPartN * kBlockK >> 4);
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) {
            uint64_t a_steps[kSteps], b_steps[kSteps];
#pragma unroll
            for (int k = 0; k < kSteps; ++k) {
                a_steps[k] = ptx::k_major_descriptor(a + i * (Context::kSmem.a_stage / kKBlocks >> 4) + k * 2);
                b_steps[k] = ptx::k_major_descriptor(b + i * (Context::kSmem.b_stage / kKBlocks >> 4) + k * 2);
            }
            ptx::WgmmaE4m3<kPartN>::mma_block(accumulators.k_block[i], a_steps, b_steps);
        }
        ptx::wgmma_commit();
    }

    enum class Release { kNo, kYes };

    // Waits for all but the newest kStillPending products, then promotes product kProduct of `stage`. The last product of
    // a stage gives it back: before the promotion, unless that still reads SFB from it.
    template <int kStillPending, int kProduct, int kProducts>
    DG_DEVICE void retire(Accumulators& accumulators, const StageScales& scales, uint32_t stage, Release release_stage = Release::kYes) {
        constexpr int kWave = kProduct / kConfig.n_parts, kFirst = kProduct % kConfig.n_parts * kPartN;
        constexpr bool kLast = kProduct == kProducts - 1;
        ptx::wgmma_wait<kStillPending>();
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) ptx::pin_registers(accumulators.k_block[i]);
        if (kLast && !Context::kSfbPerRow && release_stage == Release::kYes) release(stage);
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) {
            float* part_sums = sums[kWave] + kFirst / 2;
            const auto& scale = scales.k_block[i].value[kWave];
            if constexpr (Context::kSfbPerRow)
                promote_by_column<kPartN>(accumulators.k_block[i], part_sums, scale,
                                          StagedColumnFactors(ctx_.sfb_stage(stage, i) + kFirst * sizeof(float), ctx_.lane));
            else
                promote_by_block<kN, kFirst, kPartN>(accumulators.k_block[i], part_sums, scale, first_block_columns_);
        }
        if (kLast && Context::kSfbPerRow && release_stage == Release::kYes) release(stage);
    }

    // Lanes have read SFs from the stage, and one arrives for all.
    DG_DEVICE void release(uint32_t stage) {
        if constexpr (Context::kSfbPerRow) __syncwarp();
        consumer_release<Context::kClusterSize>(cursor_.barriers, stage, ctx_.lane);
    }

    // Stages that a loop's body holds: all of a batch of scales in the tall tiles of large problems, which gain 2 % by it, and
    // where promotions with SFB per row are short of issue slots. Else one, or half a batch, or two, for two-deep products
    // alternate: the compiler takes half of the time.
    static constexpr bool kWholeBatch = Context::kSfbPerRow || kConfig.block_m >= 192;
    static constexpr int kUnroll = kWholeBatch                     ? Context::kScaleBatch / kKBlocks
                                   : kConfig.num_accumulators == 1 ? 1
                                                                   : max_of(2, Context::kScaleBatch / 2 / kKBlocks);
    static constexpr int kUnrolledBlocks = kUnroll * kKBlocks;
    // Whether the first product of a stage is issued where the stage before ends, so that the jump back to the loop's head lies
    // under a product. With one wave, or SFB per row, it gains nothing; loops of fewer waves than there are would spill.
    static constexpr bool issues_ahead(int products) {
        return Context::kWaves > 1 && products == Context::kWaves && !Context::kSfbPerRow;
    }

    // Where the scales of stage `k`, a body's first, lie in their batch.
    DG_DEVICE uint32_t scale_position(uint32_t k) const {
        return kUnrolledBlocks == Context::kScaleBatch ? 0 : k * kKBlocks % Context::kScaleBatch;
    }

    // The scales of stage i of a body that began at `position`.
    DG_DEVICE StageScales read_scales(uint32_t position, int i) const {
        StageScales scales;
        const uint32_t first = kUnrolledBlocks % 4 == 0 ? 0 : position;  // lanes are constants where bodies are whole groups
#pragma unroll
        for (int block = 0; block < kKBlocks; ++block) scales.k_block[block] = feed_.at(first, i * kKBlocks + block);
        return scales;
    }

    // One product at a time: the other warpgroups' run while this one is promoted. From its promotion to the next product
    // there must be as little as can be, so scales and the next stage's addresses are made ready under the first and the last
    // product of a stage. kProducts: of a stage, wave by wave, part by part.
    template <int kProducts>
    DG_DEVICE void run_one_deep(const Tile& tile) {
        // Left alone, the assembler sinks the scales' shuffles behind the product's wait. With three warpgroups that costs
        // nothing, and the two branches do.
        constexpr bool kPinScales = kConfig.num_math_warpgroups == 2;
        constexpr bool kAhead = issues_ahead(kProducts);
        const uint32_t num_k = ctx_.num_k_stages(tile);
        Operands current = operands();
        const auto begin_stage = [&] {
            cursor_.consumer_wait();
            issue(accumulators_[0], 0, current);
        };
        if constexpr (kAhead) begin_stage();
        const auto step = [&](uint32_t k, int i) {
            StageScales scales;
            const uint32_t stage = cursor_.stage;
            if constexpr (!kAhead) begin_stage();
            for_each_product<kProducts>([&](auto product) {
                if constexpr (product.value > 0) issue(accumulators_[0], product.value, current);
                if constexpr (product.value == 0) {
                    if constexpr (kPinScales) ptx::keep_order(ctx_.args.n);
                    if (i == 0) feed_.template turn_to<kUnrolledBlocks>(scale_position(k));
                    scales = read_scales(scale_position(k), i);
                    if constexpr (kPinScales) ptx::keep_order_after(scales.all());
                }
                if constexpr (product.value == kProducts - 1) {
                    cursor_.advance();
                    current = operands();
                    if (kAhead && k + i + 1 < num_k) cursor_.consumer_wait();
                }
                retire<0, product.value, kProducts>(accumulators_[0], scales, stage);
            });
        };
        // The end of K leaves the loop: were it skipped over, the scales would be merged there, and spilled.
#pragma unroll 1
        for (uint32_t k = 0; kAhead || k < num_k; k += kUnroll)
#pragma unroll
            for (int i = 0; i < kUnroll; ++i) {
                if (!kAhead && k + i >= num_k) return;
                step(k, i);
                if (kAhead && k + i + 1 >= num_k) return;
                if constexpr (kAhead) issue(accumulators_[0], 0, current);
            }
    }

    // One product at a time, and factors of columns in registers from the first wave on: half of them come under its product, half
    // during its promotion. Products leave loads from shared memory a quarter of its bandwidth.
    template <int kWavesInUse>
    DG_DEVICE void run_holding_factors(const Tile& tile) {
        HeldColumnFactors<kN> sfb;
#pragma unroll 1
        for (uint32_t left = ctx_.num_k_stages(tile); left > 0; --left) {
            const uint32_t stage = cursor_.stage;
            const Operands current = operands();
            cursor_.consumer_wait();
            for_each_product<kWavesInUse>([&](auto wave) {
                constexpr bool kFirst = wave.value == 0, kLast = wave.value == kWavesInUse - 1;
                issue(accumulators_[0], wave.value, current);
                ptx::keep_order(ctx_.args.n);
                const uint32_t lane = ptx::lane_id_read_here();
                const auto sfa = read_staged_sfa(ctx_.sfa_stage(stage), ctx_.row_in_tile(lane) + wave.value * kWgmmaM);
                ArrivingColumnFactors<kN> arriving{sfb, StagedColumnFactors(ctx_.sfb_stage(stage, 0), lane)};
                if constexpr (kFirst) arriving.fetch_ahead();
                if constexpr (kLast) cursor_.advance();
                ptx::wgmma_wait<0>();
                ptx::pin_registers(accumulators_[0].k_block[0]);
                if (kLast && !kFirst) release(stage);
                const auto promote = [&](auto&& factors) {
                    promote_by_column<kN>(accumulators_[0].k_block[0], sums[wave.value], sfa.value[0], factors);
                };
                if constexpr (kFirst)
                    promote(arriving);
                else
                    promote(sfb);
                if (kLast && kFirst) release(stage);
            });
        }
    }

    // Two products: the next one is already running while this one is promoted.
    template <int kProducts>
    DG_DEVICE void run_two_deep(const Tile& tile) {
        // Before the first product there is none to retire: zeros stand in for it, so that the loop has no special case.
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i)
#pragma unroll
            for (int r = 0; r < kPartN / 2; ++r) accumulators_[1].k_block[i][r] = 0.0f;
        scales_[1] = {};
        stage_ = cursor_.stage;
        const auto step = [&](uint32_t k, int i) {
            scales_[i % 2] = read_scales(scale_position(k), i);
            cursor_.consumer_wait();
            for_each_product<kProducts>([&](auto product) {
                constexpr int kProduct = product.value;
                const int slot = (i * kProducts + kProduct) % 2;
                issue(accumulators_[slot], kProduct, operands());
                if constexpr (kProduct > 0)
                    retire<1, kProduct - 1, kProducts>(accumulators_[1 - slot], scales_[i % 2], cursor_.stage);
                else
                    retire<1, kProducts - 1, kProducts>(accumulators_[1 - slot], scales_[1 - i % 2], stage_,
                                                        i > 0 || k > 0 ? Release::kYes : Release::kNo);
            });
            stage_ = cursor_.stage;
            cursor_.advance();
        };
        const uint32_t num_k = ctx_.num_k_stages(tile);
#pragma unroll 1
        for (uint32_t k = 0; k < num_k; k += kUnroll) {
            feed_.template turn_to<kUnrolledBlocks>(scale_position(k));
#pragma unroll
            for (int i = 0; i < kUnroll; ++i)
                if (k + i < num_k) step(k, i);
        }
        if (num_k % 2 == 1)
            retire<0, kProducts - 1, kProducts>(accumulators_[(kProducts - 1) % 2], scales_[0], stage_);
        else
            retire<0, kProducts - 1, kProducts>(accumulators_[1], scales_[1], stage_);
    }

    template <int kProducts, int kProduct = 0, typename Step>
    DG_DEVICE void for_each_product(const Step& step) {
        if constexpr (kProduct < kProducts) {
            step(IntConstant<kProduct>{});
            for_each_product<kProducts, kProduct + 1>(step);
        }
    }

    const Context& ctx_;
    typename Context::Cursor& cursor_;
    typename Context::Feed& feed_;
    uint32_t first_block_columns_;
    uint32_t a_low_, b_low_;  // descriptors of stage 0
    Accumulators accumulators_[kConfig.num_accumulators];
    StageScales scales_[kConfig.num_accumulators];
    uint32_t stage_;  // of the last product, which is not yet retired
};

}  // namespace deep_gemm
