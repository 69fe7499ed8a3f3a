// k_grouped_fp8_gemm_{nt,tn}_contiguous and k_grouped_bf16_gemm_tn_contiguous as Python calls them.
#include "ops/k_grouped_gemm.h"

#include <array>

#include "bindings/bindings.h"
#include "bindings/fp8_arguments.h"
#include "bindings/guard.h"
#include "bindings/tensor_exchange.h"
#include "bindings/validation.h"
#include "support/describe.h"
#include "support/error.h"

namespace py = pybind11;

namespace deep_gemm::bindings {
namespace {

constexpr const char* kFp8Arguments =
    "(a, b, d, ks_cpu, grouped_layout, c, recipe, compiled_dims, use_psum_layout, alignment), all positional";
constexpr Py_ssize_t kNumFp8Arguments = 10;
constexpr const char* kBf16Arguments =
    "(a, b, d, ks_cpu, grouped_layout, c, compiled_dims, use_psum_layout, alignment), all positional";
constexpr Py_ssize_t kNumBf16Arguments = 9;

// None, or each group's K.
std::optional<std::vector<int64_t>> read_sizes(PyObject* object) {
    if (object == Py_None) return std::nullopt;
    const py::object items = own_tuple(object);
    DG_CHECK(items, "ks_cpu must be None or a list of integers, got {}", Py_TYPE(object)->tp_name);
    std::vector<int64_t> sizes;
    for (const py::handle item : py::reinterpret_borrow<py::tuple>(items))
        sizes.push_back(read_integer(item.ptr(), "ks_cpu"));
    return sizes;
}

// (ks_cpu, grouped_layout, c)
void read_groups(PyObject* const* args, PyObject* d, ops::KGroupedGemmCall& call) {
    call.ks_cpu = read_sizes(args[0]);
    call.grouped_layout = read_tensor(args[1], "grouped_layout");
    if (args[2] == d)
        call.c = call.d;
    else if (args[2] != Py_None)
        call.c = read_tensor(args[2], "c");
}

// (compiled_dims, use_psum_layout, alignment)
void read_ending(PyObject* const* args, ops::KGroupedGemmCall& call) {
    check_compiled_dims(args[0]);
    call.use_psum_layout = read_flag(args[1]);
    call.alignment = read_integer(args[2], "alignment");
}

// Memory of d's device from d's framework, which gives it to nobody else before work queued by now on the
// current stream is done.
class Room {
  public:
    Room(PyObject* d, const Device& device) : d_(d), device_(device) {}
    void* take(std::size_t bytes) {
        constexpr std::size_t kElement = sizeof(float);  // of d
        const auto elements = static_cast<Py_ssize_t>((bytes + kElement - 1) / kElement);
        DG_CHECK(PyObject_HasAttrString(d_, "new_empty") == 1,
                 "d: expected a tensor that makes others on its device (new_empty), for the kernel's tensor "
                 "maps, got {}; pass a tensor "
                 "of PyTorch",
                 Py_TYPE(d_)->tp_name);
        buffer_ = py::reinterpret_borrow<py::object>(d_).attr("new_empty")(py::make_tuple(elements));
        const TensorView room = read_tensor(buffer_.ptr(), "workspace");
        const bool is_enough = room.rank == 1 && room.stride[0] == 1 &&
                               static_cast<std::size_t>(room.numel() * element_bytes(room.dtype)) >= bytes;
        DG_CHECK(is_enough && room.device == device_,
                 "d: its new_empty({}) must give that many neighbouring elements of d's dtype on {}, for the kernel's tensor "
                 "maps; got {} {} of strides {} on {}; pass a tensor of PyTorch",
                 elements, device_text(device_), dtype_name(room.dtype), shape_text(room), strides_text(room),
                 device_text(room.device));
        return room.data;
    }

  private:
    PyObject* d_;
    Device device_;
    py::object buffer_;
};

void run(ops::KGroupedGemmCall& call, PyObject* d) {
    call.stream = stream_of(d, call.d);
    Room room(d, call.d.device);
    ops::k_grouped_gemm(call, [&](std::size_t bytes) { return room.take(bytes); });
}

template <KLayout kLayout>
PyObject* fp8(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumFp8Arguments) throw py::type_error("expected 10 positional arguments");
        ops::Fp8Operands operands;
        const OwnedOperands owned = read_operands(args, operands);
        PyObject* const recipes[] = {args[6], Py_None, Py_None};
        read_recipes(recipes, operands);
        ops::KGroupedGemmCall call;
        call.layout = kLayout;
        call.a = operands.a;
        call.sfa = operands.sfa;
        call.b = operands.b;
        call.sfb = operands.sfb;
        call.d = operands.d;
        if (operands.recipe) call.recipe = *operands.recipe;
        read_groups(args + 3, args[2], call);
        read_ending(args + 7, call);
        constexpr bool kNt = kLayout == KLayout::kMatrices;
        validate(kNt ? "k_grouped_fp8_gemm_nt_contiguous" : "k_grouped_fp8_gemm_tn_contiguous", args, count);
        run(call, args[2]);
        return py::none().release().ptr();
    });
}

PyObject* bf16(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    return guarded([&] {
        if (count != kNumBf16Arguments) throw py::type_error("expected 9 positional arguments");
        ops::KGroupedGemmCall call;
        call.layout = KLayout::kRows;
        call.dtype = Dtype::kBf16;
        call.a = read_tensor(args[0], "a");
        call.b = read_tensor(args[1], "b");
        call.d = read_tensor(args[2], "d");
        read_groups(args + 3, args[2], call);
        read_ending(args + 6, call);
        validate("k_grouped_bf16_gemm_tn_contiguous", args, count);
        run(call, args[2]);
        return py::none().release().ptr();
    });
}

}  // namespace

void register_k_grouped_gemm(py::module_& m) {
    static std::array<PyMethodDef, 4> methods = {
        fast_method("k_grouped_fp8_gemm_nt_contiguous", &fp8<KLayout::kMatrices>, kFp8Arguments),
        fast_method("k_grouped_fp8_gemm_tn_contiguous", &fp8<KLayout::kRows>, kFp8Arguments),
        fast_method("k_grouped_bf16_gemm_tn_contiguous", &bf16, kBf16Arguments), PyMethodDef{}};
    if (PyModule_AddFunctions(m.ptr(), methods.data()) != 0) throw py::error_already_set();
}

}  // namespace deep_gemm::bindings
