// The mainloop of a math warpgroup of the SM90 FP8 GEMM: products, and their promotion into FP32 sums.
#pragma once

#include <deep_gemm/epilogue/promote.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_context.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_products.cuh>

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
          products_(ctx) {
#pragma unroll
        for (int wave = 0; wave < Context::kWaves; ++wave)
#pragma unroll
            for (int i = 0; i < kN / 2; ++i) sums[wave][i] = 0.0f;
    }

    // Walks all of the tile's K, with as many of the warpgroup's waves as have rows.
    DG_DEVICE void run(const Tile& tile) {
        if constexpr (Context::kSharesWaves)
            if (ctx_.shares_wave(tile)) return run_one_deep<2, Last::kShared>(tile);
        run_waves<Context::kWaves>(tile);
    }

    float sums[Context::kWaves][kN / 2];

  private:
    // Up to kMost waves have rows: a loop for each number of them.
    template <int kMost>
    DG_DEVICE void run_waves(const Tile& tile) {
        if constexpr (kMost > 0 && has_entry_per_group(kConfig.grouping)) {
            if (ctx_.waves_with_rows(tile) <= (kMost - 1) * kConfig.num_math_warpgroups + ctx_.warpgroup())
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

    using Accumulators = typename Products<kConfig>::Accumulators;
    struct StageScales {
        using Floats = float[sizeof(typename Context::Feed::Scales) / sizeof(float) * kKBlocks];
        typename Context::Feed::Scales k_block[kKBlocks];
        DG_DEVICE const Floats& all() const { return reinterpret_cast<const Floats&>(k_block); }
    };

    enum class Release { kNo, kYes };
    enum class Last { kOwn, kShared };  // whose the last wave is

    // Waits for all but the newest kStillPending products, then promotes product kProduct of `stage`. The last product of
    // a stage gives it back: before the promotion, unless that still reads SFB from it.
    template <int kStillPending, int kProduct, int kProducts, Last kLastWave = Last::kOwn>
    DG_DEVICE void retire(Accumulators& accumulators, const StageScales& scales, uint32_t stage, Release release_stage = Release::kYes) {
        constexpr int kWave = kProduct / kConfig.n_parts, kFirst = kProduct % kConfig.n_parts * kPartN;
        constexpr bool kLast = kProduct == kProducts - 1;
        constexpr int kColumns = kLast && kLastWave == Last::kShared ? kN / 2 : kPartN;
        ptx::wgmma_wait<kStillPending>();
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) ptx::pin_registers(accumulators.k_block[i]);
        if (kLast && !Context::kSfbPerRow && release_stage == Release::kYes) release(stage);
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) {
            float* part_sums = sums[kWave] + kFirst / 2;
            const auto& scale = scales.k_block[i].value[kWave];
            if constexpr (Context::kSfbPerRow)
                promote_by_column<0, kPartN>(accumulators.k_block[i], part_sums, scale,
                                          StagedColumnFactors(ctx_.sfb_stage(stage, i) + kFirst * sizeof(float), ctx_.lane));
            else
                promote_by_block<kN, kFirst, kColumns>(reinterpret_cast<float(&)[kColumns / 2]>(accumulators.k_block[i]), part_sums, scale, first_block_columns_);
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
    template <int kProducts, Last kLastWave = Last::kOwn>
    DG_DEVICE void run_one_deep(const Tile& tile) {
        // Left alone, the assembler sinks the scales' shuffles behind the product's wait. With three warpgroups that costs
        // nothing, and the two branches do.
        constexpr bool kPinScales = kConfig.num_math_warpgroups == 2;
        constexpr bool kAhead = issues_ahead(kProducts);
        const uint32_t num_k = ctx_.num_k_stages(tile);
        auto current = products_.operands(cursor_.stage);
        const auto begin_stage = [&] {
            cursor_.consumer_wait();
            products_.issue(accumulators_[0], 0, current);
        };
        if constexpr (kAhead) begin_stage();
        const auto step = [&](uint32_t k, int i) {
            StageScales scales;
            const uint32_t stage = cursor_.stage;
            if constexpr (!kAhead) begin_stage();
            for_each_product<kProducts>([&](auto product) {
                if constexpr (product.value > 0 && kLastWave == Last::kShared)
                    products_.issue_shared(accumulators_[0], current);
                else if constexpr (product.value > 0)
                    products_.issue(accumulators_[0], product.value, current);
                if constexpr (product.value == 0) {
                    if constexpr (kPinScales) ptx::keep_order(ctx_.args.n);
                    if (i == 0) feed_.template turn_to<kUnrolledBlocks>(scale_position(k));
                    scales = read_scales(scale_position(k), i);
                    if constexpr (kPinScales) ptx::keep_order_after(scales.all());
                }
                if constexpr (product.value == kProducts - 1) {
                    cursor_.advance();
                    current = products_.operands(cursor_.stage);
                    if (kAhead && k + i + 1 < num_k) cursor_.consumer_wait();
                }
                retire<0, product.value, kProducts, kLastWave>(accumulators_[0], scales, stage);
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
                if constexpr (kAhead) products_.issue(accumulators_[0], 0, current);
            }
    }

    // One product at a time, and factors of columns in registers from the first wave on. Products leave loads from shared memory a
    // quarter of its bandwidth, so they are spread: half of them come under the first product, the rest during its promotion, but
    // for a few that came in the last promotion of the stage before. What is still on its way when a product is issued delays it.
    template <int kWavesInUse>
    DG_DEVICE void run_holding_factors(const Tile& tile) {
        // Columns of the next stage. Groups of K wait for stages more often, and lose by looking ahead.
        constexpr int kNext = Context::kKGrouped ? 0 : 8, kUnderProduct = kNext + kN / 2;
        HeldColumnFactors<kN> sfb;
        const auto staged_in = [&](uint32_t s, uint32_t lane) { return StagedColumnFactors(ctx_.sfb_stage(s, 0), lane); };
        if constexpr (kNext > 0) {
            cursor_.consumer_wait();
            sfb.template fetch<0, kNext>(staged_in(cursor_.stage, ctx_.lane));
        }
#pragma unroll 1
        for (uint32_t left = ctx_.num_k_stages(tile);; --left) {
            const bool more = left > 1;
            const uint32_t stage = cursor_.stage;
            const auto current = products_.operands(stage);
            if constexpr (kNext == 0) cursor_.consumer_wait();
            for_each_product<kWavesInUse>([&](auto wave) {
                constexpr bool kFirst = wave.value == 0, kLast = wave.value == kWavesInUse - 1;
                products_.issue(accumulators_[0], wave.value, current);
                ptx::keep_order(ctx_.args.n);
                const uint32_t lane = ptx::lane_id_read_here();
                const auto sfa = read_staged_sfa(ctx_.sfa_stage(stage), ctx_.row_in_tile(lane) + wave.value * Context::kWaveStride);
                const auto staged = staged_in(stage, lane);
                if constexpr (kFirst) sfb.template fetch<kNext, kUnderProduct>(staged);
                if constexpr (kLast) cursor_.advance();
                if (kLast && kNext > 0 && more) cursor_.consumer_wait();
                ptx::wgmma_wait<0>();
                ptx::pin_registers(accumulators_[0].k_block[0]);
                if (kLast && !kFirst) release(stage);
                const auto promote = [&](auto first, auto end) {
                    promote_by_column<first.value, end.value>(accumulators_[0].k_block[0], sums[wave.value], sfa.value[0],
                                                              ArrivingColumnFactors<kN, kFirst ? kUnderProduct : kN>{sfb, staged});
                };
                constexpr int kSplit = kLast ? kNext : 0;
                promote(IntConstant<0>{}, IntConstant<kSplit>{});
                if (kSplit > 0 && more) {
                    ptx::keep_order(ctx_.args.n);
                    sfb.template fetch<0, kNext>(staged_in(cursor_.stage, lane));
                }
                promote(IntConstant<kSplit>{}, IntConstant<kN>{});
                if (kLast && kFirst) release(stage);
            });
            if (!more) return;
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
                products_.issue(accumulators_[slot], kProduct, products_.operands(cursor_.stage));
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
    Products<kConfig> products_;
    Accumulators accumulators_[kConfig.num_accumulators];
    StageScales scales_[kConfig.num_accumulators];
    uint32_t stage_;  // of the last product, which is not yet retired
};

}  // namespace deep_gemm
