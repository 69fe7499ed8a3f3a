// Scaling factors on their way from global memory into the promotion: sum += accumulator * (sfa * sfb).
// The factors of K block k+1 are loaded while block k is multiplied, straight into registers: any strides, no extra kernel.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>
#include <deep_gemm/ptx/matrix.cuh>

namespace deep_gemm {

// SFA rows of one thread's accumulators: two per 64-row wave, 8 apart.
template <int kWaves>
struct RowFactors {
    float value[kWaves][2];
};

template <int kWaves>
class RowScaleReader {
  public:
    // `row` is this thread's first row in the matrix. Rows past `m` read row m-1: their results are never stored.
    DG_DEVICE RowScaleReader(const ScaleArgs& scales, uint32_t row, uint32_t m) : stride_k_(scales.stride_k) {
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint32_t r = min_of(row + wave * kWgmmaM + half * 8, m - 1);
                address_[wave][half] = scales.data + static_cast<int64_t>(r) * scales.stride_mn;
            }
    }

    // The factors of the current K block; moves on to the next.
    DG_DEVICE RowFactors<kWaves> next() {
        RowFactors<kWaves> factors;
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                factors.value[wave][half] = ptx::load_global_f32(address_[wave][half]);
                address_[wave][half] += stride_k_;
            }
        return factors;
    }

  private:
    const float* address_[kWaves][2];
    int64_t stride_k_;
};

// SFB of a tile under 128-row blocks: a tile whose width does not divide 128 may reach into a second block.
template <int kBlockN>
class BlockScaleReader {
  public:
    static constexpr int kBlocks = kScaleBlock % kBlockN == 0 ? 1 : 2;
    struct Factors {
        float value[kBlocks];
    };

    DG_DEVICE BlockScaleReader(const ScaleArgs& scales, uint32_t n_idx, uint32_t n) : stride_k_(scales.stride_k) {
        const uint32_t last = ceil_div<uint32_t>(n, kScaleBlock) - 1;
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
            const uint32_t block = min_of(n_idx / kScaleBlock + i, last);
            address_[i] = scales.data + static_cast<int64_t>(block) * scales.stride_mn;
        }
    }

    DG_DEVICE Factors next() {
        Factors factors;
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
            factors.value[i] = ptx::load_global_f32(address_[i]);
            address_[i] += stride_k_;
        }
        return factors;
    }

  private:
    const float* address_[kBlocks];
    int64_t stride_k_;
};

}  // namespace deep_gemm
