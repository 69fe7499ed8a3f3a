#include "plan/kernel_table.h"

#include "plan/config_text.h"
#include "support/error.h"

namespace deep_gemm::plan {

namespace {

// block_m, math warpgroups, step and limit of block_n, its step in plans, registers of a math thread
// (setmaxnreg). 256 rows are for the widest tile alone: its use is to draw least from L2.
constexpr TileRow kSm90Tiles[] = {
    {64, 1, 8, 256, 16, 248},
    {128, 2, 8, 192, 16, 232},
    {192, 3, 8, 192, 16, 160},
    {256, 2, 8, 128, 128, 232},
};
constexpr ClusterRow kSm90Clusters[] = {{1, 1}, {1, 2}, {2, 1}, {1, 4, 64}, {2, 2, 64}};
// Accumulators, parts, K blocks, and the widths for which `scripts/compile_all.py --every-candidate` saw them
// compile well.
constexpr const char* kPartsSerialised = "the compiler orders these wgmmas one after another";
constexpr ProductRow kSm90BlockProducts[] = {{1, 1, 1, 8, 256},     {1, 1, 2, 8, 128}, {1, 1, 4, 8, 64},
                                             {2, 1, 1, 16, 256},    {2, 1, 2, 16, 64}, {2, 1, 4, 16, 32},
                                             {2, 2, 1, 32, 256, 64}};
constexpr ProductRow kSm90RowProducts[] = {{1, 1, 1, 8, 256},
                                           {1, 1, 2, 8, 128},
                                           {1, 1, 4, 8, 64},
                                           {2, 1, 1, 24, 256, 1, 48},
                                           {2, 1, 2, 24, 64},
                                           {2, 1, 4, 24, 32},
                                           {2, 2, 1, 48, 256, 1, 256, kPartsSerialised}};
constexpr GroupingRow kSm90Groupings[] = {{Grouping::kDense, 2},
                                          {Grouping::kContiguous, 1},
                                          {Grouping::kMasked, 1},
                                          {Grouping::kPsum, 1},
                                          {Grouping::kBatched, 2}};
// A factor a row alone: groups of K have factors in common with no other.
constexpr GroupingRow kSm90RowGroupings[] = {{Grouping::kDense, 2},
                                             {Grouping::kContiguous, 1},
                                             {Grouping::kMasked, 1},
                                             {Grouping::kPsum, 1},
                                             {Grouping::kBatched, 2},
                                             {Grouping::kKGrouped, 2}};
constexpr CandidateSpace kSm90BlockSpace{kSm90Tiles, kSm90Clusters, kSm90BlockProducts, kSm90Groupings};
constexpr CandidateSpace kSm90RowSpace{kSm90Tiles, kSm90Clusters, kSm90RowProducts, kSm90RowGroupings};

constexpr Fp8GemmKernel kKernels[] = {
    {9,
     ScaleGranularity::kPerBlock,
     {Dtype::kBf16, Dtype::kF32},
     "deep_gemm/kernels/fp8_gemm/sm90_fp8_gemm.cuh",
     "sm90_fp8_gemm",
     "sm90_fp8_gemm_1d2d",
     kSm90BlockSpace,
     &kSm90Cost},
    {9,
     ScaleGranularity::kPerRow,
     {Dtype::kBf16, Dtype::kF32},
     "deep_gemm/kernels/fp8_gemm/sm90_fp8_gemm.cuh",
     "sm90_fp8_gemm",
     "sm90_fp8_gemm_1d1d",
     kSm90RowSpace,
     &kSm90Cost},
};

}  // namespace

std::span<const Fp8GemmKernel> fp8_gemm_kernels() {
    return kKernels;
}

std::string supported_fp8_gemms() {
    std::string text;
    for (const Fp8GemmKernel& kernel : kKernels) {
        text += fmt::format("{}SM{}0 with SFB {}, D {} or {}", text.empty() ? "" : "; ", kernel.arch_major,
                            text_of(kernel.sfb_granularity), text_of(kernel.d_dtypes[0]),
                            text_of(kernel.d_dtypes[1]));
    }
    return text;
}

const Fp8GemmKernel& kernel_for(ScaleGranularity sfb_granularity, Dtype d_dtype, const ArchSpec& arch) {
    for (const Fp8GemmKernel& kernel : kKernels) {
        const bool writes = kernel.d_dtypes[0] == d_dtype || kernel.d_dtypes[1] == d_dtype;
        if (kernel.arch_major == arch.major && kernel.sfb_granularity == sfb_granularity && writes)
            return kernel;
    }
    throw_error(fmt::format("No FP8 GEMM kernel for SM{}{} with SFB {} and D {}; there is: {}", arch.major,
                            arch.minor, text_of(sfb_granularity), text_of(d_dtype), supported_fp8_gemms()));
}

}  // namespace deep_gemm::plan
