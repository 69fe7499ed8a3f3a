// einsum and fp8_einsum as Python calls them.
#include "ops/einsum.h"

#include <array>
#include <string>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

std::string read_expression(PyObject* object) {
    DG_CHECK(PyUnicode_Check(object), "expr must be a string such as 'bhr,hdr->bhd', got {}", Py_TYPE(object)->tp_name);
    return py::cast<std::string>(py::reinterpret_borrow<py::object>(object));
}

// C, which may be D itself.
template <typename Call>
void read_c(PyObject* d, PyObject* c, Call& call) {
    if (c == d)
        call.c = call.d;
    else if (c != Py_None)
        call.c = read_tensor(c, "c");
}

// (expr, a, b, d, c), all given.
ops::EinsumCall read_einsum(PyObject* const* args, Py_ssize_t count) {
    if (count != 5) throw py::type_error("expected 5 positional arguments");
    ops::EinsumCall call;
    call.expression = read_expression(args[0]);
    call.a = read_tensor(args[1], "a");
    call.b = read_tensor(args[2], "b");
    call.d = read_tensor(args[3], "d");
    read_c(args[3], args[4], call);
    call.stream = stream_of(args[3], call.d);
    return call;
}

PyObject* einsum(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        ops::einsum(read_einsum(args, count));
        return py::none().release().ptr();
    });
}

PyObject* check_vendor_einsum(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        contract::check_vendor_einsum(read_einsum(args, count));
        return py::none().release().ptr();
    });
}

// (expr, a, b, d, c, recipe), all given.
PyObject* fp8_einsum(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != 6) throw py::type_error("expected 6 positional arguments");
        ops::Fp8EinsumCall call;
        call.expression = read_expression(args[0]);
        const OwnedOperands owned = read_operands(args + 1, call);
        read_c(args[3], args[4], call);
        const std::array recipes{args[5], Py_None, Py_None};
        read_recipes(recipes.data(), call);
        call.stream = stream_of(args[3], call.d);
        ops::fp8_einsum(call);
        return py::none().release().ptr();
    });
}

}  // namespace

void register_einsum(py::module_& m) {
    static std::array<PyMethodDef, 4> methods = {
        fast_method("einsum", &einsum, "(expr, a, b, d, c), all positional"),
        fast_method("check_vendor_einsum", &check_vendor_einsum, "(expr, a, b, d, c), all positional"),
        fast_method("fp8_einsum", &fp8_einsum, "(expr, a, b, d, c, recipe), all positional"), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
