// fp8_gemm_{nt,nn,tn,tt} as Python calls them. Plain C-API functions: pybind11's dispatcher costs more than
// reading all six tensors.
#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "ops/fp8_gemm.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

template <Layout kLayout>
void apply_layout(ops::Fp8GemmCall& call) {
    if constexpr (kLayout == Layout::kTn || kLayout == Layout::kTt) {
        call.a = k_last(call.a, 2);
        call.sfa = k_last(call.sfa, 2);
    }
    if constexpr (kLayout == Layout::kNn || kLayout == Layout::kTn) {
        call.b = k_last(call.b, 2);
        call.sfb = k_last(call.sfb, 2);
    }
}

constexpr Py_ssize_t kNumArguments = 9;

// (a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast), all given.
template <Layout kLayout>
OwningCall<ops::Fp8GemmCall> read_call(PyObject* const* args, Py_ssize_t count) {
    if (count != kNumArguments) throw py::type_error("expected 9 positional arguments");
    PyObject *const d = args[2], *const c = args[3];
    OwningCall<ops::Fp8GemmCall> call;
    call.owned = read_operands(args, call);
    if (c == d)
        call.c = call.d;
    else if (c != Py_None)
        call.c = read_tensor(c, "c");
    read_recipes(args + 4, call);
    read_options(args + 7, call);
    apply_layout<kLayout>(call);
    call.stream = stream_of(d, call.d);
    return call;
}

template <Layout kLayout>
PyObject* fp8_gemm(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        ops::fp8_gemm(read_call<kLayout>(args, count));
        return py::none().release().ptr();
    });
}

// What fp8_gemm_nt does before the contract, and nothing more: to measure it.
PyObject* read_fp8_gemm_call(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        read_call<Layout::kNt>(args, count);
        return py::none().release().ptr();
    });
}

constexpr const char* kArguments =
    "(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast), all positional";

PyMethodDef method(const char* name, FastFunction function) {
    return fast_method(name, function, kArguments);
}

}  // namespace

void register_fp8_gemm(py::module_& m) {
    static std::array<PyMethodDef, 6> methods = {
        method("fp8_gemm_nt", &fp8_gemm<Layout::kNt>),     method("fp8_gemm_nn", &fp8_gemm<Layout::kNn>),
        method("fp8_gemm_tn", &fp8_gemm<Layout::kTn>),     method("fp8_gemm_tt", &fp8_gemm<Layout::kTt>),
        method("read_fp8_gemm_call", &read_fp8_gemm_call), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
