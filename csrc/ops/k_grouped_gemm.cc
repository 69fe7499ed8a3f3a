#include "ops/k_grouped_gemm.h"

#include <deep_gemm/kernels/bf16_gemm/interface.h>
#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "launch/launch.h"
#include "ops/bf16_gemm.h"
#include "ops/device_problem.h"
#include "ops/fp8_gemm_kernels.h"
#include "ops/fp8_scales.h"
#include "reference/k_grouped_gemm.h"
#include "support/blocking.h"
#include "support/runtime_options.h"

namespace deep_gemm::ops {

namespace {

plan::GroupShape group_shape(const KGroupedGemmProblem& p) {
    return {.grouping = Grouping::kKGrouped, .count = p.groups};
}

GroupArgs group_args(const KGroupedGemmProblem& p) {
    // A start past all of K is as far as any: rows fit 32 bits.
    const int64_t alignment = min_of(p.alignment, align_up<int64_t>(max_of<int64_t>(p.k, 1), kBlockK));
    return {p.sizes, static_cast<uint32_t>(p.groups), static_cast<uint32_t>(alignment), 0};
}

TensorMap output_map(const KGroupedGemmProblem& p, const StoreConfig& store) {
    const int bytes = element_bytes(p.d_dtype);
    return launch::encode_tile_map({.data = p.d,
                                    .element_bytes = bytes,
                                    .device = p.device.index,
                                    .inner = static_cast<uint64_t>(p.n),
                                    .outer = static_cast<uint64_t>(p.m),
                                    .outer_stride = static_cast<uint64_t>(p.d_row_stride * bytes),
                                    .box_inner = static_cast<uint32_t>(store.columns),
                                    .box_outer = kWgmmaM,
                                    .groups = static_cast<uint64_t>(p.groups),
                                    .group_stride = static_cast<uint64_t>(p.d_group_stride * bytes)});
}

// Rows of bytes for the kernel to fill in: any address, K and pitch will do that a map can have.
TensorMap matrix_map(int device, const KGroupedOperand& operand, int64_t rows, uint32_t box_rows) {
    return launch::encode_tile_map({.data = operand.data,
                                    .element_bytes = 1,
                                    .device = device,
                                    .inner = kBlockK,
                                    .outer = static_cast<uint64_t>(rows),
                                    .outer_stride = kBlockK,
                                    .box_inner = kBlockK,
                                    .box_outer = box_rows});
}

TensorMap rows_map(const KGroupedGemmProblem& p, const KGroupedOperand& operand, int64_t mn, const OperandBox& box) {
    constexpr int kBytes = 2;
    return launch::encode_tile_map({.data = operand.data,
                                    .element_bytes = kBytes,
                                    .device = p.device.index,
                                    .inner = static_cast<uint64_t>(mn),
                                    .outer = static_cast<uint64_t>(p.k),
                                    .outer_stride = static_cast<uint64_t>(operand.row_stride * kBytes),
                                    .box_inner = box.inner,
                                    .box_outer = box.outer});
}

// Groups count in K blocks: they share a matrix of SFs.
ScaleArgs scale_args_of_groups(const ScaleView& s) {
    ScaleArgs args = scale_args(s);
    args.stride_g = args.stride_k;
    return args;
}

TensorMap* map_room(const launch::LaunchShape& shape, int num_stages, const Workspace& workspace) {
    const std::size_t bytes = std::size_t{shape.grid} * map_slots(num_stages) * kMapPairBytes;
    const auto start = reinterpret_cast<uintptr_t>(workspace(bytes + kMapAlignment));
    return reinterpret_cast<TensorMap*>(align_up<uintptr_t>(start, kMapAlignment));
}

void run_fp8(const KGroupedGemmProblem& p, const Workspace& workspace, launch::StreamHandle stream) {
    const RuntimeOptions options = runtime_options();
    ReadyFp8Gemm ready = ready_fp8_gemm(p.device.index, {.m = p.m,
                                                         .n = p.n,
                                                         .k = plan::planning_k(p.k, p.groups),
                                                         .sfb_granularity = ScaleGranularity::kPerRow,
                                                         .d_dtype = p.d_dtype,
                                                         .has_c = p.has_c(),
                                                         .c_is_d = p.c_is_d(),
                                                         .groups = group_shape(p)});
    if (options.compile_only) return;
    const Fp8GemmConfig& config = ready.config;
    const SliceArgs slices = a_slices(config, static_cast<uint32_t>(p.m));
    const launch::CurrentContext context(p.device.index);  // for the maps as for the launch
    const ScaleArgs sfa = scale_args_of_groups(p.a.scales), sfb = scale_args_of_groups(p.b.scales);
    const Fp8GemmArgs args = {
        .a = matrix_map(p.device.index, p.a, p.m, slices.rows),
        .b = matrix_map(p.device.index, p.b, p.n, static_cast<uint32_t>(config.block_n / config.cluster_m)),
        .d = output_map(p, ready.store),
        .sfa = sfa,
        .sfb = sfb,
        .c = p.c,
        .c_stride_m = p.c_row_stride,
        .m = static_cast<uint32_t>(p.m),
        .n = static_cast<uint32_t>(p.n),
        .k = static_cast<uint32_t>(p.k),
        .a_slices = slices,
        .raster = ready.raster,
        .groups = group_args(p),
        .output = {p.d, p.d_row_stride, p.d_group_stride},
        .matrices = {p.a.data, p.b.data, map_room(ready.shape, config.num_stages, workspace)},
        .c_stride_g = p.c_group_stride,
        .heads = {},
        .scales_in_units = lie_in_units(sfa, p.m) && lie_in_units(sfb, p.n)};
    ready.shape.programmatic_dependent_launch = options.pdl;
    launch::launch(*ready.kernel, ready.shape, &args, stream);
}

void run_bf16(const KGroupedGemmProblem& p, launch::StreamHandle stream) {
    const RuntimeOptions options = runtime_options();
    ReadyKernel<Bf16GemmConfig> ready =
        ready_bf16_gemm(p.device.index, {.m = p.m,
                                         .n = p.n,
                                         .k = plan::planning_k(p.k, p.groups),
                                         .a_major = Major::kMn,
                                         .b_major = Major::kMn,
                                         .d_dtype = p.d_dtype,
                                         .has_c = p.has_c(),
                                         .c_is_d = p.c_is_d(),
                                         .groups = group_shape(p)});
    if (options.compile_only) return;
    const Bf16GemmConfig& config = ready.config;
    const auto m = static_cast<uint32_t>(p.m);
    const launch::CurrentContext context(p.device.index);  // for the maps as for the launch
    const Bf16GemmArgs args = {.a = rows_map(p, p.a, p.m, a_box(config, m)),
                               .b = rows_map(p, p.b, p.n, b_box(config)),
                               .d = output_map(p, ready.store),
                               .c_map = {},  // D is FP32
                               .c_box_rows = 0,
                               .c = p.c,
                               .c_stride_m = p.c_row_stride,
                               .m = m,
                               .n = static_cast<uint32_t>(p.n),
                               .k = static_cast<uint32_t>(p.k),
                               .a_slices = a_slices(config, m),
                               .raster = ready.raster,
                               .groups = group_args(p),
                               .output = {p.d, p.d_row_stride, p.d_group_stride},
                               .c_stride_g = p.c_group_stride};
    ready.shape.programmatic_dependent_launch = options.pdl;
    launch::launch(*ready.kernel, ready.shape, &args, stream);
}

// No K at all: D is C or zeros, group by group.
void finish_groups_without_product(KGroupedGemmProblem p, launch::StreamHandle stream) {
    if (runtime_options().compile_only) return;
    for (int64_t group = 0; group < p.groups; ++group) {
        finish_without_product(p, stream);
        p.d = static_cast<float*>(p.d) + p.d_group_stride;
        if (p.has_c()) p.c = static_cast<const float*>(p.c) + p.c_group_stride;
    }
}

}  // namespace

void k_grouped_gemm(const KGroupedGemmCall& call, const Workspace& workspace) {
    const Device device = contract::device_of(call);
    const KGroupedGemmProblem problem =
        contract::check_k_grouped_gemm(call, {rules_of(device), runs_on_device(device)});
    if (problem.empty_output()) return;
    if (!runs_on_device(device)) {
        const BlockingScope scope;
        return reference::k_grouped_gemm(problem);
    }
    if (problem.k == 0) return finish_groups_without_product(problem, call.stream);
    if (problem.dtype == Dtype::kBf16) return run_bf16(problem, call.stream);
    run_fp8(problem, workspace, call.stream);
}

}  // namespace deep_gemm::ops
