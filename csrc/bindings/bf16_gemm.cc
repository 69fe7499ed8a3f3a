// bf16_gemm_{nt,nn,tn,tt} as Python calls them: plain C-API functions, as for FP8.
#include "ops/bf16_gemm.h"

#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

constexpr Py_ssize_t kNumArguments = 5;

// (a, b, d, c, compiled_dims), all given.
template <Layout kLayout>
PyObject* bf16_gemm(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumArguments) throw py::type_error("expected 5 positional arguments");
        PyObject *const d = args[2], *const c = args[3];
        ops::Bf16GemmCall call;
        call.a = read_tensor(args[0], "a");
        call.b = read_tensor(args[1], "b");
        call.d = read_tensor(d, "d");
        if (c == d)
            call.c = call.d;
        else if (c != Py_None)
            call.c = read_tensor(c, "c");
        check_compiled_dims(args[4]);
        if constexpr (kLayout == Layout::kTn || kLayout == Layout::kTt) call.a = k_last(call.a, 2);
        if constexpr (kLayout == Layout::kNn || kLayout == Layout::kTn) call.b = k_last(call.b, 2);
        call.stream = stream_of(d, call.d);
        ops::bf16_gemm(call);
        return py::none().release().ptr();
    });
}

PyMethodDef method(const char* name, FastFunction function) {
    return fast_method(name, function, "(a, b, d, c, compiled_dims), all positional");
}

}  // namespace

void register_bf16_gemm(py::module_& m) {
    static std::array<PyMethodDef, 5> methods = {
        method("bf16_gemm_nt", &bf16_gemm<Layout::kNt>), method("bf16_gemm_nn", &bf16_gemm<Layout::kNn>),
        method("bf16_gemm_tn", &bf16_gemm<Layout::kTn>), method("bf16_gemm_tt", &bf16_gemm<Layout::kTt>), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
