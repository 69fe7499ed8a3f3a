#include "contract/fp8_gemm.h"

#include <deep_gemm/base/math.h>

#include <string>

#include "contract/expect.h"
#include "contract/overlap.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr std::string_view kSfaName = "sfa (scales of a)";
constexpr std::string_view kSfbName = "sfb (scales of b)";
constexpr int64_t kGranK = 128;

// What exists: every "unsupported" sentence is printed from these rows.
struct Support {
    int arch_major;
    Dtype operand_dtype;
    Dtype scale_dtype;
    Recipe recipe;
};
constexpr Support kSupported[] = {
    {9, Dtype::kF8E4M3, Dtype::kF32, {1, 128, 128}},
    {9, Dtype::kF8E4M3, Dtype::kF32, {1, 1, 128}},
};

std::string supported_text() {
    std::string text;
    for (const Support& row : kSupported)
        text += fmt::format("{}SM{}0: {} operands, {} scales, recipe ({}, {}, {})", text.empty() ? "" : "; ",
                            row.arch_major, dtype_name(row.operand_dtype), dtype_name(row.scale_dtype),
                            row.recipe.gran_m, row.recipe.gran_n, row.recipe.gran_k);
    return text;
}

bool is_packed(Dtype scale) {
    return scale == Dtype::kI32 || scale == Dtype::kF8E8M0;
}
bool may_be_fp4(Dtype operand) {
    return operand == Dtype::kI8 || operand == Dtype::kF4E2M1x2;
}

void check_architecture(int arch_major) {
    for (const Support& row : kSupported)
        if (row.arch_major == arch_major) return;
    refuse("a",
           "a device that has FP8 GEMM kernels, got one of architecture SM{}0; supported are {}; CPU tensors "
           "run the "
           "reference",
           arch_major, supported_text());
}

void check_operand_dtype(const TensorView& operand, std::string_view name) {
    if (operand.dtype == Dtype::kF8E4M3) return;
    if (may_be_fp4(operand.dtype))
        refuse(name, "dtype {}, got {}, which means FP4, and FP4 operands need SM100; supported are {}",
               dtype_name(Dtype::kF8E4M3), dtype_name(operand.dtype), supported_text());
    expect(operand, name)
        .dtype({Dtype::kF8E4M3}, "quantise it with deep_gemm.per_token_cast_to_fp8 or per_block_cast_to_fp8");
}

void check_scale_dtype(const TensorView& scales, std::string_view name) {
    if (scales.dtype == Dtype::kF32) return;
    if (is_packed(scales.dtype))
        refuse(name,
               "dtype {}, got {}: UE8M0 scales need SM100; supported are {}; pass the scales in FP32 (powers "
               "of two "
               "are fine)",
               dtype_name(Dtype::kF32), dtype_name(scales.dtype), supported_text());
    expect(scales, name).dtype({Dtype::kF32}, "pass the FP32 factors that the quantisation returned");
}

int checked_gran_k(const Fp8GemmCall& call) {
    if (call.recipe_a->gran_k != call.recipe_b->gran_k)
        refuse("recipe_b", "the gran_k of recipe_a, {}, got {}; supported are {}", call.recipe_a->gran_k,
               call.recipe_b->gran_k, supported_text());
    return call.recipe_a->gran_k;
}

// The recipe that was asked for, whichever way, or the default of SFB's dtype.
Recipe requested_recipe(const Fp8GemmCall& call) {
    if (call.recipe && (call.recipe_a || call.recipe_b))
        refuse("recipe",
               "either recipe, or recipe_a with recipe_b, got recipe beside {}; pass one of the two forms",
               call.recipe_a ? "recipe_a" : "recipe_b");
    if (call.recipe_a.has_value() != call.recipe_b.has_value())
        refuse(call.recipe_a ? "recipe_b" : "recipe_a",
               "(gran_mn, gran_k), got None beside {}; pass both or neither",
               call.recipe_a ? "recipe_a" : "recipe_b");
    if (call.recipe) return *call.recipe;
    if (call.recipe_a) return {call.recipe_a->gran_mn, call.recipe_b->gran_mn, checked_gran_k(call)};
    return {1, is_packed(call.sfb.dtype) ? 1 : 128, 128};
}

Recipe checked_recipe(const Fp8GemmCall& call, int arch_major) {
    const Recipe recipe = requested_recipe(call);
    for (const Support& row : kSupported)
        if (row.arch_major == arch_major && row.recipe == recipe) return recipe;
    refuse(call.recipe_a ? "recipe_a, recipe_b" : "recipe",
           "a supported recipe, got ({}, {}, {}); supported are {}", recipe.gran_m, recipe.gran_n,
           recipe.gran_k, supported_text());
}

// Ranks, dtypes and recipe.
Recipe check_kinds(const Fp8GemmCall& call, int arch_major) {
    expect(call.a, "a").rank(2, "[M, K]").extents_fit();
    expect(call.b, "b").rank(2, "[N, K]").extents_fit();
    expect(call.d, "d").rank(2, "[M, N]").extents_fit();
    expect(call.sfa, kSfaName).rank(2, "[M, ceil(K/128)]");
    expect(call.sfb, kSfbName).rank(2, "[ceil(N/gran_n), ceil(K/128)]");
    check_operand_dtype(call.a, "a");
    check_operand_dtype(call.b, "b");
    check_scale_dtype(call.sfa, kSfaName);
    check_scale_dtype(call.sfb, kSfbName);
    expect(call.d, "d").dtype({Dtype::kBf16, Dtype::kF32}, "allocate the output in one of these");
    if (call.c)
        expect(*call.c, "c")
            .rank(2, "[M, N]")
            .dtype({call.d.dtype}, "c has the dtype of d; convert one of them");
    return checked_recipe(call, arch_major);
}

void check_shapes(const Fp8GemmCall& call, const Recipe& recipe) {
    const Extent m{call.a.shape[0], "M"}, n{call.b.shape[0], "N"}, k{call.a.shape[1], "K"};
    const Extent k_blocks{ceil_div(k.value, kGranK), "ceil(K/128)"};
    const Extent n_factors{ceil_div<int64_t>(n.value, recipe.gran_n),
                           recipe.gran_n == 1 ? "N" : "ceil(N/128)"};
    expect(call.b, "b")
        .shape(n, k, "K comes from a, and b is seen as `nt` sees it: check the layout letters");
    expect(call.d, "d").shape(m, n, "M comes from a, N from b");
    expect(call.sfa, kSfaName).shape(m, k_blocks, "one factor per row of a and 128 of K, as `nt` sees them");
    expect(call.sfb, kSfbName)
        .shape(n_factors, k_blocks,
               "as `nt` sees them; a factor per row of b needs recipe=(1, 1, 128), one per 128x128 "
               "block recipe=(1, 128, 128)");
    if (call.c) expect(*call.c, "c").shape(m, n, "c has the shape of d");
}

void check_layouts(const Fp8GemmCall& call) {
    expect(call.a, "a").k_major().rows_addressable().base_aligned(kTmaAlignment);
    expect(call.b, "b").k_major().rows_addressable().base_aligned(kTmaAlignment);
    expect(call.sfa, kSfaName).strides_forward().base_aligned(sizeof(float));
    expect(call.sfb, kSfbName).strides_forward().base_aligned(sizeof(float));
    expect(call.d, "d").tma_addressable("N");
    if (call.c) expect(*call.c, "c").tma_addressable("N");
}

// Same memory, seen the same way; shapes are equal by now, and strides of extents 0 and 1 mean nothing.
bool is_same(const TensorView& x, const TensorView& y) {
    if (x.data != y.data) return false;
    for (int i = 0; i < x.rank; ++i)
        if (x.shape[i] > 1 && x.stride[i] != y.stride[i]) return false;
    return true;
}

// D may be C itself; else it shares no byte with what the kernel reads.
void check_aliasing(const Fp8GemmCall& call) {
    const auto apart = [&](const TensorView& input, std::string_view name) {
        if (overlap(input, call.d))
            refuse("d", "memory of its own, got an overlap with {}; allocate a separate output", name);
    };
    apart(call.a, "a");
    apart(call.b, "b");
    apart(call.sfa, kSfaName);
    apart(call.sfb, kSfbName);
    if (call.c && !is_same(*call.c, call.d) && overlap(*call.c, call.d))
        refuse("c",
               "d itself (same address, shape and strides) or memory apart from d, got a partial overlap "
               "with d (c "
               "strides {}, d strides {}); clone c",
               strides_text(*call.c), strides_text(call.d));
}

// Strides of extents 0 and 1 are replaced by what a tensor map accepts.
OperandView operand_view(const TensorView& t) {
    const bool strided = t.shape[0] > 1;
    return {t.data, strided ? t.stride[0] : align_up<int64_t>(t.shape[1], kTmaAlignment)};
}

ScaleView scale_view(const TensorView& t, int granularity) {
    return {static_cast<const float*>(t.data), granularity, t.shape[0] > 1 ? t.stride[0] : 0,
            t.shape[1] > 1 ? t.stride[1] : 0};
}

int64_t output_row_stride(const TensorView& t) {
    const int64_t per_unit = kTmaAlignment / element_bytes(t.dtype);
    return t.shape[0] > 1 ? t.stride[0] : align_up<int64_t>(t.shape[1], per_unit);
}

}  // namespace

Device device_of(const Fp8GemmCall& call) {
    const Device device = call.a.device;
    if (device.kind == Device::Kind::kOther)
        refuse("a", "a tensor on a CUDA device or on the CPU, got one on {}; move it there",
               device_text(device));
    expect(call.sfa, kSfaName).same_device(device, "a");
    expect(call.b, "b").same_device(device, "a");
    expect(call.sfb, kSfbName).same_device(device, "a");
    expect(call.d, "d").same_device(device, "a");
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    return device;
}

Fp8GemmProblem check_fp8_gemm(const Fp8GemmCall& call, int arch_major) {
    const Device device = device_of(call);
    check_architecture(arch_major);
    const Recipe recipe = check_kinds(call, arch_major);
    check_shapes(call, recipe);
    check_layouts(call);
    check_aliasing(call);

    Fp8GemmProblem problem;
    problem.m = call.a.shape[0];
    problem.n = call.b.shape[0];
    problem.k = call.a.shape[1];
    problem.device = device;
    problem.a = operand_view(call.a);
    problem.b = operand_view(call.b);
    problem.sfa = scale_view(call.sfa, 1);
    problem.sfb = scale_view(call.sfb, recipe.gran_n);
    problem.d_dtype = call.d.dtype;
    problem.d = call.d.data;
    problem.d_row_stride = output_row_stride(call.d);
    if (call.c) {
        problem.c = call.c->data;
        problem.c_row_stride = output_row_stride(*call.c);
    }
    return problem;
}

}  // namespace deep_gemm::contract
