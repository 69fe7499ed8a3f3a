// m_grouped_fp8_gemm_{nt,nn}_contiguous and m_grouped_fp8_gemm_nt_masked as Python calls them.
#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "bindings/validation.h"
#include "ops/fp8_gemm.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

constexpr const char* kContiguousArguments =
    "(a, b, d, grouped_layout, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast, "
    "use_psum_layout, "
    "ensure_zero_padding, expected_m_for_psum_layout, alignment), all positional";
constexpr Py_ssize_t kNumContiguousArguments = 13;
constexpr const char* kMaskedArguments =
    "(a, b, d, masked_m, expected_m, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast), all "
    "positional";
constexpr Py_ssize_t kNumMaskedArguments = 10;

template <LayoutOfB kLayout>
OwningCall<ops::ContiguousFp8GemmCall> read_contiguous(PyObject* const* args, Py_ssize_t count) {
    if (count != kNumContiguousArguments) throw py::type_error("expected 13 positional arguments");
    OwningCall<ops::ContiguousFp8GemmCall> call;
    call.owned = read_operands(args, call);
    call.grouped_layout = read_tensor(args[3], "grouped_layout");
    read_recipes(args + 4, call);
    read_options(args + 7, call);
    read_layout_options(args + 9, call);
    if constexpr (kLayout == LayoutOfB::kKFirst) {
        call.b = k_last(call.b, 3);
        call.sfb = k_last(call.sfb, 3);
    }
    call.stream = stream_of(args[2], call.d);
    return call;
}

OwningCall<ops::MaskedFp8GemmCall> read_masked(PyObject* const* args, Py_ssize_t count) {
    if (count != kNumMaskedArguments) throw py::type_error("expected 10 positional arguments");
    OwningCall<ops::MaskedFp8GemmCall> call;
    call.owned = read_operands(args, call);
    call.masked_m = read_tensor(args[3], "masked_m");
    call.expected_m = read_integer(args[4], "expected_m");
    read_recipes(args + 5, call);
    read_options(args + 8, call);
    call.stream = stream_of(args[2], call.d);
    return call;
}

template <LayoutOfB kLayout>
PyObject* contiguous(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        const auto call = read_contiguous<kLayout>(args, count);
        constexpr bool kNt = kLayout == LayoutOfB::kKLast;
        validate(kNt ? "m_grouped_fp8_gemm_nt_contiguous" : "m_grouped_fp8_gemm_nn_contiguous", args, count);
        ops::m_grouped_fp8_gemm_contiguous(call);
        return py::none().release().ptr();
    });
}

PyObject* masked(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        const auto call = read_masked(args, count);
        validate("m_grouped_fp8_gemm_nt_masked", args, count);
        ops::m_grouped_fp8_gemm_masked(call);
        return py::none().release().ptr();
    });
}

}  // namespace

void register_grouped_fp8_gemm(py::module_& m) {
    static std::array<PyMethodDef, 4> methods = {
        fast_method("m_grouped_fp8_gemm_nt_contiguous", &contiguous<LayoutOfB::kKLast>, kContiguousArguments),
        fast_method("m_grouped_fp8_gemm_nn_contiguous", &contiguous<LayoutOfB::kKFirst>,
                    kContiguousArguments),
        fast_method("m_grouped_fp8_gemm_nt_masked", &masked, kMaskedArguments), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
