// fp8_gemm_{nt,nn,tn,tt} as Python calls them. Plain C-API functions: pybind11's dispatcher costs more than reading
// all six tensors.
#include <array>

#include "bindings/bindings.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "ops/fp8_gemm.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

enum class Layout { kNt, kNn, kTn, kTt };

// An FP8/FP4 operand: its values and its scales, borrowed from the tuple or list that came.
struct OperandPair {
    PyObject* values;
    PyObject* scales;
};

OperandPair unpack_pair(PyObject* pair, const char* name) {
    const bool is_tuple = PyTuple_Check(pair);
    DG_CHECK(is_tuple || PyList_Check(pair), "{} must be a pair (tensor, scales), got {}", name, Py_TYPE(pair)->tp_name);
    const Py_ssize_t size = is_tuple ? PyTuple_GET_SIZE(pair) : PyList_GET_SIZE(pair);
    DG_CHECK(size == 2, "{} must be a pair (tensor, scales), got {} items", name, size);
    if (is_tuple) return {PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)};
    return {PyList_GET_ITEM(pair, 0), PyList_GET_ITEM(pair, 1)};
}

// `count` small positive integers from a sequence; false for None.
template <std::size_t kCount>
bool read_recipe(PyObject* object, const char* name, std::array<int, kCount>& out) {
    if (object == Py_None) return false;
    const bool is_sequence = PyTuple_Check(object) || PyList_Check(object);
    DG_CHECK(is_sequence && PySequence_Size(object) == static_cast<Py_ssize_t>(kCount),
             "{} must be None or {} integers, got {}", name, kCount,
             std::string(py::repr(py::reinterpret_borrow<py::object>(object))));
    for (std::size_t i = 0; i < kCount; ++i) {
        PyObject* item = PyTuple_Check(object) ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i);
        const long value = PyLong_AsLong(item);
        if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
        DG_CHECK(value > 0 && value <= 1 << 20, "{} must hold positive granularities, got {} at position {}", name, value, i);
        out[i] = static_cast<int>(value);
    }
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
    DG_CHECK(PyUnicode_Check(dims), "compiled_dims must be a string of the letters m, n, k, got {}", Py_TYPE(dims)->tp_name);
    const Py_ssize_t size = PyUnicode_GET_LENGTH(dims);
    for (Py_ssize_t i = 0; i < size; ++i) {
        const Py_UCS4 letter = PyUnicode_READ_CHAR(dims, i);
        DG_CHECK(letter == 'm' || letter == 'n' || letter == 'k',
                 "compiled_dims may hold the letters m, n, k (or be empty), got '{}'",
                 std::string(py::str(py::reinterpret_borrow<py::object>(dims))));
    }
}

// The operand as `nt` sees it. Other ranks stay as they came: the contract refuses them by their own shape.
TensorView k_last(const TensorView& view) { return view.rank == 2 ? view.transposed(0, 1) : view; }

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
PyObject* fp8_gemm(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&]() -> PyObject* {
        if (count != kNumArguments) throw py::type_error("fp8_gemm takes 9 positional arguments");
        const OperandPair a = unpack_pair(args[0], "a");
        const OperandPair b = unpack_pair(args[1], "b");
        ops::Fp8GemmCall call;
        call.a = read_tensor(a.values, "a[0]");
        call.sfa = read_tensor(a.scales, "a[1]");
        call.b = read_tensor(b.values, "b[0]");
        call.sfb = read_tensor(b.scales, "b[1]");
        call.d = read_tensor(args[2], "d");
        if (args[3] == args[2]) call.c = call.d;
        else if (args[3] != Py_None) call.c = read_tensor(args[3], "c");
        read_recipes(args + 4, call);
        check_compiled_dims(args[7]);
        const int disable_cast = PyObject_IsTrue(args[8]);
        if (disable_cast < 0) throw py::error_already_set();
        call.disable_ue8m0_cast = disable_cast == 1;
        apply_layout<kLayout>(call);
        if (call.d.device.kind == Device::Kind::kCuda) call.stream = current_stream(args[2], call.d.device.index);
        ops::fp8_gemm(call);
        Py_RETURN_NONE;
    });
}

template <Layout kLayout>
PyMethodDef method(const char* name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&fp8_gemm<kLayout>)), METH_FASTCALL,
            "(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast), all positional"};
}

}  // namespace

void register_fp8_gemm(py::module_& m) {
    static std::array<PyMethodDef, 5> methods = {
        method<Layout::kNt>("fp8_gemm_nt"), method<Layout::kNn>("fp8_gemm_nn"), method<Layout::kTn>("fp8_gemm_tn"),
        method<Layout::kTt>("fp8_gemm_tt"), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
