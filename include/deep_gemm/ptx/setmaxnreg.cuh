// Register budgets of warpgroups.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm::ptx {

// PTX ISA: setmaxnreg. PTX 8.0, sm_90a. Every warp of a warpgroup executes the same one; a multiple of 8 in 24..256.
template <int kRegisters>
DG_DEVICE void raise_register_limit() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
DG_DEVICE void lower_register_limit() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace deep_gemm::ptx
