// The treaty between host and device for `D[M,N] = C + (A * SFA) @ (B * SFB)^T` with FP8 operands.
// The planner fills a Fp8GemmConfig, the source printer prints it, the kernel is a template over it;
// the launcher fills a Fp8GemmArgs, which the kernel receives by value. Nothing here depends on a GPU.
#pragma once

#include <deep_gemm/base/kernel_args.h>

namespace deep_gemm {

// Everything the compiled kernel depends on. M, N, K, strides and the SM count are run-time arguments.
struct Fp8GemmConfig {
    ScaleGranularity sfb_granularity;  // kPerBlock: "1D2D", kPerRow: "1D1D"; SFA is always per row
    Grouping grouping;
    Dtype d_dtype;                     // kBf16 or kF32
    bool has_c;                        // add C in the epilogue
    bool c_is_d;                       // C is D, FP32 and not ragged: TMA adds to it, and nobody reads it
    int head_unit;                     // D skips the middle of heads, whose parts are multiples of it: 8 to 64; 0: no heads
    int block_m;                       // rows of D in a tile: 64 per math warpgroup and wave
    int block_n;                       // columns of D in a tile, a multiple of 8
    int num_math_warpgroups;           // 1 to 3, stacked along M
    int num_stages;                    // depth of the A/B pipeline
    int num_accumulators;              // 1, or 2: the next product is issued before this one is promoted
    int n_parts;                       // 1, or 2: a product covers half of the tile's columns (half the accumulators)
    int k_blocks;                      // K blocks of a stage: multiplied under one wait, each into its own accumulator
    int store_boxes;                   // 64-row boxes of D that a math warpgroup's staging area holds
    int cluster_m;                     // CTAs of a cluster along M; they share B by multicast
    int cluster_n;                     // CTAs of a cluster along N; they share A by multicast
    bool ragged_n;                     // is_ragged(N): the last tiles of N are not stored by TMA

    constexpr bool operator==(const Fp8GemmConfig&) const = default;
};

// Calls visit("name", field) for every field, in order: printing, reading and naming a config all walk this one list.
// The binding does not compile when a field is missing here.
template <typename Config, typename Visitor>
constexpr void visit_fields(Config& config, Visitor&& visit) {
    auto& [sfb_granularity, grouping, d_dtype, has_c, c_is_d, head_unit, block_m, block_n, num_math_warpgroups, num_stages,
           num_accumulators, n_parts, k_blocks, store_boxes, cluster_m, cluster_n, ragged_n] = config;
    visit("sfb_granularity", sfb_granularity);
    visit("grouping", grouping);
    visit("d_dtype", d_dtype);
    visit("has_c", has_c);
    visit("c_is_d", c_is_d);
    visit("head_unit", head_unit);
    visit("block_m", block_m);
    visit("block_n", block_n);
    visit("num_math_warpgroups", num_math_warpgroups);
    visit("num_stages", num_stages);
    visit("num_accumulators", num_accumulators);
    visit("n_parts", n_parts);
    visit("k_blocks", k_blocks);
    visit("store_boxes", store_boxes);
    visit("cluster_m", cluster_m);
    visit("cluster_n", cluster_n);
    visit("ragged_n", ragged_n);
}

// The slices of A for a problem of `m` rows.
DG_HOST_DEVICE constexpr SliceArgs a_slices(const Fp8GemmConfig& c, uint32_t m) {
    return row_slices(c.grouping, min_of<uint32_t>(m, c.block_m), c.cluster_n);
}

// Dense problems use 2-D tensor maps (columns, rows); grouped ones 3-D (columns, rows, groups), where A and D of kContiguous
// and kPsum have one group that holds all rows. A and B of kKGrouped are 2-D, and the kernel fills in address, K and pitch.
struct Fp8GemmArgs {
    TensorMap a;  // (K, M[, G]) uint8, box (128, a_slices.rows[, 1]), 128-byte swizzle
    TensorMap b;  // (K, N[, G]) uint8, box (128, block_n / cluster_m[, 1]), 128-byte swizzle
    TensorMap d;  // (N, M[, G]) of d_dtype, box (store_n, 64[, 1]), swizzle 128 bytes; with heads N counts their middles, too
    ScaleArgs sfa;
    ScaleArgs sfb;
    const void* c;       // d_dtype [M, N], row stride c_stride_m elements; read only if has_c and not c_is_d
    int64_t c_stride_m;
    uint32_t m, n, k;    // m: of one group, for kMasked and kBatched; k: of all groups, for kKGrouped
    SliceArgs a_slices;
    RasterArgs raster;
    GroupArgs groups;    // grouped only
    OutputArgs output;   // for tiles that are not stored by TMA: ends of groups in kMasked, ragged ends of N
    GroupMatrices matrices;  // kKGrouped only
    int64_t c_stride_g;      // kKGrouped and kBatched only, whose C is [G, M, N]
    HeadArgs heads;          // read only with a head_unit
    bool scales_in_units;    // SFA and SFB, for all of M and N: TMA can load them (lie_in_units)
};

// Shared memory of one CTA, in bytes; the same numbers size the launch and place the objects.
struct Fp8GemmSmem {
    int a_stage, b_stage, sfa_stage, sfb_stage;  // one pipeline stage of each; of SFs those that come by way of it
    int store_n, store_tile, d;      // columns of a store box; bytes of one 64-row box; all staged
    int d_offset, a_offset, b_offset, sfa_offset, sfb_offset;
    int maps_offset;                 // kKGrouped: the maps in the making
    int barrier_offset;
    int total;                       // dynamic shared memory to ask for, alignment slack included
};

DG_HOST_DEVICE constexpr int d_element_bytes(const Fp8GemmConfig& c) { return output_bytes(c.d_dtype); }

// Columns of a store box of D.
DG_HOST_DEVICE constexpr int store_columns(const Fp8GemmConfig& c) {
    return store_columns(c.head_unit == 0 ? c.block_n : gcd_of(c.block_n, c.head_unit), d_element_bytes(c));
}

// SFB per row: a warpgroup with several waves reads a K block's factors of columns once for all of them, by the first one's
// promotion, and finds SFA in the stage, too. They take the registers that products of one K block leave, and that a C read
// in the epilogue does not.
DG_HOST_DEVICE constexpr bool holds_column_factors(const Fp8GemmConfig& c) {
    return c.sfb_granularity == ScaleGranularity::kPerRow && c.block_m > kWgmmaM * c.num_math_warpgroups && c.k_blocks == 1 &&
           c.num_accumulators == 1 && (!c.has_c || c.c_is_d);
}

// Where only the device knows how many rows a group has, and three of a tile's four waves have some, its two warpgroups share the
// third.
DG_HOST_DEVICE constexpr bool shares_waves(const Fp8GemmConfig& c) {
    return has_entry_per_group(c.grouping) && c.sfb_granularity == ScaleGranularity::kPerBlock && c.num_math_warpgroups == 2 &&
           c.block_m == 4 * kWgmmaM && c.block_n == kScaleBlock && c.num_accumulators == 1 && c.k_blocks == 1 && !c.has_c;
}

DG_HOST_DEVICE constexpr Fp8GemmSmem smem_plan(const Fp8GemmConfig& c) {
    Fp8GemmSmem s{};
    s.a_stage = c.k_blocks * c.block_m * kBlockK;  // K block after K block
    s.b_stage = c.k_blocks * c.block_n * kBlockK;
    s.sfa_stage = holds_column_factors(c) ? align_up(c.block_m * 4, 128) : 0;
    s.sfb_stage = c.sfb_granularity == ScaleGranularity::kPerRow ? c.k_blocks * align_up(c.block_n * 4, 128) : 0;
    s.store_n = store_columns(c);
    s.store_tile = kStoreBoxBytes;
    s.d = c.num_math_warpgroups * c.store_boxes * s.store_tile;
    s.d_offset = 0;
    s.a_offset = s.d_offset + s.d;
    s.b_offset = s.a_offset + c.num_stages * s.a_stage;
    s.sfa_offset = s.b_offset + c.num_stages * s.b_stage;
    s.sfb_offset = s.sfa_offset + c.num_stages * s.sfa_stage;
    s.maps_offset = s.sfb_offset + c.num_stages * s.sfb_stage;
    s.barrier_offset = s.maps_offset + (c.grouping == Grouping::kKGrouped ? kMapPairBytes : 0);
    s.total = s.barrier_offset + 2 * 8 * c.num_stages + 1024;
    return s;
}

DG_HOST_DEVICE constexpr StoreConfig store_config(const Fp8GemmConfig& c) {
    return {c.d_dtype, c.block_n, store_columns(c), c.store_boxes, c.grouping, c.ragged_n, c.head_unit, c.c_is_d};
}

// Registers of a math thread and of a load thread, for setmaxnreg; the kernel is launched with an equal share for all.
DG_HOST_DEVICE constexpr int math_registers(const Fp8GemmConfig& c) { return c.num_math_warpgroups == 3 ? 160 : 232; }
DG_HOST_DEVICE constexpr int load_registers(const Fp8GemmConfig& c) { return c.num_math_warpgroups == 3 ? 32 : 40; }

DG_HOST_DEVICE constexpr int num_threads(const Fp8GemmConfig& c) {
    return (c.num_math_warpgroups + 1) * kWarpgroupThreads;
}

}  // namespace deep_gemm
