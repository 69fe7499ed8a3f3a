#include "bindings/tensor_exchange.h"

#include <dlpack/dlpack.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bindings/bindings.h"
#include "support/describe.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

// What a Python type offers. All access is under the GIL.
struct TypeEntry {
    PyTypeObject* type = nullptr;  // a strong reference: the address cannot be reused by another type
    const DLPackExchangeAPI* api = nullptr;  // null: none, read by attributes
    PyObject* is_neg = nullptr;  // its method, a strong reference; null: a framework without lazy negation
};
constexpr int kTypeCacheSize = 8;
constinit std::array<TypeEntry, kTypeCacheSize> type_cache{};
constinit int next_victim = 0;
constinit bool attributes_only = false;  // a switch for tests

const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type) {
    PyObject* attribute =
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
    if (attribute == nullptr) {
        forget_error();
        return nullptr;
    }
    const py::object capsule = py::reinterpret_steal<py::object>(attribute);
    if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
    auto* header = static_cast<const DLPackExchangeAPIHeader*>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) header = header->prev_api;
    auto* api = reinterpret_cast<const DLPackExchangeAPI*>(header);
    return api != nullptr && api->dltensor_from_py_object_no_sync != nullptr ? api : nullptr;
}

PyObject* find_is_neg(PyTypeObject* type) {
    PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "is_neg");
    if (method == nullptr) forget_error();
    return method;
}

// What a type offers to one reading. Owned: code that runs meanwhile may make the cache forget the type.
struct Offer {
    const DLPackExchangeAPI* api = nullptr;
    py::object is_neg;
};

Offer offer_of(const TypeEntry& entry) {
    return {entry.api, py::reinterpret_borrow<py::object>(entry.is_neg)};
}

// Looking at a type runs code of its metaclass, and what the cache drops may run some, too: the type is owned before the one, and
// what is returned before the other.
Offer remember(PyTypeObject* type) {
    auto owned = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(type));
    const TypeEntry entry{type, find_exchange_api(type), find_is_neg(type)};
    owned.release();
    Offer offer = offer_of(entry);
    const TypeEntry old = std::exchange(type_cache[next_victim], entry);
    next_victim = (next_victim + 1) % kTypeCacheSize;
    Py_XDECREF(reinterpret_cast<PyObject*>(old.type));
    Py_XDECREF(old.is_neg);
    return offer;
}

Offer offer_of_type(PyTypeObject* type) {
    if (attributes_only) [[unlikely]]
        return {};
    for (const TypeEntry& entry : type_cache)
        if (entry.type == type) return offer_of(entry);
    return remember(type);
}

Dtype dtype_of(DLDataType dtype) {
    if (dtype.lanes != 1)
        return dtype.code == kDLFloat4_e2m1fn && dtype.lanes == 2 && dtype.bits == 4 ? Dtype::kF4E2M1x2
                                                                                     : Dtype::kOther;
    switch (dtype.code << 8 | dtype.bits) {
        case kDLFloat8_e4m3fn << 8 | 8:
            return Dtype::kF8E4M3;
        case kDLFloat8_e8m0fnu << 8 | 8:
            return Dtype::kF8E8M0;
        case kDLFloat8_e5m2 << 8 | 8:
            return Dtype::kF8E5M2;
        case kDLBfloat << 8 | 16:
            return Dtype::kBf16;
        case kDLFloat << 8 | 16:
            return Dtype::kF16;
        case kDLFloat << 8 | 32:
            return Dtype::kF32;
        case kDLFloat << 8 | 64:
            return Dtype::kF64;
        case kDLInt << 8 | 8:
            return Dtype::kI8;
        case kDLUInt << 8 | 8:
            return Dtype::kU8;
        case kDLBool << 8 | 8:
            return Dtype::kBool;
        case kDLInt << 8 | 16:
            return Dtype::kI16;
        case kDLInt << 8 | 32:
            return Dtype::kI32;
        case kDLInt << 8 | 64:
            return Dtype::kI64;
        default:
            return Dtype::kOther;
    }
}

Device device_of(DLDevice device) {
    switch (device.device_type) {
        case kDLCPU:
        case kDLCUDAHost:
            return {Device::Kind::kCpu, 0};
        case kDLCUDA:
            return {Device::Kind::kCuda, device.device_id};
        default:
            return {Device::Kind::kOther, device.device_id};
    }
}

TensorView view_of(const DLTensor& t, const char* name) {
    DG_CHECK(t.ndim <= kMaxRank, "{} has {} dimensions; no operation takes more than {}", name, t.ndim,
             kMaxRank);
    TensorView view;
    view.data = static_cast<char*>(t.data) + t.byte_offset;
    view.dtype = dtype_of(t.dtype);
    view.device = device_of(t.device);
    view.rank = t.ndim;
    std::copy_n(t.shape, t.ndim, view.shape.begin());
    if (t.strides != nullptr) {
        std::copy_n(t.strides, t.ndim, view.stride.begin());
    } else {  // packed, as DLPack said it before 1.2
        int64_t step = 1;
        for (int i = t.ndim - 1; i >= 0; step *= view.shape[i--]) view.stride[i] = step;
    }
    return view;
}

// What PyTorch's functions negate lazily is the imaginary part of a conjugated complex tensor, and no such view is seen as
// another dtype; of FP8 and BF16 only its private `_neg_view` makes one. Asking costs more than the rest of reading a tensor.
bool may_be_negated(Dtype dtype) {
    return dtype == Dtype::kF16 || dtype == Dtype::kF32 || dtype == Dtype::kF64;
}

// The exchange API shows a tensor with a pending negation as if it had none.
void refuse_negated(PyObject* object, const py::object& is_neg, const char* name) {
    PyObject* negated = PyObject_CallOneArg(is_neg.ptr(), object);
    if (negated == nullptr) return forget_error();
    const bool refused = negated == Py_True;
    Py_DECREF(negated);
    DG_CHECK(!refused, "{} is a lazily negated view (its negative bit is set); pass {}.resolve_neg()", name,
             name);
}

}  // namespace

TensorView read_tensor(PyObject* object, const char* name) {
    const Offer offer = offer_of_type(Py_TYPE(object));
    if (offer.api == nullptr) return read_by_attributes(object, name);
    DLTensor tensor;
    if (offer.api->dltensor_from_py_object_no_sync(object, &tensor) != 0) refuse_unreadable(object, name);
    const TensorView view = view_of(tensor, name);
    check_has_memory(view, object, name);
    if (may_be_negated(view.dtype) && offer.is_neg) refuse_negated(object, offer.is_neg, name);
    return view;
}

void* current_stream(PyObject* tensor, int device) {
    const DLPackExchangeAPI* api = offer_of_type(Py_TYPE(tensor)).api;
    if (api == nullptr) return stream_by_attributes(tensor, device);
    void* stream = nullptr;
    if (api->current_work_stream(kDLCUDA, device, &stream) != 0) throw py::error_already_set();
    return stream;
}

namespace {

// For tests: what read_tensor sees.
py::dict describe_tensor(const py::object& tensor) {
    const TensorView view = read_tensor(tensor.ptr(), "tensor");
    py::list shape, stride;
    for (int i = 0; i < view.rank; ++i) {
        shape.append(view.shape[i]);
        stride.append(view.stride[i]);
    }
    py::dict out;
    out["data"] = reinterpret_cast<uintptr_t>(view.data);
    out["dtype"] = std::string(dtype_name(view.dtype));
    out["device"] = device_text(view.device);
    out["shape"] = py::tuple(shape);
    out["stride"] = py::tuple(stride);
    if (view.device.kind == Device::Kind::kCuda)
        out["stream"] = reinterpret_cast<uintptr_t>(current_stream(tensor.ptr(), view.device.index));
    out["fast"] = offer_of_type(Py_TYPE(tensor.ptr())).api != nullptr;
    return out;
}

}  // namespace

void register_tensor_exchange(py::module_& m) {
    m.def("describe_tensor", &describe_tensor, py::arg("tensor"));
    m.def("read_tensors_by_attributes", [](bool on) { attributes_only = on; }, py::arg("on"));
}

}  // namespace deep_gemm::bindings
