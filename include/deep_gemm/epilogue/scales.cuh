// Scaling factors on their way from global memory into the promotion, in any strides and without a kernel of their own.
//   SFA, and SFB per 128-row block: straight into registers. The four lanes of a quad share their rows, so each lane loads
//     and multiplies other factors, a whole batch ahead of use; a shuffle hands them round.
//   SFB per row (a factor a column of the tile): warps copy them into the pipeline's stages; SFA, too, for tiles whose
//     registers hold SFB.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/matrix.cuh>
#include <deep_gemm/ptx/mbarrier.cuh>

namespace deep_gemm {

// What one thread's accumulators of one K block are multiplied with: two rows a 64-row wave, 8 apart, times the SFB of each
// 128-column block the tile touches (kBlocks; 0 if SFB is per row: then SFA alone).
template <int kWaves, int kBlocks>
struct RowScales {
    float value[kWaves][2][kBlocks == 0 ? 1 : kBlocks];
};

// Feeds a math thread the scales of consecutive K blocks, kBatch (2, 4 or 8) at a time. The next batch is in flight while
// this one is used: short K blocks need the longer batch to cover a load's latency. A quad's lanes share out each four K blocks, or
// two and halves of the waves.
// `Args` has sfa, sfb and the extents m, n.
template <typename Args, int kWaves, int kBlocks, int kBatch>
class ScaleFeed {
  public:
    using Scales = RowScales<kWaves, kBlocks>;

    // Follows with restart().
    DG_DEVICE ScaleFeed(const Args& args, uint32_t lane)
        : args_(args), k_lane_(lane % kLanesAlongK), first_wave_(lane % 4 / kLanesAlongK * kOwnWaves) {}

    // Turns to the tile whose first column is `column`, with `k` of K; starts its first loads. This thread's first row of wave i
    // is `row` + i * `wave_stride`. `group` counts in the strides of operands that have groups.
    DG_DEVICE void restart(uint32_t row, uint32_t wave_stride, uint32_t column, int32_t group, uint32_t k) {
        const float* sfa = args_.sfa.data + group * args_.sfa.stride_g;
        const float* sfb = args_.sfb.data + group * args_.sfb.stride_g;
        // Rows and columns past the matrix use the last one's factors: their results are never stored.
#pragma unroll
        for (int wave = 0; wave < kOwnWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint32_t r = min_of(row + (first_wave_ + wave) * wave_stride + half * 8, args_.m - 1);
                row_[wave][half] = sfa + r * args_.sfa.stride_mn + k_lane_ * args_.sfa.stride_k;
            }
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
            const uint32_t last = ceil_div<uint32_t>(args_.n, kScaleBlock) - 1;
            const uint32_t block = min_of(column / kScaleBlock + i, last);
            block_[i] = sfb + block * args_.sfb.stride_mn + k_lane_ * args_.sfb.stride_k;
        }
        remaining_ = static_cast<int>(ceil_div<uint32_t>(k, kBlockK)) - static_cast<int>(k_lane_);
        load();
    }

    // Makes the scales of the next kStep K blocks current, a batch or less; `position` in the batch is that of the first.
    template <int kStep>
    DG_DEVICE void turn_to(uint32_t position) {
        static_assert(kStep <= kBatch && (kStep % kLanesAlongK == 0 || kLanesAlongK % kStep == 0), "steps do not straddle groups");
        if (kStep == kBatch || position == 0)
            turn();
        else if (kGroups == 2 && position == 4)
            current_[0] = current_[1];
    }

    // The scales of K block `index` (a constant after unrolling) of a step that began at `position`.
    DG_DEVICE Scales at(uint32_t position, int index) const {
        Scales scales;
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int i = 0; i < kColumns; ++i)
                    scales.value[wave][half][i] =
                        __shfl_sync(0xffffffff, current_[index / 4].value[wave % kOwnWaves][half][i],
                                    wave / kOwnWaves * kLanesAlongK + (position + index) % kLanesAlongK, 4);
        return scales;
    }

  private:
    static constexpr int kLanesAlongK = min_of(kBatch, 4), kGroups = kBatch / kLanesAlongK;
    static constexpr int kOwnWaves = kWaves * kLanesAlongK / 4;  // of which a lane loads the factors
    static_assert(kOwnWaves * 4 == kWaves * kLanesAlongK, "lanes have whole waves");
    static constexpr int kColumns = kBlocks == 0 ? 1 : kBlocks;
    struct Factors {
        float sfa[kOwnWaves][2];
        float sfb[kColumns];
    };

    // Makes the loaded batch current and starts loading the one after it.
    DG_DEVICE void turn() {
#pragma unroll
        for (int group = 0; group < kGroups; ++group)
#pragma unroll
            for (int wave = 0; wave < kOwnWaves; ++wave)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float sfa = incoming_[group].sfa[wave][half];
                    float(&current)[kColumns] = current_[group].value[wave][half];
                    if constexpr (kBlocks == 0) current[0] = sfa;
#pragma unroll
                    for (int i = 0; i < kBlocks; ++i) current[i] = sfa * incoming_[group].sfb[i];
                }
        load();
    }

    // Starts loading the next batch: of each four K blocks, or of two, this lane's.
    DG_DEVICE void load() {
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
#pragma unroll
            for (int wave = 0; wave < kOwnWaves; ++wave)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    incoming_[group].sfa[wave][half] = ptx::load_global_f32_below(
                        row_[wave][half] + group * 4 * args_.sfa.stride_k, group * 4, remaining_);
#pragma unroll
            for (int i = 0; i < kBlocks; ++i)
                incoming_[group].sfb[i] = ptx::load_global_f32_below(block_[i] + group * 4 * args_.sfb.stride_k,
                                                                     group * 4, remaining_);
        }
        advance();
    }

    DG_DEVICE void advance() {
        remaining_ -= kBatch;
#pragma unroll
        for (int wave = 0; wave < kOwnWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half) row_[wave][half] += kBatch * args_.sfa.stride_k;
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) block_[i] += kBatch * args_.sfb.stride_k;
    }

    const Args& args_;
    const uint32_t k_lane_, first_wave_;
    const float* row_[kOwnWaves][2];  // of the next K block that this lane loads
    const float* block_[kColumns];
    int remaining_;                   // K blocks from there to the end
    RowScales<kOwnWaves, kBlocks> current_[kGroups];
    Factors incoming_[kGroups];
};

// SFA of a thread's two rows of a wave, from where a K block's were staged.
DG_DEVICE RowScales<1, 0> read_staged_sfa(ptx::SmemAddr sfa, uint32_t row) {
    const ptx::SmemAddr mine = sfa + row * sizeof(float);
    return {ptx::load_shared_f32(mine), ptx::load_shared_f32(mine + 8 * sizeof(float))};
}

// Rows of an operand whose factors one warp copies.
inline constexpr int kCopiedRows = 128;

// Copies the factors of up to 128 rows of A or of B into stages, one K block after another: by one warp, four a lane. MN-major ones
// are copied asynchronously, 16 bytes a lane. In all other forms a lane reads its rows' factors of kBatch K blocks at once, for they share
// sectors (row-major: of 32 bytes, which each copy of four would draw from L2 again), and stores them block by block.
template <int kBatch>
class ScaleCopier {
  public:
    // `extent`: the rows of the operand.
    DG_DEVICE ScaleCopier(const ScaleArgs& scales, uint32_t extent, uint32_t lane)
        : scales_(scales), extent_(extent), lane_(lane) {
        const bool aligned = (reinterpret_cast<uint64_t>(scales.data) | static_cast<uint64_t>((scales.stride_k | scales.stride_g) * 4)) % 16 == 0;
        asynchronous_ = scales.stride_mn == 1 && aligned;
    }

    // Turns to `count` rows of the operand from `row` on, with `k_blocks` K blocks.
    DG_DEVICE void restart(uint32_t row, uint32_t count, int32_t group, uint32_t k_blocks) {
        const uint32_t first = row + lane_ * (asynchronous_ ? 4 : 1);
        rows_ = static_cast<int>(min_of(row + count, extent_)) - static_cast<int>(first);
        source_ = scales_.data + group * scales_.stride_g + first * scales_.stride_mn;
        left_ = static_cast<int>(k_blocks);
        held_blocks_ = 0;
    }

    // Starts reading what the next copy() stores. Ahead of waiting for the stage.
    DG_DEVICE void fetch() {
        if (asynchronous_ || held_blocks_ > 0) return;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
            const float* row = source_ + i * 32 * scales_.stride_mn;
            const int readable = i * 32 < rows_ ? left_ : 0;
#pragma unroll
            for (int block = 0; block < kBatch; ++block)
                held_[i][block] = ptx::load_global_f32_below(row + block * scales_.stride_k, block, readable);
        }
        source_ += kBatch * scales_.stride_k;
        held_blocks_ = kBatch;
    }

    // Copies the current K block's factors to `destination` and moves to the next. Past the last one they are zeros: its products are zeros,
    // and garbage times them might not be. Those of rows past the operand are never used.
    DG_DEVICE void copy(ptx::SmemAddr destination) {
        if (asynchronous_) {
            copy_asynchronously(destination + lane_ * 16);
            source_ += scales_.stride_k;
        } else {
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                if (i * 32 < rows_) ptx::store_shared_f32(destination + (lane_ + i * 32) * 4, held_[i][0]);
#pragma unroll
                for (int block = 1; block < kBatch; ++block) held_[i][block - 1] = held_[i][block];
            }
            --held_blocks_;
        }
        --left_;
    }

    // This lane's arrival on a stage's barrier, once what it copied is there.
    DG_DEVICE void arrive(ptx::SmemAddr barrier) const {
        if (asynchronous_)
            ptx::mbarrier_arrive_on_cp_async(barrier);
        else
            ptx::mbarrier_arrive(barrier);
    }

  private:
    static constexpr int kRows = kCopiedRows / 32;

    DG_DEVICE void copy_asynchronously(ptx::SmemAddr destination) const {
        if (rows_ <= 0) return;
        const uint32_t bytes = left_ > 0 ? min_of(rows_, 4) * sizeof(float) : 0;
        ptx::cp_async_16(destination, bytes > 0 ? source_ : scales_.data, bytes);
    }

    const ScaleArgs& scales_;
    const uint32_t extent_, lane_;
    bool asynchronous_;  // four neighbouring factors are one aligned 16-byte word
    int rows_;           // from this lane's first one on
    const float* source_;
    int left_;         // K blocks to come
    int held_blocks_;  // of those that were read
    float held_[kRows][kBatch];
};

}  // namespace deep_gemm
