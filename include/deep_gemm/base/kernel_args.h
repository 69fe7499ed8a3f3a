// Pieces of kernel arguments and configs that several kernels and the parts they are built from share.
#pragma once

#include <deep_gemm/base/divisor.h>
#include <deep_gemm/base/math.h>
#include <deep_gemm/base/types.h>

namespace deep_gemm {

inline constexpr int kBlockK = 128;             // one scaling factor, and one 128-byte swizzle span, of K
inline constexpr int kScaleBlock = 128;         // rows of B that share a factor under ScaleGranularity::kPerBlock
inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWgmmaM = 64;

// Whether setmaxnreg may give `math` registers to the threads of so many warpgroups, and `load` to those of one more. A thread is
// launched with an equal share of an SM's 65,536, in eights: beyond what that leaves, raising a limit waits for ever.
DG_HOST_DEVICE constexpr bool registers_suffice(int math_warpgroups, int math, int load) {
    const int warpgroups = math_warpgroups + 1, launched = 65536 / (warpgroups * kWarpgroupThreads) / 8 * 8;
    return math_warpgroups * math + load <= warpgroups * launched;
}

// SFs in any strides (in elements): address = data + group * stride_g + mn_index * stride_mn + k_block * stride_k.
struct ScaleArgs {
    const float* data;
    int64_t stride_mn;
    int64_t stride_k;
    int64_t stride_g;  // 0 where the operand has no groups
};

// Which rows, or which part of K, belong to which group. Read on the device when the kernel runs.
struct GroupArgs {
    const int32_t* layout;      // kContiguous: [M], the group of each row or -1; kMasked: [count], the wanted rows of each;
                                // kPsum: [count], the end row of each; kKGrouped: [count], the size along K of each, or its end
    uint32_t count;             // groups
    uint32_t alignment;         // kContiguous, kPsum: groups start at multiples of it, itself one of kWgmmaM. kKGrouped: the same along K where
                                // the layout holds ends; 0 where it holds sizes, and groups follow one another
    uint32_t stored_alignment;  // kPsum: a group is written up to a multiple of it: `alignment`, or 1: no padding
};

// How the CTAs that share a tile of A divide the load of it: the first takes the first slice, and so on round. When M is below
// block_m, only the rows that exist are loaded: rows out of bounds cost as much as real ones.
struct SliceArgs {
    uint32_t rows;   // rows of a slice
    uint32_t count;  // slices that hold rows
};

// The slices of a tile of `tile_rows` rows among `sharers` CTAs. Where only the device knows how many of them a group wants,
// none is taller than a wave of wgmma: waves without rows are not loaded.
DG_HOST_DEVICE constexpr SliceArgs row_slices(Grouping grouping, uint32_t tile_rows, uint32_t sharers) {
    uint32_t rows = min_of(tile_rows, align_up<uint32_t>(ceil_div(tile_rows, sharers), 8));  // they start on swizzle atoms
    if (has_entry_per_group(grouping)) rows = min_of<uint32_t>(rows, kWgmmaM);
    return {rows, ceil_div(tile_rows, rows)};
}

// Of `slots` clusters that are resident at once, the fewest that take no more rounds of so many tiles: these run faster by it, probably by the
// power and the bandwidth that the others would draw (docs/sm90-fp8-gemm.md, "Rounds"). All of them where more than a thirteenth
// could be left out: so much was measured, and fewer might not draw all of memory's bandwidth.
template <typename T>
DG_HOST_DEVICE constexpr T clusters_of_even_rounds(T tiles, T slots) {
    constexpr T kShareLeftOut = 13;  // one in so many, at most
    if (tiles <= slots) return tiles;
    const T fewest = ceil_div(tiles, ceil_div(tiles, slots));
    return slots - fewest <= slots / kShareLeftOut ? fewest : slots;
}

// What finding a tile's place divides by, in cluster tiles.
struct RasterDivisors {
    Divisor all;                // of the matrix
    Divisor band;               // of a whole band
    Divisor width, last_width;  // across a whole band, and across the last one
};

// The order of tiles: bands of `group` cluster tiles along one dimension, within a band all of the other.
struct RasterOrder {
    uint32_t group;
    bool bands_along_n;  // a band is `group` cluster tiles of N and walks N first; else of M, M first
};

// The same for a launch. The divisors are read where the host knows the matrix of tiles.
struct RasterArgs : RasterOrder {
    RasterDivisors divisors;
};

// `order` over so many cluster tiles.
DG_HOST_DEVICE constexpr RasterArgs raster_over(const RasterOrder& order, uint32_t m_tiles, uint32_t n_tiles) {
    const uint32_t banded = order.bands_along_n ? n_tiles : m_tiles, other = order.bands_along_n ? m_tiles : n_tiles;
    return {order,
            {divisor_of(m_tiles * n_tiles), divisor_of(order.group * other), divisor_of(order.group),
             divisor_of((banded - 1) % order.group + 1)}};
}

// Where each group of kKGrouped is a K-major matrix with a pitch of its own: group after group, [rows, K of the group] each.
// The kernel makes their tensor maps itself, from one that lacks address, K and pitch.
struct GroupMatrices {
    const void* a;
    const void* b;
    TensorMap* maps;  // room that the call owns: map_slots() pairs of maps for each CTA of the grid
};

inline constexpr int kMapPairBytes = 2 * sizeof(TensorMap);
inline constexpr int kMapAlignment = 128;  // bytes

// Pairs of maps that a CTA owns in global memory (tile/group_maps.cuh says why).
DG_HOST_DEVICE constexpr int map_slots(int num_stages) { return num_stages + 1; }

// D as plain memory, for what TMA would not clip where D ends; strides in elements.
struct OutputArgs {
    void* data;
    int64_t stride_m;
    int64_t stride_g;
};

// D of heads: of each head's left + mid + right columns the product has left + right, and the middle ones stay untouched.
struct HeadArgs {
    uint32_t left, mid, right;
};

// How sums leave a tile: `columns` a TMA box, 64 rows of 128 bytes each, `boxes` of them in a warpgroup's staging area.
struct StoreConfig {
    Dtype dtype;
    int block_n;
    int columns;
    int boxes;
    Grouping grouping;
    bool ragged_n;
    int head_unit = 0;  // 0: the product's columns are D's; else the arguments say how they lie in D (HeadArgs)
    bool adds = false;  // to what D holds, FP32
};

DG_HOST_DEVICE constexpr int output_bytes(Dtype dtype) { return dtype == Dtype::kF32 ? 4 : 2; }

// Whether rows of `n` elements end inside a 16-byte unit. TMA stores write such a unit whole (measured on an H200; loads stop
// at the element), and the rest of it is not ours.
DG_HOST_DEVICE constexpr bool is_ragged(int64_t n, Dtype dtype) { return n * output_bytes(dtype) % 16 != 0; }

// Columns of one store box: the widest divisor of block_n whose row fits the 128-byte swizzle span.
DG_HOST_DEVICE constexpr int store_columns(int block_n, int element_bytes) {
    int best = 8;
    for (int columns = 8; columns * element_bytes <= 128; columns += 8)
        if (block_n % columns == 0) best = columns;
    return best;
}

// Columns that stay together where the middle of heads is skipped: what store boxes divide, so that none straddles a part.
DG_HOST_DEVICE constexpr int head_unit_of(int64_t left, int64_t right) {
    int unit = 1;
    while (unit < 64 && left % (2 * unit) == 0 && right % (2 * unit) == 0) unit *= 2;
    return unit;
}

inline constexpr int kStoreBoxBytes = kWgmmaM * 128;  // the row pitch is the swizzle span, whatever the box width

}  // namespace deep_gemm
