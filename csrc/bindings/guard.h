// From C++ exceptions to Python ones, for functions that skip pybind11's dispatcher.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace deep_gemm::bindings {

// Makes `Error` reach Python as the class DeepGemmError of the module `errors` beside this extension
// (whatever its package is called), also for functions that pybind11 dispatches.
void install_error_class(pybind11::module_& m);

// Sets the Python error for the C++ exception in flight. Call inside a catch block.
void raise_current_exception() noexcept;

// Runs `body`, which returns a new reference; on an exception sets the Python error and returns null.
template <typename Body>
PyObject* guarded(Body&& body) noexcept {
    try {
        return std::forward<Body>(body)();
    } catch (...) {
        raise_current_exception();
        return nullptr;
    }
}

// A function of positional arguments, entered in a module's table without pybind11's dispatcher. `arguments`
// is its documentation.
using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t) noexcept;
inline PyMethodDef fast_method(const char* name, FastFunction function, const char* arguments) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL,
            arguments};
}

}  // namespace deep_gemm::bindings
