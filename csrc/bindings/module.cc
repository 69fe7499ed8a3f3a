// The extension module: registers every op family. Importing it touches no driver, no compiler and no
// framework.
#include <pybind11/pybind11.h>

#include "bindings/bindings.h"
#include "bindings/guard.h"
#include "support/blocking.h"

namespace {

// Lets other Python threads run while this one compiles or loads. A thread without the GIL has nothing to
// release.
void* release_gil() {
    return PyGILState_Check() ? PyEval_SaveThread() : nullptr;
}
void acquire_gil(void* token) {
    PyEval_RestoreThread(static_cast<PyThreadState*>(token));
}

}  // namespace

PYBIND11_MODULE(_C, m) {
    namespace bindings = deep_gemm::bindings;
    m.attr("version") = DG_VERSION;
    bindings::install_error_class(m);
    deep_gemm::set_blocking_hooks({release_gil, acquire_gil});
    bindings::register_tensor_exchange(m);
    bindings::register_operator_route(m);
    bindings::register_runtime(m);
    bindings::register_jit(m);
    bindings::register_plan(m);
    bindings::register_bf16_plan(m);
    bindings::register_bf16_gemm(m);
    bindings::register_einsum(m);
    bindings::register_fp8_gemm(m);
    bindings::register_grouped_bf16_gemm(m);
    bindings::register_grouped_fp8_gemm(m);
    bindings::register_skip_head_mid(m);
    bindings::register_validation(m);
    bindings::register_vendor_gemm(m);
    bindings::register_k_grouped_gemm(m);
}
