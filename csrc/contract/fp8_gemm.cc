#include "contract/fp8_gemm.h"

#include <array>

#include "contract/expect.h"
#include "contract/overlap.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

// Same memory, seen the same way; shapes are equal by now, and strides of extents 0 and 1 mean nothing.
bool is_same(const TensorView& x, const TensorView& y) {
    if (x.data != y.data) return false;
    for (int i = 0; i < x.rank; ++i)
        if (x.shape[i] > 1 && x.stride[i] != y.stride[i]) return false;
    return true;
}

// D may be C itself; else they share no byte.
void check_c(const TensorView& c, const TensorView& d) {
    const std::array<Extent, 2> shape{{{d.rows(), "M"}, {d.columns(), "N"}}};
    expect(c, "c")
        .rank(2, "[M, N]")
        .dtype({d.dtype}, "c has the dtype of d; convert one of them")
        .shape(shape, "c has the shape of d")
        .tma_addressable("N");
    if (!is_same(c, d) && overlap(c, d))
        refuse("c",
               "d itself (same address, shape and strides) or memory apart from d, got a partial overlap "
               "with d (c "
               "strides {}, d strides {}); clone c",
               strides_text(c), strides_text(d));
}

}  // namespace

Device device_of(const Fp8GemmCall& call) {
    const Device device = device_of(static_cast<const Fp8Operands&>(call));
    if (call.c) expect(*call.c, "c").same_device(device, "a");
    return device;
}

Fp8GemmProblem check_fp8_gemm(const Fp8GemmCall& call, int arch_major) {
    device_of(call);
    Fp8GemmProblem problem = check_operands(call, Grouping::kDense, arch_major);
    if (call.c) {
        check_c(*call.c, call.d);
        problem.c = call.c->data;
        problem.c_row_stride = output_row_stride(*call.c);
    }
    return problem;
}

}  // namespace deep_gemm::contract
