// Which loaded kernel runs an FP8 GEMM of some extents on a device, and how: planned once, built once, then
// looked up.
#pragma once

#include "launch/launch.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::ops {

// Everything a launch needs that does not depend on an address.
struct ReadyFp8Gemm {
    Fp8GemmConfig config{};
    RasterArgs raster{};
    launch::LaunchShape shape;               // PDL not yet set
    const launch::Kernel* kernel = nullptr;  // lives as long as the process
};

// Thread-safe. A hit costs one hash of integers under a shared lock; a miss plans, and compiles and loads
// what is missing.
ReadyFp8Gemm ready_fp8_gemm(int device, const plan::Fp8GemmShape& shape);

// For tuning: problems of exactly this shape run with `config` from now on, until plans are forgotten.
void pin_fp8_gemm(int device, const plan::Fp8GemmShape& shape, const Fp8GemmConfig& config);
void forget_fp8_gemm_plans();

}  // namespace deep_gemm::ops
