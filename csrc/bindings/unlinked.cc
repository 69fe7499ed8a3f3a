// Stands in for ops that are not linked yet; the real definition wins.
#include "ops/fp8_gemm.h"
#include "support/error.h"

namespace deep_gemm::ops {

__attribute__((weak)) void fp8_gemm(const Fp8GemmCall&) { throw_error("fp8_gemm is not linked into this build"); }

}  // namespace deep_gemm::ops
