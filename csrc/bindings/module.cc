#include <pybind11/pybind11.h>

#include "bindings/bindings.h"
#include "support/error.h"

PYBIND11_MODULE(_C, m) {
    m.attr("version") = DG_VERSION;
    pybind11::register_exception<deep_gemm::Error>(m, "DeepGemmError", PyExc_RuntimeError);
    deep_gemm::bindings::register_jit(m);
}
