// C that no TMA adds to: read from global memory, each thread its fragment, and added to its sums.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/matrix.cuh>
#include <deep_gemm/schedule/raster.cuh>

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

// Sums of a group without K: -0, for C + -0 is C to the bit, where C + 0 would lose the sign of a zero.
template <int kWaves, int kFragment>
DG_DEVICE void make_neutral(float (&sums)[kWaves][kFragment]) {
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
        for (int i = 0; i < kFragment; ++i) sums[wave][i] = -0.0f;
}

// Where row `row` of a tile's C starts.
template <StoreConfig kConfig, typename Args>
DG_DEVICE const char* row_of_c(const Args& args, const Tile& tile, int64_t row) {
    int64_t first_element = row * args.c_stride_m;
    if constexpr (has_output_per_group(kConfig.grouping)) first_element += tile.group * args.c_stride_g;
    return static_cast<const char*>(args.c) + first_element * output_bytes(kConfig.dtype);
}

// One warp asks for a tile's C, `kRows` rows of it, to be in L2 by the time it is added: it is read once, all at its end.
template <StoreConfig kConfig, int kRows, typename Args>
DG_DEVICE void prefetch_c(const Args& args, const Tile& tile, uint32_t lane) {
    constexpr uint32_t kBytes = output_bytes(kConfig.dtype);
    const uint32_t columns = tile.n_idx < args.n ? min_of<uint32_t>(args.n - tile.n_idx, kConfig.block_n) : 0;
    const uint32_t bytes = columns * kBytes / 16 * 16;
    if (bytes == 0) return;
#pragma unroll
    for (uint32_t i = 0; i < kRows; i += 32)
        if (tile.m_idx + i + lane < args.m)
            ptx::prefetch_l2(row_of_c<kConfig>(args, tile, tile.m_idx + i + lane) + tile.n_idx * kBytes, bytes);
}

// Adds C to this thread's fragment of a wave; `row` is its first row. Past the matrix it
// re-reads the last row and column: those sums are never stored. Branch-free inside, so that all loads are in flight at once.
// `Args` has c, c_stride_m and the extents m, n; where groups have a C each, also c_stride_g.
template <StoreConfig kConfig, typename Args>
DG_DEVICE void add_c(const Args& args, float (&sums)[kConfig.block_n / 2], const Tile& tile, uint32_t row, uint32_t lane) {
    const uint32_t n_idx = tile.n_idx;
    const bool interior = n_idx + kConfig.block_n <= args.n;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const char* c_row = row_of_c<kConfig>(args, tile, min_of(row + half * 8, args.m - 1));
        float2 c[kConfig.block_n / 8];
        const uint32_t first = n_idx + lane % 4 * 2;
        // One branch around all loads: within the loop the compiler would make it predicates, and hold both sides' addresses.
        if (interior) {
#pragma unroll
            for (int i = 0; i < kConfig.block_n / 8; ++i) c[i] = load_c_pair<kConfig.dtype>(c_row, first + i * 8);
        } else {
#pragma unroll
            for (int i = 0; i < kConfig.block_n / 8; ++i)
                c[i] = {load_c<kConfig.dtype>(c_row, min_of(first + i * 8, args.n - 1)),
                        load_c<kConfig.dtype>(c_row, min_of(first + i * 8 + 1, args.n - 1))};
        }
#pragma unroll
        for (int i = 0; i < kConfig.block_n / 8; ++i) {
            sums[i * 4 + half * 2] += c[i].x;
            sums[i * 4 + half * 2 + 1] += c[i].y;
        }
    }
}

}  // namespace deep_gemm
