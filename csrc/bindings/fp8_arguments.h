// Arguments that the GEMMs share, from Python objects into the call. All throw Error, naming the
// argument.
#pragma once

#include <pybind11/pybind11.h>

#include "ops/fp8_gemm.h"

namespace deep_gemm::bindings {

// What pairs of tensor and scales held, alive until the call is over: code that runs while a tensor is read, or in another
// thread while this one computes, may empty a list that came.
struct OwnedOperands {
    pybind11::object a, sfa, b, sfb;
};

// A call that keeps alive what it is of.
template <typename Call>
struct OwningCall : Call {
    OwnedOperands owned;
};

// (a, b, d), a and b pairs of tensor and scales.
[[nodiscard]] OwnedOperands read_operands(PyObject* const* args, ops::Fp8Operands& call);

// (recipe, recipe_a, recipe_b): None or tuples of positive integers.
void read_recipes(PyObject* const* args, ops::Fp8Operands& call);

// (compiled_dims, disable_ue8m0_cast).
void read_options(PyObject* const* args, ops::Fp8Operands& call);

// Letters of "mnk", or an empty string. Accepted and without effect: extents are never compile-time constants here.
void check_compiled_dims(PyObject* dims);

// (use_psum_layout, ensure_zero_padding, expected_m_for_psum_layout, alignment), after grouped_layout.
void read_layout_options(PyObject* const* args, contract::ContiguousLayout& layout);

// What Python takes for true.
bool read_flag(PyObject* object);

int64_t read_integer(PyObject* object, const char* name);

// (left, mid, right) of the heads of D.
HeadSplits read_head_splits(PyObject* object);

enum class Layout { kNt, kNn, kTn, kTt };
enum class LayoutOfB { kKLast, kKFirst };  // of a grouped operand

// The current stream of the tensor's device; null on the CPU.
void* stream_of(PyObject* tensor, const TensorView& view);

// The operand of this rank as `nt` sees it, its last two dimensions exchanged. Other ranks stay as they came:
// the contract refuses them by their own shape.
inline TensorView k_last(const TensorView& view, int rank) {
    return view.rank == rank ? view.transposed(rank - 2, rank - 1) : view;
}

}  // namespace deep_gemm::bindings
