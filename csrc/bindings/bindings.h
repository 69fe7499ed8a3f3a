// One register function per op family; module.cc calls each.
#pragma once

#include <pybind11/pybind11.h>

namespace deep_gemm::bindings {

void register_bf16_gemm(pybind11::module_& m);
void register_bf16_plan(pybind11::module_& m);
void register_einsum(pybind11::module_& m);
void register_fp8_gemm(pybind11::module_& m);
void register_grouped_bf16_gemm(pybind11::module_& m);
void register_grouped_fp8_gemm(pybind11::module_& m);
void register_k_grouped_gemm(pybind11::module_& m);
void register_jit(pybind11::module_& m);
void register_operator_route(pybind11::module_& m);
void register_plan(pybind11::module_& m);
void register_runtime(pybind11::module_& m);
void register_skip_head_mid(pybind11::module_& m);
void register_tensor_exchange(pybind11::module_& m);
void register_validation(pybind11::module_& m);
void register_vendor_gemm(pybind11::module_& m);

}  // namespace deep_gemm::bindings
