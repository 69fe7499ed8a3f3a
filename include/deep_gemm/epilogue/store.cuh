// Epilogue: round to D's type, stage under a 128-byte swizzle, store by TMA.
// The store runs under the next tile's mainloop; before the staging area is written again, its reads are awaited.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/cluster.cuh>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/fence.cuh>
#include <deep_gemm/ptx/matrix.cuh>
#include <deep_gemm/schedule/raster.cuh>

namespace deep_gemm {

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

// One warp stages its rows as FP32, eight bytes a lane. Rows 2i and 2i + 1 of a box have the same columns in the same banks, so
// lanes of odd rows store theirs 16 columns away.
template <int kColumns>
DG_DEVICE void stage_f32(ptx::SmemAddr box, const float* fragment, uint32_t warp_row, uint32_t lane) {
    constexpr int kAway = kColumns == 32 ? 16 : 0;
    const bool is_odd = lane / 4 % 2 == 1;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t row = warp_row + lane / 4 + half * 8;
#pragma unroll
        for (int column = 0; column < kColumns; column += 8) {
            const float* even = fragment + column / 2 + half * 2;
            const float* odd = fragment + (column ^ kAway) / 2 + half * 2;
            const uint32_t mine = (is_odd ? column ^ kAway : column) + lane % 4 * 2;
            ptx::store_shared_f32x2(staged_chunk<4>(box, row, mine) + mine % 4 * 4, is_odd ? odd[0] : even[0], is_odd ? odd[1] : even[1]);
        }
    }
}

// Zeroes a thread's rows for which wanted(row) is false. Selected, not multiplied: padding rows may hold NaN.
template <int kFragment, typename Wanted>
DG_DEVICE void zero_rows_unless(const Wanted& wanted, float (&sums)[kFragment], uint32_t row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (wanted(row + half * 8)) continue;
#pragma unroll
        for (int i = half * 2; i < kFragment; i += 4) sums[i] = sums[i + 1] = 0.0f;
    }
}

// Writes one column pair of a row, or its first column alone at the edge of D.
template <Dtype kDtype>
DG_DEVICE void store_pair(char* row, uint32_t column, uint32_t n, float x, float y) {
    if (column >= n) return;
    if constexpr (kDtype == Dtype::kF32) {
        float* d = reinterpret_cast<float*>(row) + column;
        d[0] = x;
        if (column + 1 < n) d[1] = y;
    } else {
        const uint32_t pair = ptx::pack_bf16(x, y);
        uint16_t* d = reinterpret_cast<uint16_t*>(row) + column;
        if (column + 1 < n)
            *reinterpret_cast<uint32_t*>(d) = pair;
        else
            *d = static_cast<uint16_t>(pair);
    }
}

// Where the waves of a warpgroup lie in D: the first one at `row`, the others `stride` rows from one to the next. Of a last one
// that it shares, it has the sums of half of the columns, in the first half of its fragment; the rest of it stays zero.
struct WavePlaces {
    uint32_t row;
    uint32_t stride = kWgmmaM;
    bool shares_last = false;
    uint32_t shared_column = 0;  // of the tile

    DG_DEVICE uint32_t row_of(int wave) const { return row + wave * stride; }
};

// The columns of a tile that a wave has sums of.
struct ColumnRange {
    uint32_t first, count;
};

template <int kWaves>
DG_DEVICE ColumnRange columns_of(const WavePlaces& places, int wave, int block_n) {
    if (places.shares_last && wave == kWaves - 1) return {places.shared_column, static_cast<uint32_t>(block_n / 2)};
    return {0, static_cast<uint32_t>(block_n)};
}

// Stores the rows of a wave before `tile.m_end` straight from registers, up to column N, where TMA would write more: the rest
// of 16 bytes in which N ends. `row` is this thread's first.
template <StoreConfig kConfig, typename Args>
DG_DEVICE void store_ragged_wave(const Args& args, const float (&sums)[kConfig.block_n / 2], const Tile& tile,
                                 uint32_t row, const ColumnRange& columns) {
    const OutputArgs& output = args.output;
    const int32_t group = has_output_per_group(kConfig.grouping) ? tile.group : 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t r = row + half * 8;
        if (r >= tile.m_end) continue;
        char* d_row = static_cast<char*>(output.data) +
                      (group * output.stride_g + r * output.stride_m) * output_bytes(kConfig.dtype);
#pragma unroll
        for (uint32_t column = 0; column < kConfig.block_n; column += 8)
            if (column < columns.count)
                store_pair<kConfig.dtype>(d_row, tile.n_idx + columns.first + column + ptx::lane_id() % 4 * 2, args.n,
                                          sums[column / 2 + half * 2], sums[column / 2 + half * 2 + 1]);
    }
}

// Where a column of the product lies in D.
DG_DEVICE uint32_t column_of_heads(const HeadArgs& heads, uint32_t column) {
    const uint32_t head = column / (heads.left + heads.right), within = column - head * (heads.left + heads.right);
    return column + head * heads.mid + (within >= heads.left ? heads.mid : 0);
}

// Makes a wave's sums what its group wants of D: rows of no group become zeros. `row` is this thread's first.
template <StoreConfig kConfig, typename Args>
DG_DEVICE void keep_rows_of_group(const Args& args, float (&sums)[kConfig.block_n / 2], const Tile& tile, uint32_t row) {
    if constexpr (kConfig.grouping == Grouping::kContiguous)
        zero_rows_unless([&](uint32_t r) { return args.groups.layout[min_of(r, args.m - 1)] >= 0; }, sums, row);
    if constexpr (kConfig.grouping == Grouping::kPsum)
        zero_rows_unless([&](uint32_t r) { return r < tile.zero_from; }, sums, row);
}

// The first `rows` rows of a staged box, by all threads of the warpgroup: TMA would write the others, too, which are not the
// group's. `row` and `column` are the box's in D.
template <StoreConfig kConfig, typename Args>
DG_DEVICE void store_rows(const Args& args, ptx::SmemAddr box, uint32_t rows, uint32_t row, uint32_t column, int32_t group) {
    constexpr uint32_t kBytes = output_bytes(kConfig.dtype), kChunks = kConfig.columns * kBytes / 16;
    const OutputArgs& output = args.output;
    const int64_t first = (has_output_per_group(kConfig.grouping) ? group : 0) * output.stride_g + row * output.stride_m + column;
    char* d = static_cast<char*>(output.data) + first * kBytes;
#pragma unroll 1
    for (uint32_t i = threadIdx.x % kWarpgroupThreads; i < rows * kChunks; i += kWarpgroupThreads) {
        const uint32_t r = i / kChunks, c = i % kChunks * (16 / kBytes);
        if (column + c >= args.n) continue;
        uint32_t words[4];
        ptx::load_shared_u32x4(staged_chunk<kBytes>(box, r, c), words);
        ptx::store_global_u32x4(d + (r * output.stride_m + c) * kBytes, words);
    }
}

template <StoreConfig kConfig>
DG_DEVICE void store_box(const TensorMap& d, ptx::SmemAddr box, uint32_t column, uint32_t row, int32_t group) {
    const int32_t d_group = has_output_per_group(kConfig.grouping) ? group : 0;
    if constexpr (kConfig.grouping == Grouping::kDense)
        kConfig.adds ? ptx::tma_add_2d(d, box, column, row) : ptx::tma_store_2d(d, box, column, row);
    else
        kConfig.adds ? ptx::tma_add_3d(d, box, column, row, d_group) : ptx::tma_store_3d(d, box, column, row, d_group);
}

// The steps in which a warpgroup's boxes are staged. Where not all of them fit, half of the staging area is filled while TMA
// reads the other half.
template <StoreConfig kConfig, int kWaves>
struct StagingSteps {
    static constexpr int kBoxes = kWaves * (kConfig.block_n / kConfig.columns);
    static constexpr bool kAlternates = kBoxes > kConfig.boxes && kConfig.boxes % 2 == 0;
    static constexpr int kAtOnce = kAlternates ? kConfig.boxes / 2 : kConfig.boxes;
    static constexpr int kSteps = ceil_div(kBoxes, kAtOnce);

    // Where in the staging area the step that begins with box `first` puts it.
    static constexpr int place(int first) { return kAlternates ? first / kAtOnce % 2 * kAtOnce : 0; }
    // The newest stores that may still be reading as that step begins. After an odd number the next tile begins where this one
    // ended.
    static constexpr int pending(int first) { return kAlternates && (first > 0 || kSteps % 2 == 0) ? 1 : 0; }
};

// Stages and stores boxes of a warpgroup's waves, wave by wave, from kFirst on, as many as are staged at once. All its
// threads take part.
template <StoreConfig kConfig, int kFirst, typename Args, int kWaves>
DG_DEVICE void store_boxes(const Args& args, const float (&sums)[kWaves][kConfig.block_n / 2], const Tile& tile,
                           ptx::SmemAddr staging, const WavePlaces& places, uint32_t barrier_id) {
    using Steps = StagingSteps<kConfig, kWaves>;
    constexpr int kBoxesInRow = kConfig.block_n / kConfig.columns;
    constexpr int kCount = min_of(Steps::kAtOnce, Steps::kBoxes - kFirst);
    const auto box_of = [&](int i) { return staging + (Steps::place(kFirst) + i - kFirst) * kStoreBoxBytes; };
    const uint32_t lane = ptx::lane_id(), warp_row = threadIdx.x / 32 % 4 * 16;
    const bool storing_thread = threadIdx.x % kWarpgroupThreads == 0;
    if (storing_thread) ptx::bulk_wait_group_read<Steps::pending(kFirst)>();
    ptx::named_barrier_sync(barrier_id, kWarpgroupThreads);
#pragma unroll
    for (int i = kFirst; i < kFirst + kCount; ++i) {
        const float* fragment = sums[i / kBoxesInRow] + i % kBoxesInRow * (kConfig.columns / 2);
        if constexpr (kConfig.dtype == Dtype::kF32)
            stage_f32<kConfig.columns>(box_of(i), fragment, warp_row, lane);
        else
            stage_bf16<kConfig.columns>(box_of(i), fragment, warp_row, lane);
    }
    ptx::fence_proxy_async_shared();
    ptx::named_barrier_sync(barrier_id, kWarpgroupThreads);
    const auto for_each_box = [&](const auto& store) {
#pragma unroll
        for (int i = kFirst; i < kFirst + kCount; ++i) {
            const uint32_t row = places.row_of(i / kBoxesInRow), in_wave = i % kBoxesInRow * kConfig.columns;
            const ColumnRange columns = columns_of<kWaves>(places, i / kBoxesInRow, kConfig.block_n);
            const uint32_t column = tile.n_idx + columns.first + in_wave;
            if (row < tile.m_end && in_wave < columns.count && column < args.n) store(box_of(i), row, column);
        }
    };
    const auto is_whole = [&](uint32_t row) { return kConfig.grouping != Grouping::kMasked || row + kWgmmaM <= tile.m_end; };
    if constexpr (kConfig.grouping == Grouping::kMasked) {
        // Only the last wave that has rows can be partial.
        if (tile.m_end < places.row_of((kFirst + kCount - 1) / kBoxesInRow) + kWgmmaM)
            for_each_box([&](ptx::SmemAddr box, uint32_t row, uint32_t column) {
                if (!is_whole(row)) store_rows<kConfig>(args, box, tile.m_end - row, row, column, tile.group);
            });
    }
    if (!storing_thread) return;
    for_each_box([&](ptx::SmemAddr box, uint32_t row, uint32_t column) {
        if (!is_whole(row)) return;
        uint32_t d_column = column;
        if constexpr (kConfig.head_unit != 0) d_column = column_of_heads(args.heads, column);
        store_box<kConfig>(args.d, box, d_column, row, tile.group);
    });
    ptx::bulk_commit_group();
}

// One thread asks for D of a tile of `kRows` rows, to which TMA will add, to be in L2 by then: for a share of its boxes in each of
// `steps` steps. All tiles end at about the same time, and would wait for memory together.
template <StoreConfig kConfig, int kRows>
DG_DEVICE void prefetch_boxes(const TensorMap& d, const Tile& tile, uint32_t m, uint32_t step, uint32_t steps) {
    constexpr uint32_t kBoxesInRow = kConfig.block_n / kConfig.columns, kBoxes = kRows / kWgmmaM * kBoxesInRow;
    const uint32_t share = steps >= kBoxes ? 1 : ceil_div(kBoxes, steps), end = min_of((step + 1) * share, kBoxes);
    for (uint32_t box = step * share; box < end; ++box) {
        const uint32_t row = tile.m_idx + box / kBoxesInRow * kWgmmaM, column = tile.n_idx + box % kBoxesInRow * kConfig.columns;
        if (row >= m) return;
        if constexpr (kConfig.grouping == Grouping::kDense)
            ptx::tma_prefetch_2d(d, column, row);
        else
            ptx::tma_prefetch_3d(d, column, row, has_output_per_group(kConfig.grouping) ? tile.group : 0);
    }
}

template <StoreConfig kConfig, int kFirst, typename Args, int kWaves>
DG_DEVICE void store_boxes_from(const Args& args, const float (&sums)[kWaves][kConfig.block_n / 2], const Tile& tile,
                                ptx::SmemAddr staging, const WavePlaces& places, uint32_t barrier_id, const auto& between) {
    using Steps = StagingSteps<kConfig, kWaves>;
    if constexpr (kFirst < Steps::kBoxes) {
        if constexpr (kFirst == Steps::kSteps / 2 * Steps::kAtOnce) between();
        store_boxes<kConfig, kFirst>(args, sums, tile, staging, places, barrier_id);
        store_boxes_from<kConfig, kFirst + Steps::kAtOnce>(args, sums, tile, staging, places, barrier_id, between);
    }
}

// Stores one warpgroup's sums, a few 64-row boxes at a time. `staging` is the warpgroup's own; its threads share
// named barrier `barrier_id`. TMA clips rows past the matrix, and columns in units of 16 bytes: a tile over the edge of
// a ragged N goes another way. `between` is called once, halfway, or ahead of all boxes where they fit: what it takes is
// hidden where boxes wait for those before them.
template <StoreConfig kConfig, typename Args, int kWaves>
DG_DEVICE void store_sums(const Args& args, const float (&sums)[kWaves][kConfig.block_n / 2], const Tile& tile,
                          ptx::SmemAddr staging, const WavePlaces& places, uint32_t barrier_id, const auto& between) {
    if constexpr (kConfig.ragged_n) {
        if (tile.n_idx + kConfig.block_n > args.n) {
            ptx::named_barrier_sync(barrier_id, kWarpgroupThreads);  // C may be D, and other warps re-read its last row
            const uint32_t row_in_wave = threadIdx.x / 32 % 4 * 16 + ptx::lane_id() / 4;
#pragma unroll
            for (int wave = 0; wave < kWaves; ++wave) {
                store_ragged_wave<kConfig>(args, sums[wave], tile, places.row_of(wave) + row_in_wave,
                                           columns_of<kWaves>(places, wave, kConfig.block_n));
            }
            between();
            return;
        }
    }
    store_boxes_from<kConfig, 0>(args, sums, tile, staging, places, barrier_id, between);
}

}  // namespace deep_gemm
