// C by TMA: it comes into the staging area of D while the tile is multiplied, and is added where D is staged afterwards.
//
//   C (global) --TMA, 128-byte swizzle--> boxes (smem) --ldmatrix--> sums + C --> the same boxes --TMA--> D
//
// All of a warpgroup's boxes are staged at once. A thread reads from them the elements it will write there, so the boxes need no
// barrier in between. They are free for C when the stores of the tile before have read them.
#pragma once

#include <deep_gemm/epilogue/store.cuh>
#include <deep_gemm/ptx/mbarrier.cuh>

namespace deep_gemm {

// C of one math warpgroup's tiles, BF16. All of its threads call everything together.
template <StoreConfig kConfig, int kWaves>
class StagedC {
  public:
    static_assert(kConfig.dtype == Dtype::kBf16, "fragments come as matrices of 16-bit elements");
    static_assert(kConfig.grouping == Grouping::kDense || kConfig.grouping == Grouping::kBatched, "every tile asks for C");

    // `map` has boxes of `box_rows` rows; C ends at m, n. `full`: a barrier of one arrival, this warpgroup's own.
    DG_DEVICE StagedC(const TensorMap& map, uint32_t box_rows, uint32_t m, uint32_t n, ptx::SmemAddr staging,
                      ptx::SmemAddr full)
        : map_(map), box_bytes_(box_rows * kConfig.columns * 2), m_(m), n_(n), staging_(staging), full_(full) {}

    // Asks for C of the tile whose first row of this warpgroup is `row`: once a tile, some time after the last one's store.
    DG_DEVICE void request(const Tile& tile, uint32_t row) const {
        if (threadIdx.x % kWarpgroupThreads == 0 && has_c(tile, row)) {
            ptx::bulk_wait_group_read<0>();
            const uint32_t waves = min_of<uint32_t>(kWaves, ceil_div<uint32_t>(m_ - row, kWgmmaM));
            const uint32_t columns = min_of<uint32_t>(kInRow, ceil_div<uint32_t>(n_ - tile.n_idx, kConfig.columns));
            ptx::mbarrier_arrive_expect_tx(full_, waves * columns * box_bytes_);
            for (uint32_t wave = 0; wave < waves; ++wave)
                for (uint32_t i = 0; i < columns; ++i) load(tile, row + wave * kWgmmaM, i, wave * kInRow + i);
        }
        __syncwarp();
    }

    // Adds what was asked for. Rows and columns past C get what lies there: they are never stored.
    DG_DEVICE void add_to(float (&sums)[kWaves][kConfig.block_n / 2], const Tile& tile, uint32_t row) {
        if (!has_c(tile, row)) return;
        ptx::mbarrier_wait(full_, phase_);
        phase_ ^= 1;
#pragma unroll
        for (int box = 0; box < kWaves * kInRow; ++box)
            add_box(staging_ + box * kStoreBoxBytes, sums[box / kInRow] + box % kInRow * (kConfig.columns / 2));
        ptx::fence_proxy_async_shared();  // before C of the next tile, should this one not be staged
    }

  private:
    static constexpr int kInRow = kConfig.block_n / kConfig.columns;

    DG_DEVICE bool has_c(const Tile& tile, uint32_t row) const { return row < m_ && tile.n_idx < n_; }

    DG_DEVICE void load(const Tile& tile, uint32_t row, uint32_t i, uint32_t box) const {
        const uint32_t column = tile.n_idx + i * kConfig.columns;
        const ptx::SmemAddr to = staging_ + box * kStoreBoxBytes;
        if constexpr (kConfig.grouping == Grouping::kDense)
            ptx::tma_load_2d(map_, to, full_, column, row);
        else
            ptx::tma_load_3d(map_, to, full_, column, row, has_output_per_group(kConfig.grouping) ? tile.group : 0);
    }

    DG_DEVICE static void add_box(ptx::SmemAddr box, float* fragment) {
        const uint32_t lane = ptx::lane_id(), row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
        for (int column = 0; column + 16 <= kConfig.columns; column += 16) {
            uint32_t packed[4];  // columns and columns + 8, each of two halves
            ptx::ldmatrix_x4(staged_chunk<2>(box, row, column + lane / 16 * 8), packed);
            add_packed(packed, fragment + column / 2);
        }
        if constexpr (kConfig.columns % 16 != 0) {
            constexpr int kLast = kConfig.columns - 8;
            uint32_t packed[2];
            ptx::ldmatrix_x2(staged_chunk<2>(box, row, kLast), packed);
            add_packed(packed, fragment + kLast / 2);
        }
    }

    template <int kCount>
    DG_DEVICE static void add_packed(const uint32_t (&packed)[kCount], float* fragment) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            fragment[i * 2] += ptx::bf16_low(packed[i]);
            fragment[i * 2 + 1] += ptx::bf16_high(packed[i]);
        }
    }

    const TensorMap& map_;
    const uint32_t box_bytes_, m_, n_;
    const ptx::SmemAddr staging_, full_;
    uint32_t phase_ = 0;
};

// Where no C is staged.
struct NoStagedC {
    DG_DEVICE void request(const Tile&, uint32_t) const {}
};

}  // namespace deep_gemm
