// fp8_gemm_{nt,nn,tn,tt} as Python calls them. Plain C-API functions: pybind11's dispatcher costs more than
// reading all six tensors.
#include <array>
#include <string>

#include "bindings/bindings.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "ops/fp8_gemm.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

enum class Layout { kNt, kNn, kTn, kTt };

// An FP8/FP4 operand: its values and its scales. Owned: reading a tensor may run Python code, and that may
// empty the list that came.
struct OperandPair {
    py::object values;
    py::object scales;
};

OperandPair unpack_pair(PyObject* pair, const char* name) {
    const bool is_tuple = PyTuple_Check(pair);
    DG_CHECK(is_tuple || PyList_Check(pair), "{} must be a pair (tensor, scales), got {}", name,
             Py_TYPE(pair)->tp_name);
    const Py_ssize_t size = is_tuple ? PyTuple_GET_SIZE(pair) : PyList_GET_SIZE(pair);
    DG_CHECK(size == 2, "{} must be a pair (tensor, scales), got {} items", name, size);
    const auto item = [&](Py_ssize_t i) {
        return py::reinterpret_borrow<py::object>(is_tuple ? PyTuple_GET_ITEM(pair, i)
                                                           : PyList_GET_ITEM(pair, i));
    };
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
    const bool is_tuple = PyTuple_Check(object);
    bool readable =
        (is_tuple || PyList_Check(object)) && PySequence_Size(object) == static_cast<Py_ssize_t>(kCount);
    for (std::size_t i = 0; readable && i < kCount; ++i) {
        int overflow = 0;
        const long value = PyLong_AsLongAndOverflow(
            is_tuple ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i), &overflow);
        const bool failed = value == -1 && PyErr_Occurred() != nullptr;
        if (failed) PyErr_Clear();
        readable = !failed && overflow == 0 && value > 0 && static_cast<int>(value) == value;
        out[i] = static_cast<int>(value);
    }
    DG_CHECK(readable, "{} must be None or a tuple of {} positive integers, got {}", name, kCount,
             repr(object));
    return true;
}

void read_recipes(PyObject* const* args, ops::Fp8GemmCall& call) {
    std::array<int, 3> whole{};
    std::array<int, 2> part{};
    if (read_recipe(args[0], "recipe", whole)) call.recipe = ops::Recipe{whole[0], whole[1], whole[2]};
    if (read_recipe(args[1], "recipe_a", part)) call.recipe_a = ops::RecipePart{part[0], part[1]};
    if (read_recipe(args[2], "recipe_b", part)) call.recipe_b = ops::RecipePart{part[0], part[1]};
}

// Accepted and without effect: extents are never compile-time constants here.
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

// The operand as `nt` sees it. Other ranks stay as they came: the contract refuses them by their own shape.
TensorView k_last(const TensorView& view) {
    return view.rank == 2 ? view.transposed(0, 1) : view;
}

template <Layout kLayout>
void apply_layout(ops::Fp8GemmCall& call) {
    if constexpr (kLayout == Layout::kTn || kLayout == Layout::kTt) {
        call.a = k_last(call.a);
        call.sfa = k_last(call.sfa);
    }
    if constexpr (kLayout == Layout::kNn || kLayout == Layout::kTn) {
        call.b = k_last(call.b);
        call.sfb = k_last(call.sfb);
    }
}

constexpr Py_ssize_t kNumArguments = 9;

// (a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast), all given.
template <Layout kLayout>
ops::Fp8GemmCall read_call(PyObject* const* args, Py_ssize_t count) {
    if (count != kNumArguments) throw py::type_error("expected 9 positional arguments");
    const OperandPair a = unpack_pair(args[0], "a");
    const OperandPair b = unpack_pair(args[1], "b");
    PyObject *const d = args[2], *const c = args[3];
    ops::Fp8GemmCall call;
    call.a = read_tensor(a.values.ptr(), "a");
    call.sfa = read_tensor(a.scales.ptr(), "sfa (scales of a)");
    call.b = read_tensor(b.values.ptr(), "b");
    call.sfb = read_tensor(b.scales.ptr(), "sfb (scales of b)");
    call.d = read_tensor(d, "d");
    if (c == d)
        call.c = call.d;
    else if (c != Py_None)
        call.c = read_tensor(c, "c");
    read_recipes(args + 4, call);
    check_compiled_dims(args[7]);
    const int disable_cast = PyObject_IsTrue(args[8]);
    if (disable_cast < 0) throw py::error_already_set();
    call.disable_ue8m0_cast = disable_cast == 1;
    apply_layout<kLayout>(call);
    if (call.d.device.kind == Device::Kind::kCuda) call.stream = current_stream(d, call.d.device.index);
    return call;
}

template <Layout kLayout>
PyObject* fp8_gemm(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        ops::fp8_gemm(read_call<kLayout>(args, count));
        return py::none().release().ptr();
    });
}

// What fp8_gemm_nt does before the contract, and nothing more: to measure it.
PyObject* read_fp8_gemm_call(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        read_call<Layout::kNt>(args, count);
        return py::none().release().ptr();
    });
}

PyMethodDef method(const char* name,
                   PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t) noexcept) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL,
            "(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast), all positional"};
}

}  // namespace

void register_fp8_gemm(py::module_& m) {
    static std::array<PyMethodDef, 6> methods = {
        method("fp8_gemm_nt", &fp8_gemm<Layout::kNt>),     method("fp8_gemm_nn", &fp8_gemm<Layout::kNn>),
        method("fp8_gemm_tn", &fp8_gemm<Layout::kTn>),     method("fp8_gemm_tt", &fp8_gemm<Layout::kTt>),
        method("read_fp8_gemm_call", &read_fp8_gemm_call), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
