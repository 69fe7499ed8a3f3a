#include "bindings/guard.h"

#include <new>
#include <stdexcept>
#include <string>

#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

// Kept for the life of the process: errors may be raised while the interpreter shuts down.
PyObject* error_class = PyExc_RuntimeError;

void translate(std::exception_ptr pending) {
    try {
        if (pending) std::rethrow_exception(pending);
    } catch (const Error& error) {
        PyErr_SetString(error_class, error.what());
    }
}

}  // namespace

void install_error_class(py::module_& m) {
    const std::string name = py::cast<std::string>(m.attr("__name__"));
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos) {
        py::object found =
            py::module_::import((name.substr(0, dot) + ".errors").c_str()).attr("DeepGemmError");
        if (!PyType_Check(found.ptr()) || PyObject_IsSubclass(found.ptr(), PyExc_RuntimeError) != 1)
            throw py::type_error("DeepGemmError must be a subclass of RuntimeError");
        error_class = found.release().ptr();
    }
    // Local to this module: a second copy of the library under another name has its own class.
    py::register_local_exception_translator(translate);
}

void raise_current_exception() noexcept {
    try {
        throw;
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (const Error& error) {
        PyErr_SetString(error_class, error.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const py::builtin_exception& error) {
        error.set_error();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
    }
}

}  // namespace deep_gemm::bindings
