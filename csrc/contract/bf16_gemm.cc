#include "contract/bf16_gemm.h"

#include <deep_gemm/base/math.h>

#include <array>

#include "contract/expect.h"
#include "contract/output.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr int kArchMajor = 9;  // where there are kernels

// Whether TMA can read `t` as rows along `line`: elements adjacent there, 16-byte pitch across.
bool lines_along(const TensorView& t, int line) {
    const int across = 1 - line;
    if (t.shape[line] > 1 && t.stride[line] != 1) return false;
    if (t.shape[across] <= 1) return true;
    const int64_t pitch = t.stride[across];
    return pitch >= t.shape[line] && pitch < kTmaStrideLimit / element_bytes(t.dtype) &&
           pitch * element_bytes(t.dtype) % kTmaAlignment == 0;
}

// The major of an operand that TMA can address; `letter` names its rows. What neither major allows is refused by the one
// that is nearer.
Major checked_major(const TensorView& t, std::string_view name, std::string_view letter) {
    if (t.numel() == 0) return Major::kK;
    if (lines_along(t, 1) || lines_along(t, 0)) {
        expect(t, name).base_aligned(kTmaAlignment);
        return lines_along(t, 1) ? Major::kK : Major::kMn;
    }
    const bool unit_k = t.stride[1] == 1, unit_mn = t.stride[0] == 1;
    if (!unit_k && !unit_mn)
        refuse(name, "unit stride along K or along {}, got strides {}; call .contiguous()", letter, strides_text(t));
    const TensorView lines = unit_k ? t : t.transposed(0, 1);
    expect(lines, name).tma_addressable(unit_k ? "K" : letter);
    refuse(name, "rows or columns that TMA can address, got shape {} with strides {}; call .contiguous()", shape_text(t),
           strides_text(t));
}

// Pitches of extents 0 and 1 are replaced by what a tensor map accepts.
Bf16Operand operand_of(const TensorView& t, Major major) {
    const int line = major == Major::kK ? 1 : 0, across = 1 - line;
    const int64_t per_unit = kTmaAlignment / element_bytes(Dtype::kBf16);
    return {t.data, major, t.shape[across] > 1 ? t.stride[across] : align_up<int64_t>(t.shape[line], per_unit)};
}

void check_kinds(const Bf16GemmCall& call) {
    expect(call.a, "a").rank(2, "[M, K]").extents_fit();
    expect(call.b, "b").rank(2, "[N, K]").extents_fit();
    expect(call.d, "d").rank(2, "[M, N]").extents_fit();
    expect(call.a, "a").dtype({Dtype::kBf16}, "convert it, or call fp8_gemm_* with quantised operands");
    expect(call.b, "b").dtype({Dtype::kBf16}, "convert it, or call fp8_gemm_* with quantised operands");
    expect(call.d, "d").dtype({Dtype::kBf16, Dtype::kF32}, "allocate the output in one of these");
}

void check_shapes(const Bf16GemmCall& call) {
    const Extent m{call.a.rows(), "M"}, n{call.b.rows(), "N"}, k{call.a.columns(), "K"};
    expect(call.b, "b").shape(std::array{n, k}, "K comes from a, and b is seen as `nt` sees it: check the layout letters");
    expect(call.d, "d").shape(std::array{m, n}, "M comes from a, N from b");
}

}  // namespace

Device device_of(const Bf16GemmCall& call) {
    const Device device = call.a.device;
    if (device.kind == Device::Kind::kOther)
        refuse("a", "a tensor on a CUDA device or on the CPU, got one on {}; move it there", device_text(device));
    expect(call.b, "b").same_device(device, "a");
    expect(call.d, "d").same_device(device, "a");
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    return device;
}

Bf16GemmProblem check_bf16_gemm(const Bf16GemmCall& call, int arch_major) {
    device_of(call);
    if (arch_major != kArchMajor)
        refuse("a", "a device that has BF16 GEMM kernels, SM{}0, got one of architecture SM{}0; CPU tensors run the reference",
               kArchMajor, arch_major);
    check_kinds(call);
    check_shapes(call);
    const Major a_major = checked_major(call.a, "a", "M"), b_major = checked_major(call.b, "b", "N");
    expect(call.d, "d").tma_addressable("N");
    check_apart(call.a, "a", call.d);
    check_apart(call.b, "b", call.d);
    if (call.c) check_c(*call.c, call.d);

    Bf16GemmProblem problem;
    problem.m = call.a.rows();
    problem.n = call.b.rows();
    problem.k = call.a.columns();
    problem.device = call.a.device;
    problem.a = operand_of(call.a, a_major);
    problem.b = operand_of(call.b, b_major);
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
