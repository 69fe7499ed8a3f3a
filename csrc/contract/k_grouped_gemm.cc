#include "contract/k_grouped_gemm.h"

#include <deep_gemm/base/math.h>

#include <array>

#include "contract/expect.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr int kArchMajor = 9;  // where there are kernels
constexpr std::string_view kSfaName = "sfa (scales of a)";
constexpr std::string_view kSfbName = "sfb (scales of b)";
constexpr int64_t kMatrixStep = 128;    // groups of kMatrices: whole swizzle spans, and whole factors
constexpr int64_t kRowStep = 64;        // groups of BF16 rows: what a stage of the kernel holds
constexpr int64_t kReferenceStep = 32;  // the least alignment there is
constexpr int64_t kExtentLimit = int64_t{1} << 31;

bool is_fp8(const KGroupedGemmCall& call) {
    return call.dtype == Dtype::kF8E4M3;
}

bool of_matrices(const KGroupedGemmCall& call) {
    return call.layout == KLayout::kMatrices;
}

bool knows_sizes(const KGroupedGemmCall& call) {
    return call.ks_cpu && !call.ks_cpu->empty();
}

void check_support(const KGroupedGemmCall& call, const KGroupedRules& rules) {
    if (!rules.on_device) return;
    if (rules.arch_major != kArchMajor)
        refuse("a",
               "a device that has GEMMs grouped along K, SM{}0, got one of architecture SM{}0; CPU tensors "
               "run the reference",
               kArchMajor, rules.arch_major);
    if (is_fp8(call) && !of_matrices(call))
        refuse("a",
               "FP8 operands that are K-major, got rows of K: the tensor cores of SM{}0 read FP8 along K "
               "alone; call "
               "k_grouped_fp8_gemm_nt_contiguous with each group's [M, K] transposed, or "
               "k_grouped_bf16_gemm_tn_contiguous; "
               "CPU tensors run the reference",
               kArchMajor);
}

void check_scales(const TensorView& scales, std::string_view name) {
    if (scales.dtype == Dtype::kI32 || scales.dtype == Dtype::kF8E8M0)
        refuse(name,
               "dtype {}, got {}: UE8M0 scales need SM100; pass the scales in FP32 (powers of two are fine)",
               dtype_name(Dtype::kF32), dtype_name(scales.dtype));
    expect(scales, name)
        .rank(2, "of K factors and M or N")
        .dtype({Dtype::kF32}, "pass the FP32 factors that the quantisation returned")
        .extents_fit();
}

void check_recipe(const KGroupedGemmCall& call) {
    const Recipe& recipe = call.recipe;
    const bool known_k = recipe.gran_k == 128 || (recipe.gran_k == 32 && !of_matrices(call));
    if (recipe.gran_m != 1 || recipe.gran_n != 1 || !known_k)
        refuse("recipe",
               "(1, 1, 128){}, a factor per row of a and b, got ({}, {}, {}); quantise along K alone",
               of_matrices(call) ? "" : " or (1, 1, 32)", recipe.gran_m, recipe.gran_n, recipe.gran_k);
}

void check_kinds(const KGroupedGemmCall& call) {
    const bool matrices = of_matrices(call);
    const std::string_view advice = is_fp8(call) ? "quantise it along K, each group for itself"
                                                 : "convert it, or call k_grouped_fp8_gemm_nt_contiguous";
    expect(call.d, "d")
        .rank(3, "[G, M, N]")
        .dtype({Dtype::kF32}, "gradients of weights add up in FP32: allocate the output in it")
        .extents_fit();
    expect(call.a, "a")
        .rank(matrices ? 1 : 2, matrices ? "[M * K], group after group" : "[K, M]")
        .dtype({call.dtype}, advice);
    expect(call.b, "b")
        .rank(matrices ? 1 : 2, matrices ? "[N * K], group after group" : "[K, N]")
        .dtype({call.dtype}, advice);
    if (!matrices) {
        expect(call.a, "a").extents_fit();
        expect(call.b, "b").extents_fit();
    }
    if (!is_fp8(call)) return;
    check_scales(call.sfa, kSfaName);
    check_scales(call.sfb, kSfbName);
    check_recipe(call);
}

// K of all groups: of matrices as many elements as `rows` leave.
int64_t k_of_all(const KGroupedGemmCall& call, int64_t m) {
    if (!of_matrices(call)) return call.a.shape[0];
    const int64_t elements = call.a.shape[0];
    if (m == 0) return call.sfa.shape[1] * kMatrixStep;
    if (elements % (m * kMatrixStep) != 0 || elements / m >= kExtentLimit)
        refuse("a",
               "M = {} (from d) times a K of all groups that is a multiple of {}, below 2^31, got {} "
               "elements; pad each group's K",
               m, kMatrixStep, elements);
    return elements / m;
}

void check_shapes(const KGroupedGemmCall& call, int64_t k_value) {
    const Extent groups{call.d.shape[0], "G"}, m{call.d.shape[1], "M"}, n{call.d.shape[2], "N"},
        k{k_value, "K"};
    expect(call.grouped_layout, "grouped_layout")
        .rank(1, "[G]")
        .dtype({Dtype::kI32}, "convert it with .int()")
        .shape(std::array{groups}, "one entry a group of d")
        .rows_contiguous("G")
        .base_aligned(sizeof(int32_t));
    if (of_matrices(call)) {
        const Extent blocks{k_value / kMatrixStep, "K/128"};
        expect(call.b, "b")
            .shape(std::array{Extent{n.value * k.value, "N * K"}}, "N comes from d, K of all groups from a");
        expect(call.sfa, kSfaName)
            .shape(std::array{m, blocks}, "a factor per row and 128 of K, groups side by side");
        expect(call.sfb, kSfbName)
            .shape(std::array{n, blocks}, "a factor per row and 128 of K, groups side by side");
        return;
    }
    expect(call.a, "a").shape(std::array{k, m}, "M comes from d: A is [K, M], all groups' K together");
    expect(call.b, "b").shape(std::array{k, n}, "N comes from d, K from a: B is [K, N]");
    if (!is_fp8(call)) return;
    const Extent factors{call.sfa.shape[0], "factors along K of sfa"};
    expect(call.sfa, kSfaName).shape(std::array{factors, m}, "factors along K first, M comes from d");
    expect(call.sfb, kSfbName)
        .shape(std::array{factors, n}, "as many factors along K as sfa, N comes from d");
}

// Starts and ends of groups are what the kernel can start and end a stage at.
void check_alignment(const KGroupedGemmCall& call) {
    if (of_matrices(call)) {
        if (call.use_psum_layout)
            refuse("use_psum_layout",
                   "False: K-major groups are matrices of their own, without gaps, got True; pass sizes");
        return;
    }
    const int64_t step = is_fp8(call) ? kReferenceStep : kRowStep;
    if (call.alignment <= 0 || call.alignment % step != 0)
        refuse("alignment",
               "a positive multiple of {} along K, got {}; call set_mk_alignment_for_contiguous_layout(128) "
               "and lay the groups out "
               "anew",
               step, call.alignment);
}

void check_sizes(const KGroupedGemmCall& call, int64_t k) {
    if (!knows_sizes(call)) return;
    const std::vector<int64_t>& sizes = *call.ks_cpu;
    const int64_t groups = call.d.shape[0], step = of_matrices(call) ? kMatrixStep : call.alignment;
    if (static_cast<int64_t>(sizes.size()) != groups)
        refuse("ks_cpu", "{} sizes (G), got {}; pass each group's K, or None", groups, sizes.size());
    int64_t sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] < 0 || sizes[i] >= kExtentLimit || sizes[i] % step != 0)
            refuse("ks_cpu", "multiples of {} (0 counts), got {} for group {}; pad the group with zeros",
                   step, sizes[i], i);
        sum += sizes[i];
    }
    if (sum > k || (sum < k && !call.use_psum_layout))
        refuse("ks_cpu", "sizes that add up to the K of all groups in a, {}, got {}; correct the list", k,
               sum);
}

// Factors along K of `kRows`, as far as the host knows sizes.
void check_factor_count(const KGroupedGemmCall& call, int64_t k) {
    if (!is_fp8(call) || of_matrices(call)) return;
    const int64_t gran = call.recipe.gran_k, rows = call.sfa.shape[0];
    int64_t least = 0, most = ceil_div<int64_t>(k, gran) + call.d.shape[0];
    if (knows_sizes(call)) {
        most = 0;
        for (const int64_t size : *call.ks_cpu) most += ceil_div(size, gran);
        least = call.use_psum_layout ? 0 : most;
    }
    if (rows < least || rows > most)
        refuse(kSfaName, "{} factors along K, the sum of ceil(K_g/{}), got {}; pass matching sizes", most,
               gran, rows);
}

void check_layouts(const KGroupedGemmCall& call) {
    const TensorView* operands[] = {&call.a, &call.b};
    constexpr std::string_view kNames[] = {"a", "b"}, kLetters[] = {"M", "N"};
    for (int i = 0; i < 2; ++i) {
        if (of_matrices(call))
            expect(*operands[i], kNames[i]).rows_contiguous("K").base_aligned(kTmaAlignment);
        else
            expect(*operands[i], kNames[i]).tma_addressable(kLetters[i]);
        check_apart(*operands[i], kNames[i], call.d);
    }
    expect(call.d, "d").tma_addressable("N");
    check_apart(call.grouped_layout, "grouped_layout", call.d);
    if (!is_fp8(call)) return;
    expect(call.sfa, kSfaName).strides_forward().base_aligned(sizeof(float));
    expect(call.sfb, kSfbName).strides_forward().base_aligned(sizeof(float));
    check_apart(call.sfa, kSfaName, call.d);
    check_apart(call.sfb, kSfbName, call.d);
}

KGroupedOperand operand_of(const TensorView& data, const TensorView& scales, const KGroupedGemmCall& call) {
    KGroupedOperand operand;
    operand.data = data.data;
    if (!of_matrices(call)) operand.row_stride = output_row_stride(data);
    if (!is_fp8(call)) return operand;
    const int along_k = of_matrices(call) ? 1 : 0;
    const auto stride = [&](int dimension) {
        return scales.shape[dimension] > 1 ? scales.stride[dimension] : 0;
    };
    operand.scales = {static_cast<const float*>(scales.data), 1, stride(1 - along_k), stride(along_k), 0};
    return operand;
}

KGroupedGemmProblem problem_of(const KGroupedGemmCall& call, int64_t k) {
    KGroupedGemmProblem p;
    p.groups = call.d.shape[0];
    p.m = call.d.shape[1];
    p.n = call.d.shape[2];
    p.k = k;
    p.sizes = static_cast<const int32_t*>(call.grouped_layout.data);
    p.alignment = call.use_psum_layout ? call.alignment : 0;
    p.device = call.d.device;
    p.layout = call.layout;
    p.dtype = call.dtype;
    p.gran_k = call.recipe.gran_k;
    p.a = operand_of(call.a, call.sfa, call);
    p.b = operand_of(call.b, call.sfb, call);
    p.d = call.d.data;
    p.d_row_stride = output_row_stride(call.d);
    p.d_group_stride = group_stride_of(call.d, p.d_row_stride);
    if (call.c) {
        p.c = call.c->data;
        p.c_row_stride = output_row_stride(*call.c);
        p.c_group_stride = group_stride_of(*call.c, p.c_row_stride);
    }
    return p;
}

}  // namespace

Device device_of(const KGroupedGemmCall& call) {
    const Device device = call.a.device;
    if (device.kind == Device::Kind::kOther)
        refuse("a", "a tensor on a CUDA device or on the CPU, got one on {}; move it there",
               device_text(device));
    expect(call.b, "b").same_device(device, "a");
    expect(call.d, "d").same_device(device, "a");
    expect(call.grouped_layout, "grouped_layout").same_device(device, "a");
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    if (!is_fp8(call)) return device;
    expect(call.sfa, kSfaName).same_device(device, "a");
    expect(call.sfb, kSfbName).same_device(device, "a");
    return device;
}

KGroupedGemmProblem check_k_grouped_gemm(const KGroupedGemmCall& call, const KGroupedRules& rules) {
    device_of(call);
    check_support(call, rules);
    check_kinds(call);
    check_alignment(call);
    const int64_t k = k_of_all(call, call.d.shape[1]);
    check_shapes(call, k);
    check_sizes(call, k);
    check_factor_count(call, k);
    check_layouts(call);
    if (call.c) check_c(*call.c, call.d);
    return problem_of(call, k);
}

}  // namespace deep_gemm::contract
