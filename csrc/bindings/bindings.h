// One register function per op family; module.cc calls each.
#pragma once

#include <pybind11/pybind11.h>

namespace deep_gemm::bindings {


}  // namespace deep_gemm::bindings
