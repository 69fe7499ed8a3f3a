// One register function per op family; module.cc calls each.
#pragma once

#include <pybind11/pybind11.h>

namespace deep_gemm::bindings {

void register_plan(pybind11::module_& m);

}  // namespace deep_gemm::bindings
