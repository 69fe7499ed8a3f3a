#include "bindings/validation.h"

#include "bindings/bindings.h"

namespace py = pybind11;

namespace deep_gemm::bindings {

namespace {

PyObject* validator = nullptr;  // kept for the life of the process

}  // namespace

void run_validator(const char* name, PyObject* const* args, Py_ssize_t count) {
    if (validator == nullptr) return;
    py::tuple arguments(count);
    for (Py_ssize_t i = 0; i < count; ++i) arguments[i] = py::reinterpret_borrow<py::object>(args[i]);
    py::reinterpret_borrow<py::object>(validator)(name, arguments);
}

void register_validation(py::module_& m) {
    m.def(
        "set_validator", [](py::object function) { validator = function.release().ptr(); }, py::arg("function"),
        "Under DG_VALIDATE=1, function(name, arguments) is called before the grouped function `name` runs, and may refuse.");
}

}  // namespace deep_gemm::bindings
