// Which calls must go through the framework's operators, because what they hold is not plain memory. Asked
// at every call, so in C++: the same in Python costs as much as planning.
#include <array>

#include "bindings/bindings.h"
#include "bindings/guard.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

// The framework's tensors, as it told at import. Kept for the life of the process.
struct Framework {
    PyObject* tensor = nullptr;         // the class of all tensors
    PyObject* parameter = nullptr;      // the one subclass whose memory is its own
    PyObject* count_modes = nullptr;    // how many dispatch modes are active, as a function
};
constinit Framework framework{};

py::object checked(PyObject* result) {
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result);
}

bool any_dispatch_mode() {
    if (framework.count_modes == nullptr) return false;
    const int some = PyObject_IsTrue(checked(PyObject_CallNoArgs(framework.count_modes)).ptr());
    if (some < 0) throw py::error_already_set();
    return some == 1;
}

// Of a tensor subclass. What is no tensor of the framework is not its business.
bool has_own_dispatch(PyObject* object) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    if (type == framework.tensor || type == framework.parameter || object == Py_None) [[likely]]
        return false;
    if (framework.tensor == nullptr) return false;
    const int is_tensor = PyObject_IsInstance(object, framework.tensor);
    if (is_tensor < 0) throw py::error_already_set();
    return is_tensor == 1;
}

// An operand: a tensor, or a pair of them. Items are owned while asked: that may run Python code, which may
// empty the list.
bool operand_has_own_dispatch(PyObject* operand) {
    const bool is_tuple = PyTuple_Check(operand);
    if (!is_tuple && !PyList_Check(operand)) return has_own_dispatch(operand);
    for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(operand) : PyList_GET_SIZE(operand)); ++i) {
        const auto item = py::reinterpret_borrow<py::object>(is_tuple ? PyTuple_GET_ITEM(operand, i)
                                                                      : PyList_GET_ITEM(operand, i));
        if (has_own_dispatch(item.ptr())) return true;
    }
    return false;
}

PyObject* needs_op(PyObject*, PyObject* const* operands, Py_ssize_t count) noexcept {
    return guarded([&] {
        bool needed = any_dispatch_mode();
        for (Py_ssize_t i = 0; i < count && !needed; ++i) needed = operand_has_own_dispatch(operands[i]);
        return PyBool_FromLong(needed);
    });
}

constexpr const char* kNeedsOp =
    "needs_op(*operands): whether a call on these tensors and pairs of tensors must go through the operator: a "
    "dispatch mode is active, or one of them is of a tensor subclass. False for what is no tensor: the call itself "
    "refuses it by name, and look-alikes of other frameworks pass.";

}  // namespace

void register_operator_route(py::module_& m) {
    m.def(
        "set_framework",
        [](py::object tensor, py::object parameter, py::object count_modes) {
            framework = {tensor.release().ptr(), parameter.release().ptr(), count_modes.release().ptr()};
        },
        py::arg("tensor"), py::arg("parameter"), py::arg("count_modes"),
        "The classes whose tensors are plain memory, the first of them the base of all tensors, and a function that "
        "counts the active dispatch modes.");
    static std::array<PyMethodDef, 2> methods = {fast_method("needs_op", &needs_op, kNeedsOp), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
