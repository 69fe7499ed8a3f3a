// Programmatic dependent launch. Both are no-ops when the launch did not ask for it.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm::ptx {

// PTX ISA: griddepcontrol.wait. PTX 7.8, sm_90. Returns when the primary grids have completed and their writes are visible.
DG_DEVICE void wait_for_primary_grid() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// PTX ISA: griddepcontrol.launch_dependents. PTX 7.8, sm_90. Lets the dependent grid be scheduled; promises nothing about data.
DG_DEVICE void launch_dependent_grid() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace deep_gemm::ptx
