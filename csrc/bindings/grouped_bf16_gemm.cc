// m_grouped_bf16_gemm_{nt,nn}_contiguous and m_grouped_bf16_gemm_nt_masked as Python calls them.
#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "bindings/validation.h"
#include "ops/bf16_gemm.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

constexpr const char* kContiguousArguments =
    "(a, b, d, grouped_layout, compiled_dims, use_psum_layout, ensure_zero_padding, "
    "expected_m_for_psum_layout, "
    "alignment), all positional";
constexpr Py_ssize_t kNumContiguousArguments = 9;
constexpr const char* kMaskedArguments = "(a, b, d, masked_m, expected_m, compiled_dims), all positional";
constexpr Py_ssize_t kNumMaskedArguments = 6;

void read_tensors(PyObject* const* args, ops::Bf16Operands& call) {
    call.a = read_tensor(args[0], "a");
    call.b = read_tensor(args[1], "b");
    call.d = read_tensor(args[2], "d");
    call.stream = stream_of(args[2], call.d);
}

template <LayoutOfB kLayout>
PyObject* contiguous(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumContiguousArguments) throw py::type_error("expected 9 positional arguments");
        ops::ContiguousBf16GemmCall call;
        read_tensors(args, call);
        call.grouped_layout = read_tensor(args[3], "grouped_layout");
        check_compiled_dims(args[4]);
        read_layout_options(args + 5, call);
        if constexpr (kLayout == LayoutOfB::kKFirst) call.b = k_last(call.b, 3);
        constexpr bool kNt = kLayout == LayoutOfB::kKLast;
        validate(kNt ? "m_grouped_bf16_gemm_nt_contiguous" : "m_grouped_bf16_gemm_nn_contiguous", args, count);
        ops::m_grouped_bf16_gemm_contiguous(call);
        return py::none().release().ptr();
    });
}

PyObject* masked(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumMaskedArguments) throw py::type_error("expected 6 positional arguments");
        ops::MaskedBf16GemmCall call;
        read_tensors(args, call);
        call.masked_m = read_tensor(args[3], "masked_m");
        call.expected_m = read_integer(args[4], "expected_m");
        check_compiled_dims(args[5]);
        validate("m_grouped_bf16_gemm_nt_masked", args, count);
        ops::m_grouped_bf16_gemm_masked(call);
        return py::none().release().ptr();
    });
}

}  // namespace

void register_grouped_bf16_gemm(py::module_& m) {
    static std::array<PyMethodDef, 4> methods = {
        fast_method("m_grouped_bf16_gemm_nt_contiguous", &contiguous<LayoutOfB::kKLast>,
                    kContiguousArguments),
        fast_method("m_grouped_bf16_gemm_nn_contiguous", &contiguous<LayoutOfB::kKFirst>,
                    kContiguousArguments),
        fast_method("m_grouped_bf16_gemm_nt_masked", &masked, kMaskedArguments), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
