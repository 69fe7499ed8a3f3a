#include "ops/einsum.h"

#include "ops/bf16_gemm.h"
#include "ops/device_problem.h"
#include "ops/fp8_gemm.h"

namespace deep_gemm::ops {

void einsum(const EinsumCall& call) {
    run_bf16_gemm(contract::check_einsum(call, rules_of(contract::device_of(call))), call.stream);
}

void fp8_einsum(const Fp8EinsumCall& call) {
    const Device device = contract::device_of(call);
    const contract::Runner runner =
        runs_on_device(device) ? contract::Runner::kKernel : contract::Runner::kReference;
    run_fp8_gemm(contract::check_fp8_einsum(call, rules_of(device), runner), call.stream);
}

}  // namespace deep_gemm::ops
