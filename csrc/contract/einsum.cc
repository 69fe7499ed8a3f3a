#include "contract/einsum.h"

#include <deep_gemm/base/math.h>

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "contract/expect.h"
#include "contract/letters.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr int kArchMajor = 9;  // where there are kernels
constexpr Recipe kPerBlock{1, 128, 128}, kPerRow{1, 1, 128};
constexpr int64_t kMostSteps = int64_t{1} << 31;
constexpr int64_t kStepOfK = 64;  // of the chain of a sum of batches

constexpr Contraction kBf16Rows[] = {
    {"bmk,bnk->mn", 'b', 'm', 'n', 'k', Grouping::kBatchSum},
    {"bhr,hdr->bhd", 'h', 'b', 'd', 'r', Grouping::kBatched},
    {"bhd,hdr->bhr", 'h', 'b', 'r', 'd', Grouping::kBatched},
};

struct Fp8Row {
    Contraction contraction;
    bool has_kernel;  // on SM90
    std::array<Recipe, 2> recipes;
};
constexpr Fp8Row kFp8Rows[] = {
    {{"bhr,hdr->bhd", 'h', 'b', 'd', 'r', Grouping::kBatched}, true, {kPerBlock, kPerRow}},
    {{"bhd,hdr->bhr", 'h', 'b', 'r', 'd', Grouping::kBatched}, false, {kPerBlock, kPerBlock}},
    {{"bhd,bhr->hdr", 'h', 'd', 'r', 'b', Grouping::kBatched}, false, {kPerRow, kPerRow}},
};

const Contraction& contraction_of(const Contraction& row) {
    return row;
}
const Contraction& contraction_of(const Fp8Row& row) {
    return row.contraction;
}

// The row of an expression, spaces aside.
template <typename Row>
const Row& row_of(const std::string& asked, std::span<const Row> rows) {
    std::string expression, known;
    for (const char c : asked)
        if (c != ' ') expression += c;
    for (const Row& row : rows) {
        if (contraction_of(row).expression == expression) return row;
        known += fmt::format("{}'{}'", known.empty() ? "" : ", ", contraction_of(row).expression);
    }
    refuse("expr", "one of {}, got '{}'; rename the dimensions, or compose the product of bf16_gemm_* calls", known, asked);
}

bool starts_lines(const TensorView& t, int line, int across) {
    if (t.shape[line] > 1 && t.stride[line] != 1) return false;
    if (t.shape[across] <= 1) return true;
    return t.stride[across] >= t.shape[line] && t.stride[across] * element_bytes(t.dtype) % kTmaAlignment == 0;
}

// An operand [G, MN, K] of either major, which TMA can address. `letters`: of MN and K, for messages.
Bf16Operand operand_of(const TensorView& t, std::string_view name, std::string_view mn, std::string_view k) {
    const bool k_major = starts_lines(t, 2, 1) || (t.stride[1] != 1 && t.shape[1] > 1);
    const TensorView lines = k_major ? t : t.transposed(1, 2);
    expect(lines, name).tma_addressable(k_major ? k : mn);
    const int64_t per_unit = kTmaAlignment / element_bytes(Dtype::kBf16);
    const int64_t pitch = lines.shape[1] > 1 ? lines.stride[1] : align_up<int64_t>(lines.shape[2], per_unit);
    return {t.data, k_major ? Major::kK : Major::kMn, pitch, lines.shape[0] > 1 ? lines.stride[0] : pitch};
}

void check_output(const EinsumCall& call, const Contraction& row, const Extents& extents) {
    expect(row.d_view(call.d), "d").tma_addressable(row.n_letter());
    check_apart(call.a, "a", call.d);
    check_apart(call.b, "b", call.d);
    if (call.c) check_c_of(*call.c, call.d, row, extents);
}

// Ranks, dtypes and extents of the three.
Extents check_kinds(const EinsumCall& call, const Contraction& row) {
    Extents extents;
    extents.check(call.a, "a", row.a());
    extents.check(call.b, "b", row.b());
    extents.check(call.d, "d", row.d());
    expect(call.a, "a").dtype({Dtype::kBf16}, "convert it, or call fp8_einsum with quantised operands");
    expect(call.b, "b").dtype({Dtype::kBf16}, "convert it, or call fp8_einsum with quantised operands");
    expect(call.d, "d").dtype({Dtype::kBf16, Dtype::kF32}, "allocate the output in one of these");
    return extents;
}

// Between the matrices of an output.
int64_t output_stride(const TensorView& t, const Contraction& row) {
    const TensorView view = row.d_view(t);
    return view.rank == 3 && view.shape[0] > 1 ? view.stride[0] : output_row_stride(view);
}

void check_fp8_factors(const Fp8EinsumCall& call, const Fp8Row& row, const Extents& extents, const Recipe& recipe) {
    const Contraction& letters = row.contraction;
    extents.check_factors(call.sfa, "sfa (scales of a)", letters.a(), {letters.k, 128}, {letters.m, recipe.gran_m});
    extents.check_factors(call.sfb, "sfb (scales of b)", letters.b(), {letters.k, 128}, {letters.n, recipe.gran_n});
}

Recipe checked_recipe(const Fp8EinsumCall& call, const Fp8Row& row) {
    const Recipe recipe = call.recipe.value_or(row.recipes[0]);
    for (const Recipe& known : row.recipes)
        if (recipe == known) return recipe;
    const Recipe& wanted = row.recipes[0];
    refuse("recipe", "({}, {}, {}) for '{}', got ({}, {}, {}); quantise the operands so", wanted.gran_m, wanted.gran_n,
           wanted.gran_k, row.contraction.expression, recipe.gran_m, recipe.gran_n, recipe.gran_k);
}

void check_has_kernel(const Fp8Row& row, int arch_major) {
    if (row.has_kernel) return;
    std::string known;
    for (const Fp8Row& other : kFp8Rows)
        if (other.has_kernel) known += fmt::format("{}'{}'", known.empty() ? "" : ", ", other.contraction.expression);
    refuse("expr",
           "an expression that has kernels on SM{}0, {}, got '{}', whose operands are not K-major; it needs SM100, CPU tensors "
           "run the reference",
           arch_major, known, row.contraction.expression);
}

}  // namespace

Device device_of(const EinsumCall& call) {
    const Device device = call.a.device;
    if (device.kind == Device::Kind::kOther)
        refuse("a", "a tensor on a CUDA device or on the CPU, got one on {}; move it there", device_text(device));
    expect(call.b, "b").same_device(device, "a");
    expect(call.d, "d").same_device(device, "a");
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    return device;
}

Device device_of(const Fp8EinsumCall& call) {
    const Device device = device_of(static_cast<const Fp8Operands&>(call));
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    return device;
}

Bf16GemmProblem check_einsum(const EinsumCall& call, int arch_major) {
    device_of(call);
    const Contraction& row = row_of<Contraction>(call.expression, kBf16Rows);
    if (arch_major != kArchMajor)
        refuse("a", "a device that has BF16 kernels, SM{}0, got one of architecture SM{}0; CPU tensors run the reference",
               kArchMajor, arch_major);
    const Extents extents = check_kinds(call, row);
    Bf16GemmProblem problem;
    problem.m = extents.of(row.m);
    problem.n = extents.of(row.n);
    problem.k = extents.of(row.k);
    problem.device = call.a.device;
    problem.a = operand_of(row.a_view(call.a), "a", row.m_letter(), row.k_letter());
    problem.b = operand_of(row.b_view(call.b), "b", row.n_letter(), row.k_letter());
    check_output(call, row, extents);
    const int64_t count = extents.of(row.group);
    if (row.grouping == Grouping::kBatchSum && count * ceil_div(problem.k, kStepOfK) >= kMostSteps)
        refuse("a", "less than 2^31 steps of {} along b and k, got b={}, k={}; split the sum", kStepOfK, count, problem.k);
    problem.groups.grouping = row.grouping;
    problem.groups.count = count;
    problem.d_dtype = call.d.dtype;
    problem.d = call.d.data;
    problem.d_row_stride = output_row_stride(row.d_view(call.d));
    problem.d_group_stride = output_stride(call.d, row);
    if (call.c) {
        problem.c = call.c->data;
        problem.c_row_stride = output_row_stride(row.d_view(*call.c));
        problem.c_group_stride = output_stride(*call.c, row);
    }
    return problem;
}

void check_vendor_einsum(const EinsumCall& call) {
    const Contraction& row = row_of<Contraction>(call.expression, kBf16Rows);
    if (row.grouping != Grouping::kBatched)
        refuse("use_cublaslt", "False for '{}', whose batches are summed, got True; leave it out", row.expression);
    check_einsum(call, kArchMajor);
}

Fp8GemmProblem check_fp8_einsum(const Fp8EinsumCall& call, int arch_major, Runner runner) {
    device_of(call);
    const Fp8Row& row = row_of<Fp8Row>(call.expression, kFp8Rows);
    const Contraction& letters = row.contraction;
    if (runner == Runner::kKernel) check_has_kernel(row, arch_major);
    Extents extents;
    extents.check(call.a, "a", letters.a());
    extents.check(call.b, "b", letters.b());
    extents.check(call.d, "d", letters.d());
    Fp8EinsumCall seen = call;
    seen.recipe = checked_recipe(call, row);
    check_fp8_factors(call, row, extents, *seen.recipe);
    seen.a = letters.a_view(call.a);
    seen.b = letters.b_view(call.b);
    seen.d = letters.d_view(call.d);
    seen.sfa = letters.a_view(call.sfa);
    seen.sfb = letters.b_view(call.sfb);
    seen.majors = row.has_kernel ? OperandMajors::kK : OperandMajors::kEither;
    Fp8GemmProblem problem = check_operands(seen, letters.grouping, arch_major);
    if (call.c) {
        check_c_of(*call.c, call.d, letters, extents);
        const TensorView c = letters.d_view(*call.c);
        problem.c = c.data;
        problem.c_row_stride = output_row_stride(c);
        problem.c_group_stride = output_stride(*call.c, letters);
    }
    return problem;
}

}  // namespace deep_gemm::contract
