// Scaling factors on their way from global memory into the promotion, in any strides and without a kernel of their own.
//   SFA, and SFB per 128-row block: straight into registers. The four lanes of a quad share their rows, so each lane loads
//     another K block's factors, four blocks in one load, well before they are used; a shuffle hands them round.
//   SFB per row (a factor a column of the tile): a warp copies them into the pipeline's stages.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/matrix.cuh>

namespace deep_gemm {

// The factors of one K block that one thread's accumulators need.
template <int kWaves, int kBlocks>
struct Factors {
    float row[kWaves][2];                  // SFA of two rows a 64-row wave, 8 apart
    float block[kBlocks == 0 ? 1 : kBlocks];  // SFB of the 128-column blocks the tile touches; none if SFB is per row
};

// Feeds a math thread the factors of consecutive K blocks. kGroups groups of four K blocks are loaded at a time, one
// batch ahead of use: enough bytes of lookahead for short K blocks costs registers, so it is the caller's choice.
template <int kWaves, int kBlocks, int kGroups>
class FactorFeed {
  public:
    using Values = Factors<kWaves, kBlocks>;

    // `row`: this thread's first row of the matrix; `column`: the tile's first. Starts the first loads.
    DG_DEVICE FactorFeed(const Fp8GemmArgs& args, uint32_t row, uint32_t column, uint32_t lane)
        : args_(args), quad_lane_(lane % 4), num_k_(ceil_div<uint32_t>(args.k, kBlockK)) {
        point_at(row, column);
        load(0);
    }

    // Moves to another tile and starts its first loads.
    DG_DEVICE void restart(uint32_t row, uint32_t column) {
        point_at(row, column);
        load(0);
    }

    // The factors of K block `k`; called once for each k in order.
    DG_DEVICE Values at(uint32_t k) {
        constexpr uint32_t kBatch = kGroups * 4;
        if (k % kBatch == 0) {
#pragma unroll
            for (int group = 0; group < kGroups; ++group) current_[group] = next_[group];
            load(k + kBatch);
        }
        const uint32_t group = k / 4 % kGroups;
        const uint32_t source = k % 4;
        Values values;
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                values.row[wave][half] = hand_round(
                    kGroups == 2 && group == 1 ? current_[kGroups - 1].row[wave][half] : current_[0].row[wave][half],
                    source);
#pragma unroll
        for (int i = 0; i < kBlocks; ++i)
            values.block[i] = hand_round(
                kGroups == 2 && group == 1 ? current_[kGroups - 1].block[i] : current_[0].block[i], source);
        return values;
    }

  private:
    static_assert(kGroups == 1 || kGroups == 2);

    // Rows and columns past the matrix use the last one's factors: their results are never stored.
    DG_DEVICE void point_at(uint32_t row, uint32_t column) {
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint32_t r = min_of(row + wave * kWgmmaM + half * 8, args_.m - 1);
                row_[wave][half] = args_.sfa.data + static_cast<int64_t>(r) * args_.sfa.stride_mn;
            }
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
            const uint32_t last = ceil_div<uint32_t>(args_.n, kScaleBlock) - 1;
            const uint32_t block = min_of(column / kScaleBlock + i, last);
            block_[i] = args_.sfb.data + static_cast<int64_t>(block) * args_.sfb.stride_mn;
        }
    }

    // Starts loading K blocks first .. first + 4 * kGroups - 1: this lane's of each four.
    DG_DEVICE void load(uint32_t first) {
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
            const int64_t k = min_of(first + group * 4 + quad_lane_, num_k_ - 1);
#pragma unroll
            for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    next_[group].row[wave][half] = ptx::load_global_f32(row_[wave][half] + k * args_.sfa.stride_k);
#pragma unroll
            for (int i = 0; i < kBlocks; ++i)
                next_[group].block[i] = ptx::load_global_f32(block_[i] + k * args_.sfb.stride_k);
        }
    }

    static DG_DEVICE float hand_round(float value, uint32_t source) { return __shfl_sync(0xffffffff, value, source, 4); }

    const Fp8GemmArgs& args_;
    const float* row_[kWaves][2];
    const float* block_[kBlocks == 0 ? 1 : kBlocks];
    uint32_t quad_lane_, num_k_;
    Values current_[kGroups], next_[kGroups];
};

// Copies a tile's factors of one K block, `kCount` from `first`; those at `end` and past it are left as they are.
template <int kCount>
DG_DEVICE void copy_factors(ptx::SmemAddr destination, const ScaleArgs& scales, uint32_t k_block, uint32_t first,
                            uint32_t end, uint32_t lane) {
    const float* source = scales.data + k_block * scales.stride_k + (first + lane) * scales.stride_mn;
#pragma unroll
    for (uint32_t i = 0; i < kCount; i += 32, source += 32 * scales.stride_mn)
        if (i + lane < kCount && first + i + lane < end)
            ptx::cp_async_4(destination + (i + lane) * sizeof(float), source);
}

}  // namespace deep_gemm
