// The checks of cublaslt_gemm_{nt,nn,tn,tt}, whose product the framework makes.
#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "contract/vendor_gemm.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

constexpr Py_ssize_t kNumArguments = 4;

// (a, b, d, c), all given.
template <Layout kLayout>
PyObject* check_vendor_gemm(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumArguments) throw py::type_error("expected 4 positional arguments");
        contract::Bf16GemmCall call;
        call.a = read_tensor(args[0], "a");
        call.b = read_tensor(args[1], "b");
        call.d = read_tensor(args[2], "d");
        if (args[3] == args[2])
            call.c = call.d;
        else if (args[3] != Py_None)
            call.c = read_tensor(args[3], "c");
        if constexpr (kLayout == Layout::kTn || kLayout == Layout::kTt) call.a = k_last(call.a, 2);
        if constexpr (kLayout == Layout::kNn || kLayout == Layout::kTn) call.b = k_last(call.b, 2);
        contract::check_vendor_gemm(call);
        return py::none().release().ptr();
    });
}

PyMethodDef method(const char* name, FastFunction function) {
    return fast_method(name, function, "(a, b, d, c), all positional");
}

}  // namespace

void register_vendor_gemm(py::module_& m) {
    static std::array<PyMethodDef, 5> methods = {method("check_cublaslt_gemm_nt", &check_vendor_gemm<Layout::kNt>),
                                                 method("check_cublaslt_gemm_nn", &check_vendor_gemm<Layout::kNn>),
                                                 method("check_cublaslt_gemm_tn", &check_vendor_gemm<Layout::kTn>),
                                                 method("check_cublaslt_gemm_tt", &check_vendor_gemm<Layout::kTt>), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
