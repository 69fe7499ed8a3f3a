// The mainloop of a math warpgroup of the SM90 FP8 GEMM: products, and their promotion into FP32 sums.
#pragma once

#include <deep_gemm/epilogue/add_c.cuh>
#include <deep_gemm/epilogue/promote.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_context.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_holding_loop.cuh>
#include <deep_gemm/kernels/fp8_gemm/sm90_products.cuh>

namespace deep_gemm {

// One math warpgroup's work on its tiles, one after another: issue products, retire them into the sums.
template <Fp8GemmConfig kConfig>
class MathTile {
  public:
    using Context = Fp8GemmContext<kConfig>;
    static constexpr int kN = kConfig.block_n;
    static constexpr int kPartN = kN / kConfig.n_parts;
    static constexpr int kKBlocks = kConfig.k_blocks;

    DG_DEVICE MathTile(const Context& ctx, typename Context::Cursor& cursor, typename Context::Feed& feed)
        : ctx_(ctx),
          cursor_(cursor),
          feed_(feed),
          products_(ctx),
          turns_(ctx.warpgroup()) {}

    // Issues the first product of the next tile, or one to be dropped.
    DG_DEVICE void issue_ahead() {
        if constexpr (Context::kStartsUnderStore) {
            cursor_.consumer_wait();
            products_.issue(accumulators_[0], 0, products_.operands(cursor_.stage));
        }
    }
    // After the last tile.
    DG_DEVICE void end() {
        drain();
        turns_.end();
    }

    // Turns to a tile whose first column is `n_idx`: no sums yet.
    DG_DEVICE void turn_to(uint32_t n_idx) {
        first_block_columns_ = kScaleBlock - n_idx % kScaleBlock;
#pragma unroll
        for (int wave = 0; wave < Context::kWaves; ++wave)
#pragma unroll
            for (int i = 0; i < kN / 2; ++i) sums[wave][i] = 0.0f;
    }

    // Walks all of the tile's K, with as many of the warpgroup's waves as have rows.
    DG_DEVICE void run(const Tile& tile) {
        if (!ctx_.has_product(tile)) return run_without_product();
        if constexpr (Context::kSharesWaves)
            if (ctx_.shares_wave(tile)) return run_one_deep<2, LastWave::kHalf>(tile);
        run_waves<Context::kWaves>(tile);
    }

    float sums[Context::kWaves][kN / 2];

  private:
    // Drops what issue_ahead() issued.
    DG_DEVICE void drain() {
        if constexpr (Context::kStartsUnderStore) {
            ptx::wgmma_wait<0>();
            ptx::pin_registers(accumulators_[0].k_block[0]);
        }
    }

    DG_DEVICE void run_without_product() {
        if constexpr (Context::kKGrouped && kConfig.has_c) make_neutral(sums);
        drain();
        if constexpr (Context::kStartsUnderStore) pass_stages<Context::kClusterSize>(cursor_, 1, ctx_.lane);
    }

    // Up to kMost waves have rows: a loop for each number of them.
    template <int kMost>
    DG_DEVICE void run_waves(const Tile& tile) {
        if constexpr (kMost > 0 && Context::kTakesTurns) {
            if (ctx_.waves_with_rows(tile) <= (kMost - 1) * kConfig.num_math_warpgroups + ctx_.warpgroup())
                return run_waves<kMost - 1>(tile);
        }
        if constexpr (kMost == 0) {
            drain();
            pass_stages<Context::kClusterSize>(cursor_, ctx_.num_k_stages(tile), ctx_.lane);
        } else if constexpr (Context::kHoldsFactors)
            multiply_holding_factors<kMost>(ctx_, cursor_, products_, accumulators_[0], sums,
                                            ctx_.num_k_stages(tile));
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
    enum class LastWave { kWhole, kHalf };  // kHalf: of a wave that two warpgroups share, half of the columns

    // Waits for all but the newest kStillPending products, then promotes product kProduct of `stage`. The last product of
    // a stage gives it back: before the promotion, unless that still reads SFB from it.
    template <int kStillPending, int kProduct, int kProducts, LastWave kLastWave = LastWave::kWhole>
    DG_DEVICE void retire(Accumulators& accumulators, const StageScales& scales, uint32_t stage,
                          Release release_stage = Release::kYes) {
        constexpr int kWave = kProduct / kConfig.n_parts, kFirst = kProduct % kConfig.n_parts * kPartN;
        constexpr bool kLast = kProduct == kProducts - 1;
        constexpr int kColumns = kLast && kLastWave == LastWave::kHalf ? kN / 2 : kPartN;
        ptx::wgmma_wait<kStillPending>();
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) ptx::pin_registers(accumulators.k_block[i]);
        if (kLast && !Context::kSfbPerRow && release_stage == Release::kYes) ctx_.release(cursor_, stage);
#pragma unroll
        for (int i = 0; i < kKBlocks; ++i) {
            float* part_sums = sums[kWave] + kFirst / 2;
            const auto& scale = scales.k_block[i].value[kWave];
            if constexpr (Context::kSfbPerRow)
                promote_by_column<0, kPartN>(accumulators.k_block[i], part_sums, scale,
                                             StagedColumnFactors(ctx_.sfb_stage(stage, i) + kFirst * sizeof(float), ctx_.lane));
            else
                promote_by_block<kN, kFirst, kColumns>(reinterpret_cast<float(&)[kColumns / 2]>(accumulators.k_block[i]),
                                                       part_sums, scale, first_block_columns_);
        }
        if (kLast && Context::kSfbPerRow && release_stage == Release::kYes) ctx_.release(cursor_, stage);
    }

    // Stages that a loop's body holds: all of a batch of scales in the tall tiles of large problems, which gain 2 % by it, and
    // where promotions with SFB per row are short of issue slots. Else one, or half a batch, or two, for two-deep products
    // alternate: the compiler takes half of the time.
    static constexpr bool kWholeBatch = Context::kSfbPerRow || kConfig.block_m >= 192;
    static constexpr int kUnroll = kWholeBatch                     ? Context::kScaleBatch / kKBlocks
                                   : kConfig.num_accumulators == 1 ? 1
                                                                   : max_of(2, Context::kScaleBatch / 2 / kKBlocks);
    static constexpr int kUnrolledBlocks = kUnroll * kKBlocks;
    // Whether a stage is awaited under the last product of the one before, and its first product issued where that one ends, so that
    // the jump back to the loop's head lies under a product. With one wave, or SFB per row, it gains nothing; loops of fewer waves
    // than there are would spill.
    static constexpr bool looks_ahead(int products) {
        return Context::kWaves > 1 && products == Context::kWaves && !Context::kSfbPerRow;
    }

    // Where the scales of stage `k`, a body's first, lie in their batch.
    DG_DEVICE uint32_t scale_position(uint32_t k) const {
        return kUnrolledBlocks == Context::kScaleBatch ? 0 : k * kKBlocks % Context::kScaleBatch;
    }

    // The scales of stage i of a body that began at `position`.
    DG_DEVICE StageScales read_scales(uint32_t position, int i) const {
        StageScales scales;
        // Lanes are constants where bodies are whole groups of K blocks.
        const uint32_t first = kUnrolledBlocks % Context::Feed::kLanesAlongK == 0 ? 0 : position;
#pragma unroll
        for (int block = 0; block < kKBlocks; ++block) scales.k_block[block] = feed_.at(first, i * kKBlocks + block);
        return scales;
    }

    // One product at a time: the other warpgroups' run while this one is promoted. From its promotion to the next product
    // there must be as little as can be, so scales and the next stage's addresses are made ready under the first and the last
    // product of a stage. kProducts: of a stage, wave by wave, part by part.
    template <int kProducts, LastWave kLastWave = LastWave::kWhole>
    DG_DEVICE void run_one_deep(const Tile& tile) {
        // Left alone, the assembler sinks the scales' shuffles behind the product's wait. With three warpgroups that costs
        // nothing, and the two branches do.
        constexpr bool kPinScales = kConfig.num_math_warpgroups == 2;
        constexpr bool kAhead = looks_ahead(kProducts), kIssuesAtEnd = kAhead || Context::kStartsUnderStore;
        const uint32_t num_k = ctx_.num_k_stages(tile);
        auto current = products_.operands(cursor_.stage);
        const auto begin_stage = [&] {
            cursor_.consumer_wait();
            turns_.await();
            products_.issue(accumulators_[0], 0, current);
            turns_.pass();
        };
        if constexpr (kAhead && !Context::kStartsUnderStore) begin_stage();
        const auto step = [&](uint32_t k, int i) {
            StageScales scales;
            const uint32_t stage = cursor_.stage;
            if constexpr (!kIssuesAtEnd) begin_stage();
            for_each_product<kProducts>([&](auto product) {
                if constexpr (product.value > 0 && kLastWave == LastWave::kHalf)
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
                    // Made while this product runs, not ahead of the next one. Kernels that share waves lack the registers: the
                    // compiler would order their products one after another.
                    if constexpr (kAhead && !Context::kSharesWaves) ptx::keep_order(current.a & current.b);
                    if (kAhead && k + i + 1 < num_k) cursor_.consumer_wait();
                }
                retire<0, product.value, kProducts, kLastWave>(accumulators_[0], scales, stage);
            });
        };
        // The end of K leaves the loop: were it skipped over, the scales would be merged there, and spilled.
#pragma unroll 1
        for (uint32_t k = 0; kIssuesAtEnd || k < num_k; k += kUnroll)
#pragma unroll
            for (int i = 0; i < kUnroll; ++i) {
                if (!kIssuesAtEnd && k + i >= num_k) return;
                step(k, i);
                if constexpr (!kIssuesAtEnd) continue;
                if (k + i + 1 >= num_k) return;
                if constexpr (!kAhead) cursor_.consumer_wait();
                products_.issue(accumulators_[0], 0, current);
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

    const Context& ctx_;
    typename Context::Cursor& cursor_;
    typename Context::Feed& feed_;
    uint32_t first_block_columns_;
    Products<kConfig> products_;
    ProductTurns<Context::kTakesProductTurns, kConfig.num_math_warpgroups> turns_;
    Accumulators accumulators_[kConfig.num_accumulators];
    StageScales scales_[kConfig.num_accumulators];
    uint32_t stage_;  // of the last product, which is not yet retired
};

}  // namespace deep_gemm
