// Vocabulary shared by the host layer and the device code.
#pragma once

#ifdef __CUDACC_RTC__
// NVRTC brings no standard headers: the widths below are fixed by the CUDA ABI.
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#define DG_DEVICE __device__ __forceinline__
#define DG_HOST_DEVICE __host__ __device__ __forceinline__
#else
#include <cstdint>
#define DG_DEVICE
#define DG_HOST_DEVICE inline
#endif

namespace deep_gemm {

// Element types of tensors, as the contract names them.
enum class Dtype : uint8_t {
    kF8E4M3,    // torch.float8_e4m3fn
    kF8E8M0,    // torch.float8_e8m0fnu, a scaling factor stored as its exponent
    kF8E5M2,
    kF4E2M1x2,  // torch.float4_e2m1fn_x2, two codes a byte, low nibble first
    kBf16,
    kF16,
    kF32,
    kF64,
    kI8,
    kU8,
    kBool,
    kI16,
    kI32,
    kI64,
    kOther,
};

// Which extent of a matrix operand is contiguous, as `nt` sees it.
enum class Major : uint8_t { kK, kMn };

// How the rows of a GEMM are divided among groups (experts), each with its own B.
//   kDense       one problem
//   kContiguous  A [M,K], D [M,N]; the group of each row is in a layout of M entries, groups start at aligned rows, -1: no group
//   kMasked      A [G,M,K], D [G,M,N]; the first masked_m[g] rows of each group are wanted, the others stay untouched
//   kPsum        A [M,K], D [M,N]; group g ends at row layout[g], and starts where the one before ends, rounded up to the
//                alignment; rows past the last aligned end stay untouched
//   kBatched     A [G,M,K], D [G,M,N]: independent problems of the same extents
//   kBatchSum    A [G,M,K], B [G,N,K], D [M,N]: the sum of the groups' products, one chain of sums through all of them
//   kKGrouped    D [G,M,N]; A and B are divided along K: D of a group is the product over the group's part of it
enum class Grouping : uint8_t { kDense, kContiguous, kMasked, kPsum, kBatched, kBatchSum, kKGrouped };

// Whether the layout has an entry a group: what rows there are is known where it is read alone, and tiles start with groups.
DG_HOST_DEVICE constexpr bool has_entry_per_group(Grouping grouping) {
    return grouping == Grouping::kMasked || grouping == Grouping::kPsum;
}

// Whether a layout divides rows of A among groups: tiles and clusters then stay within one.
DG_HOST_DEVICE constexpr bool divides_rows(Grouping grouping) {
    return grouping == Grouping::kContiguous || has_entry_per_group(grouping);
}

// Whether each group has a matrix of its own in A.
DG_HOST_DEVICE constexpr bool has_operand_per_group(Grouping grouping) {
    return grouping == Grouping::kMasked || grouping == Grouping::kBatched || grouping == Grouping::kBatchSum;
}

// The same in D.
DG_HOST_DEVICE constexpr bool has_output_per_group(Grouping grouping) {
    return grouping == Grouping::kMasked || grouping == Grouping::kBatched || grouping == Grouping::kKGrouped;
}

// How scaling factors cover one operand: one factor per row, or one per block of 128 rows; always one per 128 of K.
enum class ScaleGranularity : uint8_t { kPerRow, kPerBlock };

// A constant that can be passed as a value and read as one.
template <int kValue>
struct IntConstant {
    static constexpr int value = kValue;
};

// An encoded tensor map (CUtensorMap): opaque, passed by value as a kernel argument.
struct alignas(64) TensorMap {
    uint64_t words[16];
};

}  // namespace deep_gemm
