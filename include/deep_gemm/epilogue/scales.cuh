// Scaling factors on their way from global memory through a pipeline stage into the promotion.
// They are copied four bytes at a time, so any strides are legal and no form of SF costs a kernel of its own.
// A stage of SFs: SFA of the tile's rows, then SFB: one a column, or one for each 128-column block the tile touches.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/matrix.cuh>

namespace deep_gemm {

// Copies `kCount` factors of one K block, `first` onwards; an index past `last` repeats it (its result is never stored).
template <int kCount>
DG_DEVICE void copy_factors(ptx::SmemAddr destination, const ScaleArgs& scales, uint32_t k_block, uint32_t first,
                            uint32_t last, uint32_t lane) {
    const float* block = scales.data + static_cast<int64_t>(k_block) * scales.stride_k;
#pragma unroll
    for (int i = 0; i < kCount; i += 32) {
        const uint32_t index = i + lane;
        if (kCount % 32 == 0 || index < kCount)
            ptx::cp_async_4(destination + index * sizeof(float),
                            block + static_cast<int64_t>(min_of(first + index, last)) * scales.stride_mn);
    }
}

// SFA of one thread's accumulators: two rows of each 64-row wave, 8 apart.
template <int kWaves>
struct RowFactors {
    float value[kWaves][2];
};

// `row` is this thread's first row within the tile.
template <int kWaves>
DG_DEVICE RowFactors<kWaves> read_row_factors(ptx::SmemAddr sfa, uint32_t row) {
    RowFactors<kWaves> factors;
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            factors.value[wave][half] = ptx::load_shared_f32(sfa + (row + wave * kWgmmaM + half * 8) * sizeof(float));
    return factors;
}

// SFB of a tile under 128-row blocks of B.
template <int kBlocks>
struct BlockFactors {
    float value[kBlocks];
};

template <int kBlocks>
DG_DEVICE BlockFactors<kBlocks> read_block_factors(ptx::SmemAddr sfb) {
    BlockFactors<kBlocks> factors;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) factors.value[i] = ptx::load_shared_f32(sfb + i * sizeof(float));
    return factors;
}

}  // namespace deep_gemm
