// From a Python tensor to a TensorView and its stream. PyTorch >= 2.10 answers through the DLPack C exchange
// API of the tensor's type (no Python call); anything else that looks like a tensor is read by its
// attributes.
#pragma once

#include <pybind11/pybind11.h>

#include "support/tensor_view.h"

namespace deep_gemm::bindings {

// The view of `object`, valid while the caller holds it. `name` is the argument's, for the message of a
// refusal: not a tensor, not strided, negative or conjugate bit set, without memory (fake, meta), more than
// kMaxRank dimensions.
TensorView read_tensor(PyObject* object, const char* name);

// The stream that the framework of `tensor` uses now on CUDA device `device` (a CUstream).
void* current_stream(PyObject* tensor, int device);

// The reader for types without the exchange API: data_ptr(), dtype, shape, stride(), device.
TensorView read_by_attributes(PyObject* object, const char* name);
void* stream_by_attributes(PyObject* tensor, int device);

// Refusals shared by both readers. The first takes its reason from the pending Python error.
[[noreturn]] void refuse_unreadable(PyObject* object, const char* name);
void check_has_memory(const TensorView& view, PyObject* object, const char* name);

// Drops the pending Python error of an attempt that has an alternative; an interrupt or exit goes on.
void forget_error();

// The items of a list or tuple as a tuple of our own; null for anything else. Reading an integer may run its class's code, and that
// may empty a list. What subclasses say of length and items is not asked: no code runs.
pybind11::object own_tuple(PyObject* object);

}  // namespace deep_gemm::bindings
