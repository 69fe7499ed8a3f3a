// Scaling factors on their way from global memory into the promotion, in any strides and without a kernel of their own.
//   SFA, and SFB per 128-row block: straight into registers. The four lanes of a quad share their rows, so each lane loads
//     and multiplies other factors, a whole batch ahead of use; a shuffle hands them round.
//   SFB per row (a factor a column of the tile): TMA loads them into the pipeline's stages where they lie in units of 16 bytes, a
//     warp copies them otherwise; SFA, too, for tiles whose registers hold SFB.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/cp_async.cuh>
#include <deep_gemm/ptx/matrix.cuh>

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
    static constexpr int kLanesAlongK = min_of(kBatch, 4);  // of a quad; the others have other waves

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
        else if (kGroups == 2 && position == kLanesAlongK)
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
                        __shfl_sync(0xffffffff, current_[index / kLanesAlongK].value[wave % kOwnWaves][half][i],
                                    wave / kOwnWaves * kLanesAlongK + (position + index) % kLanesAlongK, 4);
        return scales;
    }

  private:
    static constexpr int kGroups = kBatch / kLanesAlongK;
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

    // Starts loading the next batch: of each kLanesAlongK K blocks, this lane's.
    DG_DEVICE void load() {
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
#pragma unroll
            for (int wave = 0; wave < kOwnWaves; ++wave)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    incoming_[group].sfa[wave][half] = ptx::load_global_f32_below(
                        row_[wave][half] + group * kLanesAlongK * args_.sfa.stride_k, group * kLanesAlongK, remaining_);
#pragma unroll
            for (int i = 0; i < kBlocks; ++i)
                incoming_[group].sfb[i] = ptx::load_global_f32_below(
                    block_[i] + group * kLanesAlongK * args_.sfb.stride_k, group * kLanesAlongK, remaining_);
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

// Loads a tile's factors per row of A or of B, kCount of them, one K block after another, by TMA: where they lie in units of 16 bytes.
template <int kCount>
class ScaleLoads {
  public:
    // Turns to the tile whose first row of the operand is `row`; the operand has `extent`.
    DG_DEVICE void restart(const ScaleArgs& scales, uint32_t extent, uint32_t row, int32_t group) {
        source_ = scales.data + group * scales.stride_g + row;
        stride_k_ = scales.stride_k;
        bytes_ = row < extent ? min_of<uint32_t>(extent - row, kCount) * sizeof(float) : 0;
    }

    // Of each K block; 0 before the first tile.
    DG_DEVICE uint32_t bytes() const { return bytes_; }

    // By one thread: loads the factors of K block `k` of the tile.
    DG_DEVICE void load(uint32_t k, ptx::SmemAddr destination, ptx::SmemAddr barrier) const {
        if (bytes_ != 0) ptx::bulk_load(destination, source_ + k * stride_k_, bytes_, barrier);
    }

  private:
    const float* source_ = nullptr;
    int64_t stride_k_ = 0;
    uint32_t bytes_ = 0;
};

// Copies a tile's factors per row of A or of B, kCount of them, one K block after another: by one warp, four a lane.
template <int kCount>
class ScaleCopier {
  public:
    static_assert(kCount <= 256);

    // `extent`: the rows of the operand.
    DG_DEVICE ScaleCopier(const ScaleArgs& scales, uint32_t extent, uint32_t lane)
        : scales_(scales), extent_(extent), lane_(lane) {
        const bool aligned = (reinterpret_cast<uint64_t>(scales.data) | static_cast<uint64_t>((scales.stride_k | scales.stride_g) * 4)) % 16 == 0;
        vector_ = scales.stride_mn == 1 && aligned;
    }

    // Turns to the tile whose first row of the operand is `row`.
    DG_DEVICE void restart(uint32_t row, int32_t group) {
        first_ = row + lane_ * 4;
        source_ = scales_.data + group * scales_.stride_g + first_ * scales_.stride_mn;
    }

    // Copies the current K block's factors to `destination` and moves to the next; rows past the operand are left alone.
    DG_DEVICE void copy(ptx::SmemAddr destination) {
#pragma unroll
        for (uint32_t i = 0; i < kCount; i += 128) {
            const uint32_t place = i + lane_ * 4;
            if (place < kCount) copy_four(destination + place * sizeof(float), source_ + i * scales_.stride_mn, first_ + i);
        }
        source_ += scales_.stride_k;
    }

    // Zeros for a K block past the end: its products are zeros, and garbage times them might not be.
    DG_DEVICE void clear(ptx::SmemAddr destination) const {
#pragma unroll
        for (uint32_t i = 0; i < kCount; i += 128) {
            const uint32_t place = i + lane_ * 4;
            if (place < kCount)
                for (uint32_t j = 0; j < 4; ++j)
                    ptx::cp_async_zero_4(destination + (place + j) * sizeof(float), scales_.data);
        }
    }

  private:
    DG_DEVICE void copy_four(ptx::SmemAddr destination, const float* source, uint32_t row) const {
        const uint32_t count = row < extent_ ? min_of(extent_ - row, 4u) : 0;
        if (vector_) {
            if (count != 0) ptx::cp_async_16(destination, source, count * sizeof(float));
            return;
        }
        for (uint32_t i = 0; i < count; ++i) ptx::cp_async_4(destination + i * sizeof(float), source + i * scales_.stride_mn);
    }

    const ScaleArgs& scales_;
    const uint32_t extent_, lane_;
    bool vector_;  // four neighbouring factors are one aligned 16-byte word
    uint32_t first_;
    const float* source_;
};

}  // namespace deep_gemm
