// Which loaded kernel runs an FP8 GEMM of some extents on a device, and how: planned once, built once, then
// looked up.
#pragma once

#include "ops/ready_kernels.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::ops {

using ReadyFp8Gemm = ReadyKernel<Fp8GemmConfig>;

// Thread-safe. A hit costs one hash of integers under a shared lock; a miss plans, and compiles and loads
// what is missing.
ReadyFp8Gemm ready_fp8_gemm(int device, const plan::Fp8GemmShape& shape);

// For tuning: problems of exactly this shape run with `config` from now on, until plans are forgotten.
void pin_fp8_gemm(int device, const plan::Fp8GemmShape& shape, const Fp8GemmConfig& config);
void forget_fp8_gemm_plans();

}  // namespace deep_gemm::ops
