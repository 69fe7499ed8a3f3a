// Epilogue: add C, round to D's type, stage under a 128-byte swizzle, store by TMA.
// The store runs under the next tile's mainloop; before the staging area is written again, its reads are awaited.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/cluster.cuh>
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
// `Args` has c, c_stride_m and the extents m, n.
template <StoreConfig kConfig, typename Args>
DG_DEVICE void add_c(const Args& args, float (&sums)[kConfig.block_n / 2], uint32_t row, uint32_t n_idx, uint32_t lane) {
    const bool interior = n_idx + kConfig.block_n <= args.n;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int64_t r = min_of(row + half * 8, args.m - 1);
        const char* c_row = static_cast<const char*>(args.c) + r * args.c_stride_m * output_bytes(kConfig.dtype);
        float2 c[kConfig.block_n / 8];
#pragma unroll
        for (int i = 0; i < kConfig.block_n / 8; ++i) {
            const uint32_t column = n_idx + i * 8 + lane % 4 * 2;
            if (interior)
                c[i] = load_c_pair<kConfig.dtype>(c_row, column);
            else
                c[i] = {load_c<kConfig.dtype>(c_row, min_of(column, args.n - 1)),
                        load_c<kConfig.dtype>(c_row, min_of(column + 1, args.n - 1))};
        }
#pragma unroll
        for (int i = 0; i < kConfig.block_n / 8; ++i) {
            sums[i * 4 + half * 2] += c[i].x;
            sums[i * 4 + half * 2 + 1] += c[i].y;
        }
    }
}

// Address of the 16-byte chunk that holds `column` of `row` in a staged box (64 rows of 128 bytes, swizzled).
template <int kElementBytes>
DG_DEVICE ptx::SmemAddr staged_chunk(ptx::SmemAddr box, uint32_t row, uint32_t column) {
    return box + row * 128 + ((column * kElementBytes / 16) ^ (row % 8)) * 16;
}

// One warp stages its 16 rows (`warp_row` first) of a box as BF16: four 8x8 matrices an instruction.
template <int kColumns>
DG_DEVICE void stage_bf16(ptx::SmemAddr box, const float* fragment, uint32_t warp_row, uint32_t lane) {
    const uint32_t row = warp_row + lane % 16;
    const auto packed = [&](int column, int half) {
        return ptx::pack_bf16(fragment[column / 2 + half * 2], fragment[column / 2 + half * 2 + 1]);
    };
#pragma unroll
    for (int column = 0; column + 16 <= kColumns; column += 16)
        ptx::stmatrix_x4(staged_chunk<2>(box, row, column + lane / 16 * 8), packed(column, 0), packed(column, 1),
                         packed(column + 8, 0), packed(column + 8, 1));
    if constexpr (kColumns % 16 != 0) {
        constexpr int kLast = kColumns - 8;
        ptx::stmatrix_x2(staged_chunk<2>(box, row, kLast), packed(kLast, 0), packed(kLast, 1));
    }
}

template <int kColumns>
DG_DEVICE void stage_f32(ptx::SmemAddr box, const float* fragment, uint32_t warp_row, uint32_t lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t row = warp_row + lane / 4 + half * 8;
#pragma unroll
        for (int column = 0; column < kColumns; column += 8) {
            const uint32_t mine = column + lane % 4 * 2;
            ptx::store_shared_f32x2(staged_chunk<4>(box, row, mine) + mine % 4 * 4, fragment[column / 2 + half * 2],
                                    fragment[column / 2 + half * 2 + 1]);
        }
    }
}

// Stores one warpgroup's sums, a few 64-row boxes at a time. `staging` is the warpgroup's own; its threads share named
// barrier `barrier_id`. D's rows and columns past the matrix are clipped by TMA.
// `Args` has the map d and the extents m, n.
template <StoreConfig kConfig, int kWaves, typename Args>
DG_DEVICE void store_sums(const Args& args, const float (&sums)[kWaves][kConfig.block_n / 2],
                          ptx::SmemAddr staging, uint32_t row, uint32_t n_idx, uint32_t barrier_id) {
    constexpr int kStoreN = kConfig.columns;
    constexpr int kBoxesInRow = kConfig.block_n / kStoreN, kBoxes = kWaves * kBoxesInRow, kDepth = kConfig.boxes;
    const uint32_t lane = ptx::lane_id(), warp_row = threadIdx.x / 32 % 4 * 16;
    const bool storing_thread = threadIdx.x % kWarpgroupThreads == 0;
#pragma unroll
    for (int first = 0; first < kBoxes; first += kDepth) {
        if (storing_thread) ptx::bulk_wait_group_read<0>();
        ptx::named_barrier_sync(barrier_id, kWarpgroupThreads);
#pragma unroll
        for (int i = first; i < min_of(first + kDepth, kBoxes); ++i) {
            const float* fragment = sums[i / kBoxesInRow] + i % kBoxesInRow * (kStoreN / 2);
            if constexpr (kConfig.dtype == Dtype::kF32)
                stage_f32<kStoreN>(staging + (i - first) * kStoreBoxBytes, fragment, warp_row, lane);
            else
                stage_bf16<kStoreN>(staging + (i - first) * kStoreBoxBytes, fragment, warp_row, lane);
        }
        ptx::fence_proxy_async_shared();
        ptx::named_barrier_sync(barrier_id, kWarpgroupThreads);
        if (!storing_thread) continue;
#pragma unroll
        for (int i = first; i < min_of(first + kDepth, kBoxes); ++i) {
            const uint32_t box_row = row + i / kBoxesInRow * kWgmmaM, column = n_idx + i % kBoxesInRow * kStoreN;
            if (box_row < args.m && column < args.n)
                ptx::tma_store_2d(args.d, staging + (i - first) * kStoreBoxBytes, column, box_row);
        }
        ptx::bulk_commit_group();
    }
}

}  // namespace deep_gemm
