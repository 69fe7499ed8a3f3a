// fp8_gemm_nt_skip_head_mid as Python calls it.
#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "ops/fp8_gemm.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

constexpr Py_ssize_t kNumArguments = 7;

// (a, b, d, head_splits, recipe, compiled_dims, disable_ue8m0_cast), all given.
PyObject* fp8_gemm_nt_skip_head_mid(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumArguments) throw py::type_error("expected 7 positional arguments");
        ops::SkipHeadMidCall call;
        const OwnedOperands owned = read_operands(args, call);
        call.head_splits = read_head_splits(args[3]);
        const std::array recipes{args[4], Py_None, Py_None};
        read_recipes(recipes.data(), call);
        read_options(args + 5, call);
        call.stream = stream_of(args[2], call.d);
        ops::fp8_gemm_skip_head_mid(call);
        return py::none().release().ptr();
    });
}

}  // namespace

void register_skip_head_mid(py::module_& m) {
    static std::array<PyMethodDef, 2> methods = {
        fast_method("fp8_gemm_nt_skip_head_mid", &fp8_gemm_nt_skip_head_mid,
                    "(a, b, d, head_splits, recipe, compiled_dims, disable_ue8m0_cast), all positional"),
        PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
