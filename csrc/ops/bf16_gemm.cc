#include "ops/bf16_gemm.h"

#include "ops/device_problem.h"
#include "ops/group_problem.h"
#include "ops/ready_kernels.h"
#include "reference/bf16_gemm.h"
#include "support/blocking.h"
#include "support/runtime_options.h"

namespace deep_gemm::ops {

namespace {

struct Bf16Family {
    using Shape = plan::Bf16GemmShape;
    using Config = Bf16GemmConfig;
    using Plan = plan::Bf16GemmPlan;
    static constexpr const char* kName = "bf16_gemm";

    static Plan plan(const Shape& shape, const plan::ArchSpec& arch) { return plan::plan_bf16_gemm(shape, arch); }
    static Plan plan_with(const Config& config, const Shape& shape, const plan::ArchSpec& arch) {
        return plan::plan_with_config(config, shape, arch);
    }
    static uint64_t hash(const Shape& s) {
        const uint64_t kinds = static_cast<uint64_t>(s.a_major) | static_cast<uint64_t>(s.b_major) << 8 |
                               static_cast<uint64_t>(s.d_dtype) << 16 | static_cast<uint64_t>(s.has_c + s.c_is_d) << 24;
        return mix_hash({static_cast<uint64_t>(s.m), static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.k), kinds,
                         hash_word(s.groups), static_cast<uint64_t>(s.groups.expected_m)});
    }
};

// The extents of an operand beside K, `groups` as of its map, and the box that is loaded.
struct OperandExtents {
    int64_t mn, k;
    uint64_t groups;
    OperandBox box;
};

TensorMap operand_map(int device, const Bf16Operand& operand, const OperandExtents& extents) {
    constexpr int kBytes = 2;
    const bool k_major = operand.major == Major::kK;
    return launch::encode_tile_map({.data = operand.data,
                                    .element_bytes = kBytes,
                                    .device = device,
                                    .inner = static_cast<uint64_t>(k_major ? extents.k : extents.mn),
                                    .outer = static_cast<uint64_t>(k_major ? extents.mn : extents.k),
                                    .outer_stride = static_cast<uint64_t>(operand.pitch * kBytes),
                                    .box_inner = extents.box.inner,
                                    .box_outer = extents.box.outer,
                                    .groups = extents.groups,
                                    .group_stride = static_cast<uint64_t>(operand.group_stride * kBytes)});
}

// D, or C, which has its shape.
struct OutputView {
    const void* data;
    int64_t row_stride, group_stride;  // elements
    uint32_t box_rows;
};

TensorMap output_map(const Bf16GemmProblem& p, const StoreConfig& store, const OutputView& view) {
    const int bytes = element_bytes(p.d_dtype);
    return launch::encode_tile_map({.data = view.data,
                                    .element_bytes = bytes,
                                    .device = p.device.index,
                                    .inner = static_cast<uint64_t>(p.n),
                                    .outer = static_cast<uint64_t>(p.m),
                                    .outer_stride = static_cast<uint64_t>(view.row_stride * bytes),
                                    .box_inner = static_cast<uint32_t>(store.columns),
                                    .box_outer = view.box_rows,
                                    .groups = p.groups.grouping == Grouping::kBatchSum ? 0 : map_groups(p.groups, p.groups.matrices_of_d()),
                                    .group_stride = static_cast<uint64_t>(view.group_stride * bytes)});
}

// Made anew for every call: an address is never part of a plan's key.
Bf16GemmArgs kernel_args(const Bf16GemmProblem& p, const ReadyKernel<Bf16GemmConfig>& ready) {
    const Bf16GemmConfig& config = ready.config;
    const uint32_t m = static_cast<uint32_t>(p.m);
    const TensorMap d = output_map(p, ready.store, {p.d, p.d_row_stride, p.d_group_stride, kWgmmaM});
    const uint32_t c_box_rows = min_of<uint32_t>(kWgmmaM, m);
    Bf16GemmArgs args{.a = d,  // without K nothing is loaded, and no map could describe it
                      .b = d,
                      .d = d,
                      .c_map = d,
                      .c_box_rows = c_box_rows,
                      .c = p.c,
                      .c_stride_m = p.c_row_stride,
                      .m = m,
                      .n = static_cast<uint32_t>(p.n),
                      .k = static_cast<uint32_t>(p.k),
                      .a_slices = a_slices(config, m),
                      .raster = ready.raster,
                      .groups = group_args(p.groups, p.m),
                      .output = {p.d, p.d_row_stride, p.d_group_stride},
                      .c_stride_g = p.c_group_stride};
    if (stages_c(config)) args.c_map = output_map(p, ready.store, {p.c, p.c_row_stride, p.c_group_stride, c_box_rows});
    if (p.k == 0) return args;
    args.a = operand_map(p.device.index, p.a, {p.m, p.k, map_groups(p.groups, p.groups.matrices_of_a()), a_box(config, m)});
    args.b = operand_map(p.device.index, p.b, {p.n, p.k, map_groups(p.groups, p.groups.count), b_box(config)});
    return args;
}

plan::Bf16GemmShape shape_of(const Bf16GemmProblem& p) {
    return {.m = p.m,
            .n = p.n,
            .k = max_of<int64_t>(p.k, 1),
            .a_major = p.a.major,
            .b_major = p.b.major,
            .d_dtype = p.d_dtype,
            .has_c = p.has_c(),
            .c_is_d = p.c_is_d(),
            .groups = group_shape(p.groups)};
}

void run_on_device(const Bf16GemmProblem& p, launch::StreamHandle stream) {
    const RuntimeOptions options = runtime_options();
    if (has_no_product(p)) {
        if (!options.compile_only) finish_groups_without_product(p, stream);
        return;
    }
    ReadyKernel<Bf16GemmConfig> ready = ready_kernels<Bf16Family>().find_or_make(p.device.index, shape_of(p));
    if (options.compile_only) return;
    const launch::CurrentContext context(p.device.index);  // for the maps as for the launch
    const Bf16GemmArgs args = kernel_args(p, ready);
    ready.shape.programmatic_dependent_launch = options.pdl;
    launch::launch(*ready.kernel, ready.shape, &args, stream);
}

// contract -> problem -> plan, jit, launch; or the reference.
template <typename Call>
void run(const Call& call) {
    run_bf16_gemm(contract::check_bf16_gemm(call, rules_of(contract::device_of(call))), call.stream);
}

}  // namespace

void run_bf16_gemm(const Bf16GemmProblem& problem, launch::StreamHandle stream) {
    if (problem.empty_output()) return;
    if (runs_on_device(problem.device)) return run_on_device(problem, stream);
    const BlockingScope scope;
    reference::bf16_gemm(problem);
}

ReadyKernel<Bf16GemmConfig> ready_bf16_gemm(int device, const plan::Bf16GemmShape& shape) {
    return ready_kernels<Bf16Family>().find_or_make(device, shape);
}

void bf16_gemm(const Bf16GemmCall& call) {
    run(call);
}

void m_grouped_bf16_gemm_contiguous(const ContiguousBf16GemmCall& call) {
    run(call);
}

void m_grouped_bf16_gemm_masked(const MaskedBf16GemmCall& call) {
    run(call);
}

void pin_bf16_gemm(int device, const plan::Bf16GemmShape& shape, const Bf16GemmConfig& config) {
    plan::check_called_k(shape.k, shape.groups);
    ready_kernels<Bf16Family>().pin(device, shape, config);
}

void forget_bf16_gemm_plans() {
    ready_kernels<Bf16Family>().forget();
}

}  // namespace deep_gemm::ops
