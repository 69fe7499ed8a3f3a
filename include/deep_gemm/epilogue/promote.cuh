// Promotion: the tensor core's FP8 accumulator keeps 13 fraction bits, so every 128 of K its partial product is scaled and
// added to FP32 sums on the CUDA cores. Every variant rounds in the same two steps, s = sfa * sfb and fma(accumulator, s, sum):
// a row's bits do not depend on the tile that computed it.
// Fragment of a 64-row wave: register r holds row l/4 + 8*((r>>1)&1), column 2*(l%4) + (r&1) + 8*(r>>2) (PTX ISA, wgmma D).
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/matrix.cuh>

namespace deep_gemm {

// One row's two columns of each 8-column group. The assembler orders them by itself, by rows: consecutive FMAs then share their
// scale in the operand reuse cache, which spares the register file that the tensor core is reading too.
template <int kColumns>
DG_DEVICE void promote_row(const float* accumulators, float* sums, int half, float scale) {
#pragma unroll
    for (int i = half * 2; i < kColumns / 2; i += 4) {
        sums[i] = __fmaf_rn(accumulators[i], scale, sums[i]);
        sums[i + 1] = __fmaf_rn(accumulators[i + 1], scale, sums[i + 1]);
    }
}

// Columns kFirst .. kFirst + kCount - 1 of a tile kBlockN wide, SFB per 128 columns: scale[half][i] = sfa * sfb of block i.
// Columns below `first_block_columns` are in block 0.
template <int kBlockN, int kFirst, int kCount, int kBlocks>
DG_DEVICE void promote_by_block(const float (&accumulators)[kCount / 2], float* sums, const float (&scale)[2][kBlocks],
                                uint32_t first_block_columns) {
    constexpr int kShared = gcd_of(kBlockN, kScaleBlock);  // columns of the tile that are sure to share a factor
    constexpr int kSegment = gcd_of(kShared, kCount);
#pragma unroll
    for (int column = 0; column < kCount; column += kSegment) {
        const int shared = (kFirst + column) / kShared * kShared;
        const bool second = kBlocks == 2 && shared >= static_cast<int>(first_block_columns);
#pragma unroll
        for (int half = 0; half < 2; ++half)
            promote_row<kSegment>(accumulators + column / 2, sums + column / 2, half,
                                  second ? scale[half][kBlocks - 1] : scale[half][0]);
    }
}

// SFB per column, staged in shared memory (one float a column): a thread's factors, two of each 8 columns from `sfb` on.
class StagedColumnFactors {
  public:
    DG_DEVICE StagedColumnFactors(ptx::SmemAddr sfb, uint32_t lane) : mine_(sfb + lane % 4 * 2 * sizeof(float)) {}
    DG_DEVICE float2 fetch(int column) const {
        float2 pair;
        ptx::load_shared_f32x2(mine_ + column * sizeof(float), pair.x, pair.y);
        return pair;
    }

  private:
    ptx::SmemAddr mine_;
};

// The same, held in registers for all waves of a K block.
template <int kCount>
struct HeldColumnFactors {
    float2 pair[kCount / 8];

    // Starts loading those of columns kFirst .. kEnd - 1.
    template <int kFirst, int kEnd>
    DG_DEVICE void fetch(const StagedColumnFactors& staged) {
#pragma unroll
        for (int column = kFirst; column < kEnd; column += 8) pair[column / 8] = staged.fetch(column);
    }
};

// Held factors on their first use: those from column kFirstStaged on come one by one.
template <int kCount, int kFirstStaged>
struct ArrivingColumnFactors {
    HeldColumnFactors<kCount>& held;
    StagedColumnFactors staged;

    DG_DEVICE float2 fetch(int column) const {
        if (column >= kFirstStaged) held.pair[column / 8] = staged.fetch(column);
        return held.pair[column / 8];
    }
};

// Columns kFirst .. kEnd - 1; the registers are counted from column 0 on.
template <int kFirst, int kEnd, typename Factors>
DG_DEVICE void promote_by_column(const float* accumulators, float* sums, const float (&sfa)[2][1], const Factors& sfb) {
#pragma unroll
    for (int column = kFirst; column < kEnd; column += 8) {
        const float2 b = sfb.fetch(column);
        const float* a = accumulators + column / 2;
        float* s = sums + column / 2;
        s[0] = __fmaf_rn(a[0], sfa[0][0] * b.x, s[0]);
        s[1] = __fmaf_rn(a[1], sfa[0][0] * b.y, s[1]);
        s[2] = __fmaf_rn(a[2], sfa[1][0] * b.x, s[2]);
        s[3] = __fmaf_rn(a[3], sfa[1][0] * b.y, s[3]);
    }
}

}  // namespace deep_gemm
