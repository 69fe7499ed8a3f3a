#include "bindings/fp8_arguments.h"

#include <array>
#include <string>
#include <utility>

#include "bindings/tensor_exchange.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

// An FP8/FP4 operand: its values and its scales.
std::array<py::object, 2> unpack_pair(PyObject* pair, const char* name) {
    const py::object items = own_tuple(pair);
    DG_CHECK(items, "{} must be a pair (tensor, scales), got {}", name, Py_TYPE(pair)->tp_name);
    const Py_ssize_t size = PyTuple_GET_SIZE(items.ptr());
    DG_CHECK(size == 2, "{} must be a pair (tensor, scales), got {} items", name, size);
    const auto item = [&](Py_ssize_t i) { return py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(items.ptr(), i)); };
    return {item(0), item(1)};
}

std::string repr(PyObject* object) {
    return py::repr(py::reinterpret_borrow<py::object>(object));
}

// kCount positive integers from a tuple or list; false for None. Which granularities exist is the contract's
// to say.
template <std::size_t kCount>
bool read_recipe(PyObject* object, const char* name, std::array<int, kCount>& out) {
    if (object == Py_None) return false;
    const py::object items = own_tuple(object);
    bool readable = items && PyTuple_GET_SIZE(items.ptr()) == static_cast<Py_ssize_t>(kCount);
    for (std::size_t i = 0; readable && i < kCount; ++i) {
        int overflow = 0;
        const long value =
            PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)), &overflow);
        const bool failed = value == -1 && PyErr_Occurred() != nullptr;
        if (failed) forget_error();
        readable = !failed && overflow == 0 && value > 0 && static_cast<int>(value) == value;
        out[i] = static_cast<int>(value);
    }
    DG_CHECK(readable, "{} must be None or a tuple of {} positive integers, got {}", name, kCount,
             repr(object));
    return true;
}

}  // namespace

void check_compiled_dims(PyObject* dims) {
    DG_CHECK(PyUnicode_Check(dims), "compiled_dims must be a string of the letters m, n, k, got {}",
             Py_TYPE(dims)->tp_name);
    const Py_ssize_t size = PyUnicode_GET_LENGTH(dims);
    for (Py_ssize_t i = 0; i < size; ++i) {
        const Py_UCS4 letter = PyUnicode_READ_CHAR(dims, i);
        DG_CHECK(letter == 'm' || letter == 'n' || letter == 'k',
                 "compiled_dims may hold the letters m, n, k (or be empty), got {}", repr(dims));
    }
}

OwnedOperands read_operands(PyObject* const* args, ops::Fp8Operands& call) {
    auto [a, sfa] = unpack_pair(args[0], "a");
    auto [b, sfb] = unpack_pair(args[1], "b");
    call.a = read_tensor(a.ptr(), "a");
    call.sfa = read_tensor(sfa.ptr(), "sfa (scales of a)");
    call.b = read_tensor(b.ptr(), "b");
    call.sfb = read_tensor(sfb.ptr(), "sfb (scales of b)");
    call.d = read_tensor(args[2], "d");
    return {std::move(a), std::move(sfa), std::move(b), std::move(sfb)};
}

void read_recipes(PyObject* const* args, ops::Fp8Operands& call) {
    std::array<int, 3> whole{};
    std::array<int, 2> part{};
    if (read_recipe(args[0], "recipe", whole)) call.recipe = ops::Recipe{whole[0], whole[1], whole[2]};
    if (read_recipe(args[1], "recipe_a", part)) call.recipe_a = ops::RecipePart{part[0], part[1]};
    if (read_recipe(args[2], "recipe_b", part)) call.recipe_b = ops::RecipePart{part[0], part[1]};
}

void read_options(PyObject* const* args, ops::Fp8Operands& call) {
    check_compiled_dims(args[0]);
    call.disable_ue8m0_cast = read_flag(args[1]);
}

void read_layout_options(PyObject* const* args, contract::ContiguousLayout& layout) {
    layout.use_psum_layout = read_flag(args[0]);
    layout.ensure_zero_padding = read_flag(args[1]);
    if (args[2] != Py_None) layout.expected_m_for_psum_layout = read_integer(args[2], "expected_m_for_psum_layout");
    layout.alignment = read_integer(args[3], "alignment");
}

bool read_flag(PyObject* object) {
    const int value = PyObject_IsTrue(object);
    if (value < 0) throw py::error_already_set();
    return value == 1;
}

int64_t read_integer(PyObject* object, const char* name) {
    // What PyTorch and NumPy call an integer is one, a float is not.
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(object));
    int overflow = 0;
    const long long value = number ? PyLong_AsLongLongAndOverflow(number.ptr(), &overflow) : -1;
    if (PyErr_Occurred() != nullptr) forget_error();
    DG_CHECK(number && overflow == 0, "{} must be an integer, got {}", name, repr(object));
    return value;
}

HeadSplits read_head_splits(PyObject* object) {
    const py::object items = own_tuple(object);
    DG_CHECK(items && PyTuple_GET_SIZE(items.ptr()) == 3,
             "head_splits must be a tuple (left, mid, right) of integers, got {}",
             repr(object));
    const auto part = [&](Py_ssize_t i) { return read_integer(PyTuple_GET_ITEM(items.ptr(), i), "head_splits"); };
    return {part(0), part(1), part(2)};
}

void* stream_of(PyObject* tensor, const TensorView& view) {
    return view.device.kind == Device::Kind::kCuda ? current_stream(tensor, view.device.index) : nullptr;
}

}  // namespace deep_gemm::bindings
