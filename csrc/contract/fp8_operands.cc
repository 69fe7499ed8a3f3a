#include "contract/fp8_operands.h"

#include <deep_gemm/base/math.h>

#include <array>
#include <span>
#include <string>

#include "contract/expect.h"
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

int checked_gran_k(const Fp8Operands& call) {
    if (call.recipe_a->gran_k != call.recipe_b->gran_k)
        refuse("recipe_b", "the gran_k of recipe_a, {}, got {}; supported are {}", call.recipe_a->gran_k,
               call.recipe_b->gran_k, supported_text());
    return call.recipe_a->gran_k;
}

// The recipe that was asked for, whichever way, or the default of SFB's dtype.
Recipe requested_recipe(const Fp8Operands& call) {
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

Recipe checked_recipe(const Fp8Operands& call, int arch_major) {
    const Recipe recipe = requested_recipe(call);
    for (const Support& row : kSupported)
        if (row.arch_major == arch_major && row.recipe == recipe) return recipe;
    refuse(call.recipe_a ? "recipe_a, recipe_b" : "recipe",
           "a supported recipe, got ({}, {}, {}); supported are {}", recipe.gran_m, recipe.gran_n,
           recipe.gran_k, supported_text());
}

// The dimensions of an operand; their number is its rank.
struct Form {
    int rank;
    std::string_view dimensions;
};

// What the operands of a grouping look like, as `nt` sees them.
struct Forms {
    Form a, b, d, sfa, sfb;
    std::array<Dtype, 2> d_dtypes;
};
constexpr Forms kDenseForms{{2, "[M, K]"},
                            {2, "[N, K]"},
                            {2, "[M, N]"},
                            {2, "[M, ceil(K/128)]"},
                            {2, "[ceil(N/gran_n), ceil(K/128)]"},
                            {Dtype::kBf16, Dtype::kF32}};
constexpr Forms kContiguousForms{{2, "[M, K]"},
                                 {3, "[G, N, K]"},
                                 {2, "[M, N]"},
                                 {2, "[M, ceil(K/128)]"},
                                 {3, "[G, ceil(N/gran_n), ceil(K/128)]"},
                                 {Dtype::kBf16, Dtype::kBf16}};
constexpr Forms kBatchedForms{{3, "[G, M, K]"},
                              {3, "[G, N, K]"},
                              {3, "[G, M, N]"},
                              {3, "[G, M, ceil(K/128)]"},
                              {3, "[G, ceil(N/gran_n), ceil(K/128)]"},
                              {Dtype::kBf16, Dtype::kF32}};
constexpr Forms kMaskedForms{{3, "[G, M, K]"},
                             {3, "[G, N, K]"},
                             {3, "[G, M, N]"},
                             {3, "[G, M, ceil(K/128)]"},
                             {3, "[G, ceil(N/gran_n), ceil(K/128)]"},
                             {Dtype::kBf16, Dtype::kBf16}};

const Forms& forms_of(Grouping grouping) {
    switch (grouping) {
        case Grouping::kDense:
            return kDenseForms;
        case Grouping::kContiguous:
        case Grouping::kPsum:
            return kContiguousForms;
        case Grouping::kMasked:
            return kMaskedForms;
        case Grouping::kBatched:
        case Grouping::kBatchSum:
            return kBatchedForms;
        case Grouping::kKGrouped:
            break;  // a contract of its own: k_grouped_gemm.h
    }
    return kDenseForms;
}

// Ranks, dtypes and recipe.
Recipe check_kinds(const Fp8Operands& call, const Forms& forms, int arch_major) {
    expect(call.a, "a").rank(forms.a.rank, forms.a.dimensions).extents_fit();
    expect(call.b, "b").rank(forms.b.rank, forms.b.dimensions).extents_fit();
    expect(call.d, "d").rank(forms.d.rank, forms.d.dimensions).extents_fit();
    expect(call.sfa, kSfaName).rank(forms.sfa.rank, forms.sfa.dimensions);
    expect(call.sfb, kSfbName).rank(forms.sfb.rank, forms.sfb.dimensions);
    check_operand_dtype(call.a, "a");
    check_operand_dtype(call.b, "b");
    check_scale_dtype(call.sfa, kSfaName);
    check_scale_dtype(call.sfb, kSfbName);
    if (forms.d_dtypes[0] == forms.d_dtypes[1])
        expect(call.d, "d").dtype({forms.d_dtypes[0]}, "allocate the output of a grouped GEMM in it");
    else
        expect(call.d, "d")
            .dtype({forms.d_dtypes[0], forms.d_dtypes[1]}, "allocate the output in one of these");
    return checked_recipe(call, arch_major);
}

// The shape that an operand of rank 2 or 3 must have.
class Dimensions {
  public:
    Dimensions(const Form& form, const Extent& groups, const Extent& rows, const Extent& columns)
        : extents_{groups, rows, columns}, rank_(static_cast<std::size_t>(form.rank)) {}
    std::span<const Extent> extents() const { return std::span<const Extent>(extents_).last(rank_); }

  private:
    std::array<Extent, 3> extents_;
    std::size_t rank_;
};

void check_shapes(const Fp8Operands& call, const Forms& forms, const Recipe& recipe) {
    const Extent m{call.a.rows(), "M"}, n{call.b.rows(), "N"}, k{call.a.columns(), "K"};
    const Extent groups{forms.a.rank == 3 ? call.a.shape[0] : call.b.shape[0], "G"};
    const Extent k_blocks{ceil_div(k.value, kGranK), "ceil(K/128)"};
    const Extent n_factors{ceil_div<int64_t>(n.value, recipe.gran_n),
                           recipe.gran_n == 1 ? "N" : "ceil(N/128)"};
    expect(call.b, "b")
        .shape(Dimensions(forms.b, groups, n, k).extents(),
               forms.a.rank == 3
                   ? "G and K come from a, and b is seen as `nt` sees it: check the layout letters"
                   : "K comes from a, and b is seen as `nt` sees it: check the layout letters");
    expect(call.d, "d").shape(Dimensions(forms.d, groups, m, n).extents(), "M comes from a, N from b");
    expect(call.sfa, kSfaName)
        .shape(Dimensions(forms.sfa, groups, m, k_blocks).extents(),
               "one factor per row of a and 128 of K, as `nt` sees them");
    expect(call.sfb, kSfbName)
        .shape(Dimensions(forms.sfb, groups, n_factors, k_blocks).extents(),
               "as `nt` sees them; a factor per row of b needs recipe=(1, 1, 128), one per 128x128 "
               "block recipe=(1, 128, 128)");
}

// The operand as its lines lie in memory.
TensorView lines_of(const TensorView& t, OperandMajors majors) {
    const int k = t.column_dimension(), mn = t.row_dimension();
    const bool along_mn = majors == OperandMajors::kEither && t.stride[k] != 1 && t.shape[k] > 1;
    return along_mn ? t.transposed(mn, k) : t;
}

void check_layouts(const Fp8Operands& call) {
    expect(lines_of(call.a, call.majors), "a").tma_addressable("K");
    expect(lines_of(call.b, call.majors), "b").tma_addressable("K");
    expect(call.sfa, kSfaName).strides_forward().base_aligned(sizeof(float));
    expect(call.sfb, kSfbName).strides_forward().base_aligned(sizeof(float));
    expect(call.d, "d").tma_addressable("N");
}

// Strides of extents 0 and 1 are replaced by what a tensor map accepts.
OperandView operand_view(const TensorView& t) {
    const int64_t row_stride =
        t.rows() > 1 ? t.stride[t.row_dimension()] : align_up<int64_t>(t.columns(), kTmaAlignment);
    const int64_t k_stride = t.columns() > 1 ? t.stride[t.column_dimension()] : 1;
    return {t.data, row_stride, group_stride_of(t, row_stride), k_stride};
}

int64_t stride_of(const TensorView& t, int dimension) {
    return dimension >= 0 && t.shape[dimension] > 1 ? t.stride[dimension] : 0;
}

ScaleView scale_view(const TensorView& t, int granularity) {
    return {static_cast<const float*>(t.data), granularity, stride_of(t, t.row_dimension()),
            stride_of(t, t.column_dimension()), stride_of(t, t.rank - 3)};
}

}  // namespace

Device device_of(const Fp8Operands& call) {
    const Device device = call.a.device;
    if (device.kind == Device::Kind::kOther)
        refuse("a", "a tensor on a CUDA device or on the CPU, got one on {}; move it there",
               device_text(device));
    expect(call.sfa, kSfaName).same_device(device, "a");
    expect(call.b, "b").same_device(device, "a");
    expect(call.sfb, kSfbName).same_device(device, "a");
    expect(call.d, "d").same_device(device, "a");
    return device;
}

Fp8GemmProblem check_operands(const Fp8Operands& call, Grouping grouping, int arch_major) {
    const Forms& forms = forms_of(grouping);
    check_architecture(arch_major);
    const Recipe recipe = check_kinds(call, forms, arch_major);
    check_shapes(call, forms, recipe);
    check_layouts(call);
    check_apart(call.a, "a", call.d);
    check_apart(call.b, "b", call.d);
    check_apart(call.sfa, kSfaName, call.d);
    check_apart(call.sfb, kSfbName, call.d);

    Fp8GemmProblem problem;
    problem.m = call.a.rows();
    problem.n = call.b.rows();
    problem.k = call.a.columns();
    problem.groups.grouping = grouping;
    problem.groups.count = forms.b.rank == 3 ? call.b.shape[0] : 1;
    problem.device = call.a.device;
    problem.a = operand_view(call.a);
    problem.b = operand_view(call.b);
    problem.sfa = scale_view(call.sfa, 1);
    problem.sfb = scale_view(call.sfb, recipe.gran_n);
    problem.d_dtype = call.d.dtype;
    problem.d = call.d.data;
    problem.d_row_stride = output_row_stride(call.d);
    problem.d_group_stride = group_stride_of(call.d, problem.d_row_stride);
    return problem;
}

}  // namespace deep_gemm::contract
