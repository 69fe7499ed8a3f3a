#include "ops/fp8_gemm.h"

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "launch/launch.h"
#include "ops/device_problem.h"
#include "ops/fp8_gemm_kernels.h"
#include "ops/fp8_scales.h"
#include "ops/group_problem.h"
#include "reference/fp8_gemm.h"
#include "support/blocking.h"
#include "support/runtime_options.h"

namespace deep_gemm::ops {

namespace {

// `box_rows` rows at a time of an operand of `matrices` matrices.
TensorMap operand_map(const Fp8GemmProblem& p, const OperandView& operand, int64_t rows, int64_t matrices, uint32_t box_rows) {
    return launch::encode_tile_map({.data = operand.data,
                                    .element_bytes = 1,
                                    .device = p.device.index,
                                    .inner = static_cast<uint64_t>(p.k),
                                    .outer = static_cast<uint64_t>(rows),
                                    .outer_stride = static_cast<uint64_t>(operand.row_stride),
                                    .box_inner = kBlockK,
                                    .box_outer = box_rows,
                                    .groups = map_groups(p.groups, matrices),
                                    .group_stride = static_cast<uint64_t>(operand.group_stride)});
}

int64_t d_columns(const Fp8GemmProblem& p) {
    return p.heads.some() ? p.n / p.heads.product_columns() * p.heads.d_columns() : p.n;
}

TensorMap output_map(const Fp8GemmProblem& p, const StoreConfig& store) {
    const int bytes = element_bytes(p.d_dtype);
    return launch::encode_tile_map({.data = p.d,
                                    .element_bytes = bytes,
                                    .device = p.device.index,
                                    .inner = static_cast<uint64_t>(d_columns(p)),
                                    .outer = static_cast<uint64_t>(p.m),
                                    .outer_stride = static_cast<uint64_t>(p.d_row_stride * bytes),
                                    .box_inner = static_cast<uint32_t>(store.columns),
                                    .box_outer = kWgmmaM,
                                    .groups = map_groups(p.groups, p.groups.matrices_of_d()),
                                    .group_stride = static_cast<uint64_t>(p.d_group_stride * bytes)});
}

// Made anew for every call: an address is never part of a plan's key. Without K nothing is loaded, and no map could
// describe A and B.
Fp8GemmArgs kernel_args(const Fp8GemmProblem& p, const ReadyFp8Gemm& ready) {
    const ScaleArgs sfa = scale_args(p.sfa), sfb = scale_args(p.sfb);
    const Fp8GemmConfig& config = ready.config;
    const SliceArgs slices = a_slices(config, static_cast<uint32_t>(p.m));
    const auto b_rows = static_cast<uint32_t>(config.block_n / config.cluster_m);
    const auto d_map = [&] { return output_map(p, ready.store); };
    return {.a = p.k > 0 ? operand_map(p, p.a, p.m, p.groups.matrices_of_a(), slices.rows) : d_map(),
            .b = p.k > 0 ? operand_map(p, p.b, p.n, p.groups.count, b_rows) : d_map(),
            .d = d_map(),
            .sfa = sfa,
            .sfb = sfb,
            .c = p.c,
            .c_stride_m = p.c_row_stride,
            .m = static_cast<uint32_t>(p.m),
            .n = static_cast<uint32_t>(p.n),
            .k = static_cast<uint32_t>(p.k),
            .a_slices = slices,
            .raster = ready.raster,
            .groups = group_args(p.groups, p.m),
            .output = {p.d, p.d_row_stride, p.d_group_stride},
            .matrices = {},
            .c_stride_g = p.c_group_stride,
            .heads = {static_cast<uint32_t>(p.heads.left), static_cast<uint32_t>(p.heads.mid),
                      static_cast<uint32_t>(p.heads.right)},
            .scales_in_units = lie_in_units(sfa, p.m) && lie_in_units(sfb, p.n)};
}

plan::Fp8GemmShape shape_of(const Fp8GemmProblem& p) {
    return {.m = p.m,
            .n = p.n,
            .k = max_of<int64_t>(p.k, 1),
            .sfb_granularity =
                p.sfb.granularity_mn == 1 ? ScaleGranularity::kPerRow : ScaleGranularity::kPerBlock,
            .d_dtype = p.d_dtype,
            .has_c = p.has_c(),
            .c_is_d = p.c_is_d(),
            .head_unit = p.heads.some() ? head_unit_of(p.heads.left, p.heads.right) : 0,
            .groups = group_shape(p.groups)};
}

// D without a product: the parts of every head become zeros one after another, and their middles stay.
void finish_heads_without_product(const Fp8GemmProblem& p, launch::StreamHandle stream) {
    Fp8GemmProblem part = p;
    for (int64_t column = 0; column < p.n; column += part.n) {
        const int64_t within = column % p.heads.product_columns();
        part.n = within < p.heads.left ? p.heads.left : p.heads.right;
        part.d = static_cast<char*>(p.d) + p.heads.column_of_d(column) * element_bytes(p.d_dtype);
        finish_without_product(part, stream);
    }
}

void run_on_device(const Fp8GemmProblem& problem, launch::StreamHandle stream) {
    const RuntimeOptions options = runtime_options();
    if (has_no_product(problem)) {
        if (options.compile_only) return;
        problem.heads.some() ? finish_heads_without_product(problem, stream)
                              : finish_groups_without_product(problem, stream);
        return;
    }
    ReadyFp8Gemm ready = ready_fp8_gemm(problem.device.index, shape_of(problem));
    if (options.compile_only) return;
    const launch::CurrentContext context(problem.device.index);  // for the maps as for the launch
    const Fp8GemmArgs args = kernel_args(problem, ready);
    ready.shape.programmatic_dependent_launch = options.pdl;
    launch::launch(*ready.kernel, ready.shape, &args, stream);
}

// contract -> problem -> plan, jit, launch; or the reference.
template <typename Call>
void run(const Call& call) {
    const Device device = contract::device_of(call);
    run_fp8_gemm(contract::check_fp8_gemm(call, rules_of(device)), call.stream);
}

}  // namespace

void run_fp8_gemm(const Fp8GemmProblem& problem, launch::StreamHandle stream) {
    if (problem.empty_output()) return;
    if (runs_on_device(problem.device)) return run_on_device(problem, stream);
    const BlockingScope scope;
    reference::fp8_gemm(problem);
}

void fp8_gemm(const Fp8GemmCall& call) {
    run(call);
}

void fp8_gemm_skip_head_mid(const SkipHeadMidCall& call) {
    run(call);
}

void m_grouped_fp8_gemm_contiguous(const ContiguousFp8GemmCall& call) {
    run(call);
}

void m_grouped_fp8_gemm_masked(const MaskedFp8GemmCall& call) {
    run(call);
}

}  // namespace deep_gemm::ops
