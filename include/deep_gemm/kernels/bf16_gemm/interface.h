// The treaty between host and device for `D[M,N] = C + A @ B^T` with BF16 operands of either major, dense or grouped along M.
// The planner fills a Bf16GemmConfig, the source printer prints it, the kernel is a template over it; the launcher fills a
// Bf16GemmArgs, which the kernel receives by value. Nothing here depends on a GPU.
#pragma once

#include <deep_gemm/base/kernel_args.h>

namespace deep_gemm {

inline constexpr int kBf16BlockK = 64;     // a block of K: one 128-byte swizzle span
inline constexpr int kMnBoxColumns = 64;   // of M or N in a box of an MN-major operand: one swizzle span as well
inline constexpr int kBf16SpanBytes = 128;

// Everything the compiled kernel depends on. M, N, K, strides and the SM count are run-time arguments.
struct Bf16GemmConfig {
    Major a_major, b_major;   // grouped along M: A is K-major; along K: both are MN-major
    Grouping grouping;
    Dtype d_dtype;            // kBf16 or kF32
    bool has_c;               // add C in the epilogue
    bool c_is_d;              // C is D, FP32 and not ragged: TMA adds to it, and nobody reads it
    int block_m;              // rows of D in a tile: 64 per math warpgroup and wave
    int block_n;              // columns of D in a tile, a multiple of 8
    int num_math_warpgroups;  // 1 to 3, stacked along M
    int num_stages;           // depth of the A/B pipeline
    int k_blocks;             // K blocks of a stage, multiplied under one wait; 1 where K ends inside the operands
    int store_boxes;          // 64-row boxes of D that a math warpgroup's staging area holds
    int cluster_m;            // CTAs of a cluster along M; they share B by multicast
    int cluster_n;            // CTAs of a cluster along N; they share A by multicast
    bool ragged_n;            // is_ragged(N): the last tiles of N are not stored by TMA

    constexpr bool operator==(const Bf16GemmConfig&) const = default;
};

// Calls visit("name", field) for every field, in order.
template <typename Visitor>
constexpr void visit_bf16_fields(auto& config, Visitor&& visit) {
    auto& [a_major, b_major, grouping, d_dtype, has_c, c_is_d, block_m, block_n, num_math_warpgroups, num_stages, k_blocks,
           store_boxes, cluster_m, cluster_n, ragged_n] = config;
    visit("a_major", a_major);
    visit("b_major", b_major);
    visit("grouping", grouping);
    visit("d_dtype", d_dtype);
    visit("has_c", has_c);
    visit("c_is_d", c_is_d);
    visit("block_m", block_m);
    visit("block_n", block_n);
    visit("num_math_warpgroups", num_math_warpgroups);
    visit("num_stages", num_stages);
    visit("k_blocks", k_blocks);
    visit("store_boxes", store_boxes);
    visit("cluster_m", cluster_m);
    visit("cluster_n", cluster_n);
    visit("ragged_n", ragged_n);
}
template <typename Visitor>
constexpr void visit_fields(Bf16GemmConfig& config, Visitor&& visit) {
    visit_bf16_fields(config, visit);
}
template <typename Visitor>
constexpr void visit_fields(const Bf16GemmConfig& config, Visitor&& visit) {
    visit_bf16_fields(config, visit);
}

// The box of an operand's map, in elements. K-major: 64 of K by rows; MN-major: 64 of MN by rows of K.
struct OperandBox {
    uint32_t inner, outer;
};

// The slices of A for a problem of `m` rows: of rows where it is K-major; MN-major slices divide K instead and always are
// `cluster_n` many, for which `rows` counts the 64-row boxes that hold rows.
DG_HOST_DEVICE constexpr SliceArgs a_slices(const Bf16GemmConfig& c, uint32_t m) {
    const uint32_t tile_rows = min_of<uint32_t>(m, c.block_m);
    if (c.a_major == Major::kMn)
        return {ceil_div<uint32_t>(tile_rows, kMnBoxColumns), static_cast<uint32_t>(c.cluster_n)};
    return row_slices(c.grouping, tile_rows, c.cluster_n);
}

// Of B, whose tile is always loaded whole.
DG_HOST_DEVICE constexpr SliceArgs b_slices(const Bf16GemmConfig& c) {
    const uint32_t sharers = c.cluster_m, columns = c.block_n;
    return {c.b_major == Major::kMn ? ceil_div<uint32_t>(columns, kMnBoxColumns) : columns / sharers, sharers};
}

DG_HOST_DEVICE constexpr OperandBox a_box(const Bf16GemmConfig& c, uint32_t m) {
    if (c.a_major == Major::kMn) return {kMnBoxColumns, static_cast<uint32_t>(kBf16BlockK / c.cluster_n)};
    return {kBf16BlockK, a_slices(c, m).rows};
}

DG_HOST_DEVICE constexpr OperandBox b_box(const Bf16GemmConfig& c) {
    if (c.b_major == Major::kMn) return {kMnBoxColumns, static_cast<uint32_t>(kBf16BlockK / c.cluster_m)};
    return {kBf16BlockK, b_slices(c).rows};
}

// Whether A and B have maps of three dimensions, the last of which is groups.
DG_HOST_DEVICE constexpr bool has_grouped_maps(const Bf16GemmConfig& c) {
    return c.grouping != Grouping::kDense && c.grouping != Grouping::kKGrouped;
}

// Dense problems use 2-D tensor maps; grouped ones 3-D, the last dimension being groups, where A and D of kContiguous and
// kPsum have one group that holds all rows. Groups of K are 2-D in A and B, sums of batches in D.
struct Bf16GemmArgs {
    TensorMap a;  // (K, M[, G]) or (M, K[, G]) BF16, box a_box, 128-byte swizzle
    TensorMap b;  // (K, N[, G]) or (N, K[, G]) BF16, box b_box, 128-byte swizzle
    TensorMap d;  // (N, M[, G]) of d_dtype, box (store columns, 64), 128-byte swizzle
    TensorMap c_map;  // as d, box (store columns, c_box_rows): read only if stages_c
    uint32_t c_box_rows;
    const void* c;  // d_dtype [M, N], row stride c_stride_m elements; read only if reads_c
    int64_t c_stride_m;
    uint32_t m, n, k;    // m: of one group, for kMasked and kBatched; k: of all groups for kKGrouped, of one else
    SliceArgs a_slices;
    RasterArgs raster;
    GroupArgs groups;    // grouped only
    OutputArgs output;   // for tiles that are not stored by TMA: ends of groups in kMasked, ragged ends of N
    int64_t c_stride_g;  // kKGrouped and kBatched only, whose C is [G, M, N]
};

// Shared memory of one CTA, in bytes; the same numbers size the launch and place the objects.
struct Bf16GemmSmem {
    int a_stage, b_stage, d;
    int a_offset, b_offset, barrier_offset;
    int c_barrier_offset;  // stages_c: a barrier of each math warpgroup
    int total;  // dynamic shared memory to ask for, alignment slack included
};

DG_HOST_DEVICE constexpr StoreConfig store_config(const Bf16GemmConfig& c) {
    return {.dtype = c.d_dtype,
            .block_n = c.block_n,
            .columns = store_columns(c.block_n, output_bytes(c.d_dtype)),
            .boxes = c.store_boxes,
            .grouping = c.grouping == Grouping::kBatchSum ? Grouping::kDense : c.grouping,
            .ragged_n = c.ragged_n,
            .adds = c.c_is_d};
}

// 64-row boxes of D that a math warpgroup stores.
DG_HOST_DEVICE constexpr int store_boxes_of(const Bf16GemmConfig& c) {
    return c.block_n / store_config(c).columns * (c.block_m / kWgmmaM / c.num_math_warpgroups);
}

// Whether C comes by TMA into the staging area of D, which must hold all of a tile.
DG_HOST_DEVICE constexpr bool stages_c(const Bf16GemmConfig& c) {
    return c.has_c && c.d_dtype == Dtype::kBf16 && c.store_boxes == store_boxes_of(c);
}

// Whether threads read C where it is.
DG_HOST_DEVICE constexpr bool reads_c(const Bf16GemmConfig& c) { return c.has_c && !c.c_is_d && !stages_c(c); }

DG_HOST_DEVICE constexpr Bf16GemmSmem smem_plan(const Bf16GemmConfig& c) {
    Bf16GemmSmem s{};
    const int b_rows = c.b_major == Major::kMn ? align_up(c.block_n, kMnBoxColumns) : c.block_n;
    s.a_stage = c.k_blocks * c.block_m * kBf16SpanBytes;  // K block after K block
    s.b_stage = c.k_blocks * b_rows * kBf16SpanBytes;
    s.d = c.num_math_warpgroups * c.store_boxes * kStoreBoxBytes;
    s.a_offset = s.d;
    s.b_offset = s.a_offset + c.num_stages * s.a_stage;
    s.barrier_offset = s.b_offset + c.num_stages * s.b_stage;
    s.c_barrier_offset = s.barrier_offset + 2 * 8 * c.num_stages;
    s.total = s.c_barrier_offset + (stages_c(c) ? 8 * c.num_math_warpgroups : 0) + 1024;
    return s;
}

// Registers of a math thread and of a load thread, for setmaxnreg.
DG_HOST_DEVICE constexpr int math_registers(const Bf16GemmConfig& c) { return c.num_math_warpgroups == 3 ? 160 : 232; }
DG_HOST_DEVICE constexpr int load_registers(const Bf16GemmConfig& c) { return c.num_math_warpgroups == 3 ? 32 : 40; }

DG_HOST_DEVICE constexpr int num_threads(const Bf16GemmConfig& c) {
    return (c.num_math_warpgroups + 1) * kWarpgroupThreads;
}

}  // namespace deep_gemm
