// DG_VALIDATE=1: calls whose layouts and factors only the device knows are looked at before they run, by a function in Python.
#pragma once

#include <pybind11/pybind11.h>

#include "support/settings.h"

namespace deep_gemm::bindings {

// Calls the installed validator as validator(name, arguments); its exception is the call's.
void run_validator(const char* name, PyObject* const* args, Py_ssize_t count);

// Of a call to the function `name` of this module. Costs a load and a comparison while validation is off.
inline void validate(const char* name, PyObject* const* args, Py_ssize_t count) {
    if (settings().validate) [[unlikely]]
        run_validator(name, args, count);
}

}  // namespace deep_gemm::bindings
