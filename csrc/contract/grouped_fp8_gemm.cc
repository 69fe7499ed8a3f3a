#include "contract/grouped_fp8_gemm.h"

namespace deep_gemm::contract {

namespace {

template <typename Call>
Device device_of_all(const Call& call) {
    const Device device = device_of(static_cast<const Fp8Operands&>(call));
    check_device(call, device);
    return device;
}

template <typename Call>
Fp8GemmProblem check(const Call& call, int arch_major) {
    device_of(call);
    check_options(call);
    Fp8GemmProblem problem = check_operands(call, call.grouping(), arch_major);
    problem.groups = checked_groups(call, {problem.m, problem.groups.count}, call.d);
    return problem;
}

}  // namespace

Device device_of(const ContiguousFp8GemmCall& call) {
    return device_of_all(call);
}

Device device_of(const MaskedFp8GemmCall& call) {
    return device_of_all(call);
}

Fp8GemmProblem check_fp8_gemm(const ContiguousFp8GemmCall& call, int arch_major) {
    return check(call, arch_major);
}

Fp8GemmProblem check_fp8_gemm(const MaskedFp8GemmCall& call, int arch_major) {
    return check(call, arch_major);
}

}  // namespace deep_gemm::contract
