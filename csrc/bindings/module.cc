#include <pybind11/pybind11.h>

#include "bindings/bindings.h"

PYBIND11_MODULE(_C, m) {
    m.attr("version") = DG_VERSION;
    deep_gemm::bindings::register_plan(m);
}
