#include "ops/bf16_gemm.h"

#include "ops/device_problem.h"
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
                               static_cast<uint64_t>(s.d_dtype) << 16 | static_cast<uint64_t>(s.has_c) << 24 |
                               static_cast<uint64_t>(s.groups.grouping) << 25 |
                               static_cast<uint64_t>(s.groups.count) << 32;
        return mix_hash({static_cast<uint64_t>(s.m), static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.k), kinds});
    }
};

// Maps have three dimensions where there are batches.
uint64_t map_batches(const Batches& batches) {
    return batches.grouping == Grouping::kDense ? 0 : static_cast<uint64_t>(batches.count);
}

TensorMap operand_map(const Bf16Operand& operand, int64_t mn, const Bf16GemmProblem& p, const OperandBox& box) {
    constexpr int kBytes = 2;
    const bool k_major = operand.major == Major::kK;
    return launch::encode_tile_map({.data = operand.data,
                                    .element_bytes = kBytes,
                                    .inner = static_cast<uint64_t>(k_major ? p.k : mn),
                                    .outer = static_cast<uint64_t>(k_major ? mn : p.k),
                                    .outer_stride = static_cast<uint64_t>(operand.pitch * kBytes),
                                    .box_inner = box.inner,
                                    .box_outer = box.outer,
                                    .groups = map_batches(p.batches),
                                    .group_stride = static_cast<uint64_t>(operand.batch_stride * kBytes)});
}

// Made anew for every call: an address is never part of a key.
Bf16GemmArgs kernel_args(const Bf16GemmProblem& p, const ReadyKernel<Bf16GemmConfig>& ready) {
    const Bf16GemmConfig& config = ready.config;
    const uint32_t m = static_cast<uint32_t>(p.m);
    const int d_bytes = element_bytes(p.d_dtype);
    return {.a = operand_map(p.a, p.m, p, a_box(config, m)),
            .b = operand_map(p.b, p.n, p, b_box(config)),
            .d = launch::encode_tile_map({.data = p.d,
                                          .element_bytes = d_bytes,
                                          .inner = static_cast<uint64_t>(p.n),
                                          .outer = static_cast<uint64_t>(p.m),
                                          .outer_stride = static_cast<uint64_t>(p.d_row_stride * d_bytes),
                                          .box_inner = static_cast<uint32_t>(store_config(config).columns),
                                          .box_outer = kWgmmaM,
                                          .groups = p.batches.grouping == Grouping::kBatched ? map_batches(p.batches) : 0,
                                          .group_stride = static_cast<uint64_t>(p.batches.d_stride * d_bytes)}),
            .c = p.c,
            .c_stride_m = p.c_row_stride,
            .m = m,
            .n = static_cast<uint32_t>(p.n),
            .k = static_cast<uint32_t>(p.k),
            .a_slices = a_slices(config, m),
            .raster = ready.raster,
            .groups = {nullptr, static_cast<uint32_t>(p.batches.count), 0, 0},
            .output = {p.d, p.d_row_stride, p.batches.d_stride},
            .c_stride_g = p.batches.c_stride};
}

// D is C or zeros: of a batch after the other where each has one.
void finish_batches_without_product(Bf16GemmProblem p, launch::StreamHandle stream) {
    const int64_t bytes = element_bytes(p.d_dtype), outputs = p.batches.grouping == Grouping::kBatched ? p.batches.count : 1;
    for (int64_t i = 0; i < outputs; ++i) {
        finish_without_product(p, stream);
        p.d = static_cast<char*>(p.d) + p.batches.d_stride * bytes;
        if (p.has_c()) p.c = static_cast<const char*>(p.c) + p.batches.c_stride * bytes;
    }
}

void run_on_device(const Bf16GemmProblem& p, launch::StreamHandle stream) {
    const RuntimeOptions options = runtime_options();
    if (p.no_product()) {
        if (!options.compile_only) finish_batches_without_product(p, stream);
        return;
    }
    ReadyKernel<Bf16GemmConfig> ready =
        ready_bf16_gemm(p.device.index, {p.m, p.n, p.k, p.a.major, p.b.major, p.d_dtype, p.has_c(),
                                         {.grouping = p.batches.grouping, .count = p.batches.count}});
    if (options.compile_only) return;
    const launch::CurrentContext context(p.device.index);  // the driver encodes maps in one, too
    const Bf16GemmArgs args = kernel_args(p, ready);
    ready.shape.programmatic_dependent_launch = options.pdl;
    launch::launch(*ready.kernel, ready.shape, &args, stream);
}

}  // namespace

void bf16_gemm(const Bf16GemmCall& call) {
    run_bf16_gemm(contract::check_bf16_gemm(call, rules_of(contract::device_of(call))), call.stream);
}

void run_bf16_gemm(const Bf16GemmProblem& problem, launch::StreamHandle stream) {
    if (problem.empty_output()) return;
    if (runs_on_device(problem.device)) return run_on_device(problem, stream);
    const BlockingScope scope;
    reference::bf16_gemm(problem);
}

ReadyKernel<Bf16GemmConfig> ready_bf16_gemm(int device, const plan::Bf16GemmShape& shape) {
    return ready_kernels<Bf16Family>().find_or_make(device, shape);
}

void pin_bf16_gemm(int device, const plan::Bf16GemmShape& shape, const Bf16GemmConfig& config) {
    ready_kernels<Bf16Family>().pin(device, shape, config);
}

void forget_bf16_gemm_plans() {
    ready_kernels<Bf16Family>().forget();
}

}  // namespace deep_gemm::ops
