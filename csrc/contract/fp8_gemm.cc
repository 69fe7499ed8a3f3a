#include "contract/fp8_gemm.h"

#include "contract/expect.h"

namespace deep_gemm::contract {

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
