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

HeadSplits read_head_splits(PyObject* object) {
    const py::object items = own_tuple(object);
    DG_CHECK(items && PyTuple_GET_SIZE(items.ptr()) == 3,
             "head_splits must be a tuple (left, mid, right) of integers, got {}",
             std::string(py::repr(py::reinterpret_borrow<py::object>(object))));
    const auto part = [&](Py_ssize_t i) { return read_integer(PyTuple_GET_ITEM(items.ptr(), i), "head_splits"); };
    return {part(0), part(1), part(2)};
}

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
