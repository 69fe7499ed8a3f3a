// The process-wide knobs that users turn between calls. Setters refuse bad values; none changes a result's
// bits.
#pragma once

namespace deep_gemm::ops {

// SMs that GEMMs may occupy; 0 means all of the device's. `device` is the one whose total bounds `count`.
void set_num_sms(int count, int device);
int num_sms(int device);

// Tensor-core throttle in percent, 0...100; 0 reads back as 100. A hint.
void set_tc_util(int percent);
int tc_util();

// Whether a kernel's prologue may run under the previous kernel's tail (programmatic dependent launch).
void set_pdl(bool enabled);
bool pdl();

// Compile-only mode: kernels are planned, built and loaded, and not launched.
void set_compile_only(bool enabled);
bool compile_only();

}  // namespace deep_gemm::ops
