// Tensors of PyTorch 2.6...2.9, and look-alikes of other frameworks, read by their Python attributes.
#include <array>
#include <string>
#include <string_view>

#include "bindings/tensor_exchange.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

struct DtypeName {
    std::string_view name;
    Dtype dtype;
};
constexpr std::array kDtypeNames = {
    DtypeName{"float8_e4m3fn", Dtype::kF8E4M3},
    DtypeName{"float8_e8m0fnu", Dtype::kF8E8M0},
    DtypeName{"float4_e2m1fn_x2", Dtype::kF4E2M1x2},
    DtypeName{"bfloat16", Dtype::kBf16},
    DtypeName{"float16", Dtype::kF16},
    DtypeName{"float32", Dtype::kF32},
    DtypeName{"float64", Dtype::kF64},
    DtypeName{"float8_e5m2", Dtype::kF8E5M2},
    DtypeName{"bool", Dtype::kBool},
    DtypeName{"int16", Dtype::kI16},
    DtypeName{"int8", Dtype::kI8},
    DtypeName{"uint8", Dtype::kU8},
    DtypeName{"int32", Dtype::kI32},
    DtypeName{"int64", Dtype::kI64},
};

// Dtypes are singletons that live as long as their framework: an identity seen once need not be spelled out
// again.
struct DtypeEntry {
    PyObject* object = nullptr;
    Dtype dtype = Dtype::kOther;
};
constexpr int kDtypeCacheSize = 32;
constinit std::array<DtypeEntry, kDtypeCacheSize> dtype_cache{};
constinit int dtypes_seen = 0;

Dtype dtype_of(const py::object& dtype) {
    for (int i = 0; i < dtypes_seen; ++i)
        if (dtype_cache[i].object == dtype.ptr()) return dtype_cache[i].dtype;
    const std::string text = py::str(dtype);
    const std::string_view last = std::string_view(text).substr(text.rfind('.') + 1);
    Dtype found = Dtype::kOther;
    for (const DtypeName& entry : kDtypeNames)
        if (entry.name == last) found = entry.dtype;
    if (dtypes_seen < kDtypeCacheSize)
        dtype_cache[dtypes_seen++] = {py::object(dtype).release().ptr(), found};
    return found;
}

// Attribute names, made once.
struct Names {
    PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
    PyObject* dtype = PyUnicode_InternFromString("dtype");
    PyObject* shape = PyUnicode_InternFromString("shape");
    PyObject* stride = PyUnicode_InternFromString("stride");
    PyObject* is_neg = PyUnicode_InternFromString("is_neg");
    PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
    PyObject* is_cuda = PyUnicode_InternFromString("is_cuda");
    PyObject* get_device = PyUnicode_InternFromString("get_device");
};
const Names& names() {
    static const Names& instance = *new Names;
    return instance;
}

py::object checked(PyObject* result) {
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result);
}

// Null where there is no such attribute or method, or it fails: the caller has another way.
py::object optional(PyObject* result) {
    if (result == nullptr) forget_error();
    return py::reinterpret_steal<py::object>(result);
}

int64_t integer(PyObject* object) {
    if (!PyLong_Check(object)) return integer(checked(PyNumber_Long(object)).ptr());
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    return value;
}

// The integers of any sequence; returns how many there are, of which at most kMaxRank are stored.
int64_t integers(const py::object& object, std::array<int64_t, kMaxRank>& out) {
    py::object sequence = own_tuple(object.ptr());
    if (!sequence) sequence = checked(PySequence_Tuple(object.ptr()));
    const Py_ssize_t size = PyTuple_GET_SIZE(sequence.ptr());
    for (Py_ssize_t i = 0; i < size && i < kMaxRank; ++i) out[i] = integer(PyTuple_GET_ITEM(sequence.ptr(), i));
    return size;
}

uintptr_t address(PyObject* object) {
    const py::object whole = checked(PyNumber_Index(object));
    const unsigned long long value = PyLong_AsUnsignedLongLong(whole.ptr());
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return value;
}

int device_number(PyObject* object) {
    const int64_t number = integer(object);
    if (number < 0 || number > INT32_MAX) throw py::value_error(fmt::format("its device has index {}", number));
    return static_cast<int>(number);
}

// `device.type` and `device.index`, else the array API's __dlpack_device__() (1: CPU, 2: CUDA, 3: pinned
// CPU).
Device described_device(const py::object& tensor) {
    const py::object device = py::getattr(tensor, "device", py::none());
    if (py::hasattr(device, "type")) {
        const std::string type = py::str(device.attr("type"));
        const py::object index = py::getattr(device, "index", py::none());
        const int number = index.is_none() ? 0 : device_number(index.ptr());
        if (type == "cuda" || type == "gpu") return {Device::Kind::kCuda, number};
        return {type == "cpu" ? Device::Kind::kCpu : Device::Kind::kOther, type == "cpu" ? 0 : number};
    }
    const py::sequence pair = tensor.attr("__dlpack_device__")();
    const int64_t type = integer(py::object(pair[0]).ptr());
    if (type == 1 || type == 3) return {Device::Kind::kCpu, 0};
    return {type == 2 ? Device::Kind::kCuda : Device::Kind::kOther, device_number(py::object(pair[1]).ptr())};
}

// PyTorch's own queries make no device object.
Device device_of(const py::object& tensor) {
    if (optional(PyObject_GetAttr(tensor.ptr(), names().is_cuda)).ptr() == Py_True)
        if (const py::object index = optional(PyObject_CallMethodNoArgs(tensor.ptr(), names().get_device)))
            return {Device::Kind::kCuda, device_number(index.ptr())};
    if (optional(PyObject_GetAttr(tensor.ptr(), names().is_cpu)).ptr() == Py_True)
        return {Device::Kind::kCpu, 0};
    return described_device(tensor);
}

// stride() of PyTorch, `strides` (in elements) of look-alikes.
py::object strides_of(const py::object& tensor) {
    PyObject* method = PyObject_GetAttr(tensor.ptr(), names().stride);
    if (method == nullptr) {
        forget_error();
        return tensor.attr("strides");
    }
    return py::reinterpret_steal<py::object>(method)();
}

TensorView read(const py::object& tensor, const char* name) {
    TensorView view;
    const int64_t rank = integers(checked(PyObject_GetAttr(tensor.ptr(), names().shape)), view.shape);
    const int64_t num_strides = integers(strides_of(tensor), view.stride);
    DG_CHECK(rank <= kMaxRank, "{} has {} dimensions; no operation takes more than {}; reshape or slice it",
             name, rank, kMaxRank);
    DG_CHECK(num_strides == rank, "{} has {} dimensions but {} strides; give each its own", name, rank,
             num_strides);
    view.rank = static_cast<int>(rank);
    view.dtype = dtype_of(checked(PyObject_GetAttr(tensor.ptr(), names().dtype)));
    view.device = device_of(tensor);
    const py::object data = checked(PyObject_CallMethodNoArgs(tensor.ptr(), names().data_ptr));
    view.data = reinterpret_cast<void*>(address(data.ptr()));
    return view;
}

std::string first_line_of_pending_error() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (type == nullptr) return "no reason given";
    if (!PyErr_GivenExceptionMatches(type, PyExc_Exception)) {  // KeyboardInterrupt and the like go on
        PyErr_Restore(type, value, trace);
        throw py::error_already_set();
    }
    const py::object owned_type = py::reinterpret_steal<py::object>(type);
    const py::object owned_value = py::reinterpret_steal<py::object>(value);
    const py::object owned_trace = py::reinterpret_steal<py::object>(trace);
    const std::string text = owned_value ? std::string(py::str(owned_value)) : std::string();
    return text.substr(0, text.find('\n'));
}

void refuse_other_device(const py::object& tensor, const char* name) {
    const py::object device = py::getattr(tensor, "device", py::none());
    const std::string type = py::str(py::getattr(device, "type", py::str("cpu")));
    DG_CHECK(type == "cpu" || type == "cuda",
             "{} must be on a cpu or cuda device, got {}; move it with {}.to(device)", name,
             std::string(py::str(device)), name);
}

py::object attribute_of(const char* module, std::initializer_list<const char*> path) {
    PyObject* found = PyImport_GetModule(py::str(module).ptr());
    if (found == nullptr) return py::none();
    py::object object = py::reinterpret_steal<py::object>(found);
    for (const char* part : path) object = py::getattr(object, part, py::none());
    return object;
}

}  // namespace

TensorView read_by_attributes(PyObject* object, const char* name) {
    const auto tensor = py::reinterpret_borrow<py::object>(object);
    DG_CHECK(PyObject_HasAttr(object, names().data_ptr) && PyObject_HasAttr(object, names().dtype),
             "{} must be a tensor, got {}", name, Py_TYPE(object)->tp_name);
    TensorView view;
    try {
        view = read(tensor, name);
        DG_CHECK(optional(PyObject_CallMethodNoArgs(object, names().is_neg)).ptr() != Py_True,
                 "{} is a lazily negated view (its negative bit is set); pass {}.resolve_neg()", name, name);
    } catch (py::error_already_set& error) {
        error.restore();
        refuse_unreadable(object, name);
    } catch (const py::builtin_exception& error) {  // a value that pybind11 could not convert
        error.set_error();
        refuse_unreadable(object, name);
    }
    check_has_memory(view, object, name);
    return view;
}

void* stream_by_attributes(PyObject* tensor, int device) {
    const std::string module =
        py::str(py::getattr(reinterpret_cast<PyObject*>(Py_TYPE(tensor)), "__module__", py::str("torch")));
    const std::string framework = module.substr(0, module.find('.'));
    py::object query = attribute_of(framework.c_str(), {"cuda", "current_stream"});
    if (query.is_none()) query = attribute_of(framework.c_str(), {"device", "cuda", "current_stream"});
    if (query.is_none()) query = py::module_::import("torch").attr("cuda").attr("current_stream");
    return reinterpret_cast<void*>(py::cast<uintptr_t>(query(device).attr("cuda_stream")));
}

void forget_error() {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
    PyErr_Clear();
}

py::object own_tuple(PyObject* object) {
    PyObject* items = nullptr;
    if (PyTuple_Check(object))
        items = PyTuple_GetSlice(object, 0, PyTuple_GET_SIZE(object));
    else if (PyList_Check(object))
        items = PyList_AsTuple(object);
    else
        return {};
    if (items == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(items);
}

void check_has_memory(const TensorView& view, PyObject* object, const char* name) {
    if (view.data != nullptr || view.numel() == 0) [[likely]]
        return;
    refuse_other_device(py::reinterpret_borrow<py::object>(object), name);
    throw_error(
        fmt::format("{} has no memory ({}): its storage was freed, or it is a fake tensor or a wrapper "
                    "subclass; allocate it, or "
                    "call the registered torch op for those",
                    name, Py_TYPE(object)->tp_name));
}

void refuse_unreadable(PyObject* object, const char* name) {
    const std::string reason = first_line_of_pending_error();
    const auto tensor = py::reinterpret_borrow<py::object>(object);
    if (py::hasattr(tensor, "layout")) {
        const std::string layout = py::str(tensor.attr("layout"));
        DG_CHECK(layout.find("strided") != std::string::npos,
                 "{} must be a dense tensor with strides, got layout {}; pass {}.to_dense()", name, layout,
                 name);
    }
    refuse_other_device(tensor, name);
    throw_error(fmt::format(
        "{} cannot be read as a tensor: {}; pass a dense tensor on the CPU or a CUDA device", name, reason));
}

}  // namespace deep_gemm::bindings
