// Promotion: the tensor core's FP8 accumulator keeps 13 fraction bits, so every 128 of K its partial product is scaled and
// added to FP32 sums on the CUDA cores. Every variant rounds in the same two steps, s = sfa * sfb and fma(accumulator, s, sum):
// a row's bits do not depend on the tile that computed it.
// Fragment of a 64-row wave: register r holds row l/4 + 8*((r>>1)&1), column 2*(l%4) + (r&1) + 8*(r>>2) (PTX ISA, wgmma D).
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/ptx/matrix.cuh>

namespace deep_gemm {

DG_DEVICE void promote_columns(const float* accumulators, float* sums, float upper_scale, float lower_scale) {
    sums[0] = __fmaf_rn(accumulators[0], upper_scale, sums[0]);
    sums[1] = __fmaf_rn(accumulators[1], upper_scale, sums[1]);
    sums[2] = __fmaf_rn(accumulators[2], lower_scale, sums[2]);
    sums[3] = __fmaf_rn(accumulators[3], lower_scale, sums[3]);
}

// SFB per 128 columns: scale[half][i] = sfa * sfb of block i. Columns below `first_block_columns` are in block 0.
template <int kBlockN, int kBlocks>
DG_DEVICE void promote_by_block(const float (&accumulators)[kBlockN / 2], float (&sums)[kBlockN / 2],
                                const float (&scale)[2][kBlocks], uint32_t first_block_columns) {
    constexpr int kSegment = gcd_of(kBlockN, kScaleBlock);  // columns that are sure to share a factor
#pragma unroll
    for (int segment = 0; segment < kBlockN; segment += kSegment) {
        const bool second = kBlocks == 2 && segment >= static_cast<int>(first_block_columns);
        const float upper = second ? scale[0][kBlocks - 1] : scale[0][0];
        const float lower = second ? scale[1][kBlocks - 1] : scale[1][0];
#pragma unroll
        for (int column = segment; column < segment + kSegment; column += 8)
            promote_columns(accumulators + column / 2, sums + column / 2, upper, lower);
    }
}

// SFB per column, staged in shared memory at `sfb` (one float per column of the tile).
template <int kBlockN>
DG_DEVICE void promote_by_column(const float (&accumulators)[kBlockN / 2], float (&sums)[kBlockN / 2],
                                 const float (&sfa)[2][1], ptx::SmemAddr sfb, uint32_t lane) {
    const ptx::SmemAddr mine = sfb + (lane % 4) * 2 * sizeof(float);
#pragma unroll
    for (int column = 0; column < kBlockN; column += 8) {
        float b0, b1;
        ptx::load_shared_f32x2(mine + column * sizeof(float), b0, b1);
        const float* a = accumulators + column / 2;
        float* s = sums + column / 2;
        s[0] = __fmaf_rn(a[0], sfa[0][0] * b0, s[0]);
        s[1] = __fmaf_rn(a[1], sfa[0][0] * b1, s[1]);
        s[2] = __fmaf_rn(a[2], sfa[1][0] * b0, s[2]);
        s[3] = __fmaf_rn(a[3], sfa[1][0] * b1, s[3]);
    }
}

}  // namespace deep_gemm
