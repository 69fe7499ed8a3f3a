// Idle time.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm::ptx {

// PTX ISA: nanosleep. PTX 6.3, sm_70. Suspends the thread for about so many nanoseconds, from none to twice as many; a million at most.
DG_DEVICE void nanosleep(uint32_t nanoseconds) { asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds) : "memory"); }

}  // namespace deep_gemm::ptx
