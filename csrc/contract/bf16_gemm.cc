#include "contract/bf16_gemm.h"

#include <deep_gemm/base/math.h>

#include <array>

#include "contract/dimensions.h"
#include "contract/expect.h"
#include "contract/output.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr int kArchMajor = 9;  // where there are kernels

// What the operands of a grouping look like, as `nt` sees them.
struct Forms {
    Form a, b, d;
};
constexpr Forms kDenseForms{{2, "[M, K]"}, {2, "[N, K]"}, {2, "[M, N]"}};
constexpr Forms kContiguousForms{{2, "[M, K]"}, {3, "[G, N, K]"}, {2, "[M, N]"}};
constexpr Forms kMaskedForms{{3, "[G, M, K]"}, {3, "[G, N, K]"}, {3, "[G, M, N]"}};

const Forms& forms_of(Grouping grouping) {
    if (grouping == Grouping::kDense) return kDenseForms;
    return grouping == Grouping::kMasked ? kMaskedForms : kContiguousForms;
}

// The operand with its lines last: as it is where it is K-major, else with K before its rows.
TensorView by_lines(const TensorView& t, Major major) {
    return major == Major::kK ? t : t.transposed(t.row_dimension(), t.column_dimension());
}

// Whether TMA can read the last dimension as lines: elements adjacent there, 16-byte pitch across.
bool has_lines(const TensorView& t) {
    if (t.columns() > 1 && t.stride[t.column_dimension()] != 1) return false;
    if (t.rows() <= 1) return true;
    const int64_t pitch = t.stride[t.row_dimension()];
    return pitch >= t.columns() && pitch < kTmaStrideLimit / element_bytes(t.dtype) &&
           pitch * element_bytes(t.dtype) % kTmaAlignment == 0;
}

// The major of an operand that TMA can address; `letter` names its rows. What neither major allows is refused by the one
// that is nearer.
Major checked_major(const TensorView& t, std::string_view name, std::string_view letter) {
    if (t.numel() == 0) return Major::kK;
    for (const Major major : {Major::kK, Major::kMn}) {
        const TensorView lines = by_lines(t, major);
        if (!has_lines(lines)) continue;
        expect(lines, name).groups_addressable().base_aligned(kTmaAlignment);
        return major;
    }
    const bool unit_k = t.stride[t.column_dimension()] == 1, unit_mn = t.stride[t.row_dimension()] == 1;
    if (!unit_k && !unit_mn)
        refuse(name, "unit stride along K or along {}, got strides {}; call .contiguous()", letter, strides_text(t));
    const TensorView lines = by_lines(t, unit_k ? Major::kK : Major::kMn);
    expect(lines, name).tma_addressable(unit_k ? "K" : letter);
    refuse(name, "rows or columns that TMA can address, got shape {} with strides {}; call .contiguous()", shape_text(t),
           strides_text(t));
}

// Pitches of extents 0 and 1 are replaced by what a tensor map accepts.
Bf16Operand operand_of(const TensorView& t, Major major) {
    const TensorView lines = by_lines(t, major);
    const int64_t per_unit = kTmaAlignment / element_bytes(Dtype::kBf16);
    const int64_t pitch =
        lines.rows() > 1 ? lines.stride[lines.row_dimension()] : align_up<int64_t>(lines.columns(), per_unit);
    return {t.data, major, pitch, matrix_stride(t, pitch)};
}

void check_kinds(const Bf16Operands& call, const Forms& forms) {
    expect(call.a, "a").rank(forms.a.rank, forms.a.dimensions).extents_fit();
    expect(call.b, "b").rank(forms.b.rank, forms.b.dimensions).extents_fit();
    expect(call.d, "d").rank(forms.d.rank, forms.d.dimensions).extents_fit();
    expect(call.a, "a").dtype({Dtype::kBf16}, "convert it, or call fp8_gemm_* with quantised operands");
    expect(call.b, "b").dtype({Dtype::kBf16}, "convert it, or call fp8_gemm_* with quantised operands");
    if (forms.b.rank == 3)
        expect(call.d, "d").dtype({Dtype::kBf16}, "allocate the output of a grouped GEMM in it");
    else
        expect(call.d, "d").dtype({Dtype::kBf16, Dtype::kF32}, "allocate the output in one of these");
}

void check_shapes(const Bf16Operands& call, const Forms& forms) {
    const Extent m{call.a.rows(), "M"}, n{call.b.rows(), "N"}, k{call.a.columns(), "K"};
    const Extent groups{forms.a.rank == 3 ? call.a.shape[0] : call.b.shape[0], "G"};
    expect(call.b, "b")
        .shape(Dimensions(forms.b, groups, n, k).extents(),
               forms.a.rank == 3 ? "G and K come from a, and b is seen as `nt` sees it: check the layout letters"
                                 : "K comes from a, and b is seen as `nt` sees it: check the layout letters");
    expect(call.d, "d").shape(Dimensions(forms.d, groups, m, n).extents(), "M comes from a, N from b");
}

// Of a: rows of groups are cut out of it, so grouped ones are K-major.
Major checked_a_major(const TensorView& a, Grouping grouping) {
    if (grouping == Grouping::kDense) return checked_major(a, "a", "M");
    expect(a, "a").tma_addressable("K");
    return Major::kK;
}

Device device_of_operands(const Bf16Operands& call) {
    const Device device = call.a.device;
    if (device.kind == Device::Kind::kOther)
        refuse("a", "a tensor on a CUDA device or on the CPU, got one on {}; move it there", device_text(device));
    expect(call.b, "b").same_device(device, "a");
    expect(call.d, "d").same_device(device, "a");
    return device;
}

template <typename Call>
Device device_of_grouped(const Call& call) {
    const Device device = device_of_operands(call);
    check_device(call, device);
    return device;
}

Bf16GemmProblem check_operands(const Bf16Operands& call, Grouping grouping, int arch_major) {
    if (arch_major != kArchMajor)
        refuse("a", "a device that has BF16 GEMM kernels, SM{}0, got one of architecture SM{}0; CPU tensors run the reference",
               kArchMajor, arch_major);
    const Forms& forms = forms_of(grouping);
    check_kinds(call, forms);
    check_shapes(call, forms);
    const Major a_major = checked_a_major(call.a, grouping), b_major = checked_major(call.b, "b", "N");
    expect(call.d, "d").tma_addressable("N");
    check_apart(call.a, "a", call.d);
    check_apart(call.b, "b", call.d);

    Bf16GemmProblem problem;
    problem.m = call.a.rows();
    problem.n = call.b.rows();
    problem.k = call.a.columns();
    problem.groups.count = forms.b.rank == 3 ? call.b.shape[0] : 1;
    problem.device = call.a.device;
    problem.a = operand_of(call.a, a_major);
    problem.b = operand_of(call.b, b_major);
    problem.d_dtype = call.d.dtype;
    problem.d = call.d.data;
    problem.d_row_stride = output_row_stride(call.d);
    problem.d_group_stride = matrix_stride(call.d, problem.d_row_stride);
    return problem;
}

template <typename Call>
Bf16GemmProblem check_grouped(const Call& call, int arch_major) {
    device_of(call);
    check_options(call);
    Bf16GemmProblem problem = check_operands(call, call.grouping(), arch_major);
    problem.groups = checked_groups(call, {problem.m, problem.groups.count}, call.d);
    return problem;
}

}  // namespace

Device device_of(const Bf16GemmCall& call) {
    const Device device = device_of_operands(call);
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    return device;
}

Device device_of(const ContiguousBf16GemmCall& call) {
    return device_of_grouped(call);
}

Device device_of(const MaskedBf16GemmCall& call) {
    return device_of_grouped(call);
}

Bf16GemmProblem check_bf16_gemm(const Bf16GemmCall& call, int arch_major) {
    device_of(call);
    Bf16GemmProblem problem = check_operands(call, Grouping::kDense, arch_major);
    if (call.c) {
        check_c(*call.c, call.d);
        problem.c = call.c->data;
        problem.c_row_stride = output_row_stride(*call.c);
    }
    return problem;
}

Bf16GemmProblem check_bf16_gemm(const ContiguousBf16GemmCall& call, int arch_major) {
    return check_grouped(call, arch_major);
}

Bf16GemmProblem check_bf16_gemm(const MaskedBf16GemmCall& call, int arch_major) {
    return check_grouped(call, arch_major);
}

}  // namespace deep_gemm::contract
