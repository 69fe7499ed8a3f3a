// Epilogue of one 64-row wave: add C, round to D's type, stage under a 128-byte swizzle, store by TMA.
// The store runs under the next tile's mainloop; before the staging area is written again, its reads are awaited.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/fence.cuh>
#include <deep_gemm/ptx/matrix.cuh>

namespace deep_gemm {

// C[row, column..column+1] of D's type as FP32.
template <Dtype kDtype>
DG_DEVICE float2 load_c_pair(const char* row, uint32_t column) {
    if constexpr (kDtype == Dtype::kF32) return reinterpret_cast<const float2*>(row)[column / 2];
    const uint32_t pair = reinterpret_cast<const uint32_t*>(row)[column / 2];
    return {ptx::bf16_low(pair), ptx::bf16_high(pair)};
}

template <Dtype kDtype>
DG_DEVICE float load_c(const char* row, uint32_t column) {
    if constexpr (kDtype == Dtype::kF32) return reinterpret_cast<const float*>(row)[column];
    return ptx::bf16_low(reinterpret_cast<const uint16_t*>(row)[column]);
}

// Adds C to this thread's fragment of a wave; `row` is its first row, `n_idx` the tile's first column. Past the matrix it
// re-reads the last row and column: those sums are never stored. Branch-free inside, so that all loads are in flight at once.
template <Fp8GemmConfig kConfig>
DG_DEVICE void add_c(const Fp8GemmArgs& args, float (&sums)[kConfig.block_n / 2], uint32_t row, uint32_t n_idx,
                     uint32_t lane) {
    const bool interior = n_idx + kConfig.block_n <= args.n;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int64_t r = min_of(row + half * 8, args.m - 1);
        const char* c_row = static_cast<const char*>(args.c) + r * args.c_stride_m * d_element_bytes(kConfig);
        float2 c[kConfig.block_n / 8];
#pragma unroll
        for (int i = 0; i < kConfig.block_n / 8; ++i) {
            const uint32_t column = n_idx + i * 8 + lane % 4 * 2;
            if (interior)
                c[i] = load_c_pair<kConfig.d_dtype>(c_row, column);
            else
                c[i] = {load_c<kConfig.d_dtype>(c_row, min_of(column, args.n - 1)),
                        load_c<kConfig.d_dtype>(c_row, min_of(column + 1, args.n - 1))};
        }
#pragma unroll
        for (int i = 0; i < kConfig.block_n / 8; ++i) {
            sums[i * 4 + half * 2] += c[i].x;
            sums[i * 4 + half * 2 + 1] += c[i].y;
        }
    }
}

// Address of the 16-byte chunk at (row, column) of a 64-row wave staged as store boxes of kStoreN columns.
template <int kStoreN, int kElementBytes>
DG_DEVICE ptx::SmemAddr staged_chunk(ptx::SmemAddr wave_base, uint32_t row, uint32_t column) {
    const uint32_t box = column / kStoreN;
    const uint32_t chunk = column % kStoreN * kElementBytes / 16;
    return wave_base + box * (kWgmmaM * 128) + row * 128 + ((chunk ^ (row % 8)) * 16);
}

// One warp stages its 16 rows (`warp_row` first) of BF16: four 8x8 matrices an instruction.
template <int kBlockN, int kStoreN>
DG_DEVICE void stage_bf16(ptx::SmemAddr wave_base, const float (&sums)[kBlockN / 2], uint32_t warp_row, uint32_t lane) {
    const uint32_t row = warp_row + lane % 16;
    const auto packed = [&](int column, int half) {
        return ptx::pack_bf16(sums[column / 2 + half * 2], sums[column / 2 + half * 2 + 1]);
    };
#pragma unroll
    for (int column = 0; column + 16 <= kBlockN; column += 16) {
        const ptx::SmemAddr address = staged_chunk<kStoreN, 2>(wave_base, row, column + lane / 16 * 8);
        ptx::stmatrix_x4(address, packed(column, 0), packed(column, 1), packed(column + 8, 0), packed(column + 8, 1));
    }
    if constexpr (kBlockN % 16 != 0) {
        constexpr int kLast = kBlockN - 8;
        ptx::stmatrix_x2(staged_chunk<kStoreN, 2>(wave_base, row, kLast), packed(kLast, 0), packed(kLast, 1));
    }
}

template <int kBlockN, int kStoreN>
DG_DEVICE void stage_f32(ptx::SmemAddr wave_base, const float (&sums)[kBlockN / 2], uint32_t warp_row, uint32_t lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t row = warp_row + lane / 4 + half * 8;
#pragma unroll
        for (int column = 0; column < kBlockN; column += 8) {
            const uint32_t mine = column + lane % 4 * 2;
            const ptx::SmemAddr address = staged_chunk<kStoreN, 4>(wave_base, row, mine) + mine % 4 * 4;
            ptx::store_shared_f32x2(address, sums[column / 2 + half * 2], sums[column / 2 + half * 2 + 1]);
        }
    }
}

// By one thread: sends a staged wave to D at (row, n_idx). Boxes wholly outside D are skipped, the rest clipped by TMA.
template <Fp8GemmConfig kConfig>
DG_DEVICE void store_wave(const Fp8GemmArgs& args, ptx::SmemAddr wave_base, uint32_t row, uint32_t n_idx) {
    constexpr int kStoreN = smem_plan(kConfig).store_n;
    if (row >= args.m) return;
#pragma unroll
    for (int box = 0; box < kConfig.block_n / kStoreN; ++box) {
        const uint32_t column = n_idx + box * kStoreN;
        if (column < args.n) ptx::tma_store_2d(args.d, wave_base + box * (kWgmmaM * 128), column, row);
    }
}

}  // namespace deep_gemm
