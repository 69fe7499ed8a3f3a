#include "contract/output.h"

#include <deep_gemm/base/math.h>

#include <array>
#include <span>

#include "contract/expect.h"
#include "contract/overlap.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

// Same memory, seen the same way; shapes are equal by now, and strides of extents 0 and 1 mean nothing.
bool is_same(const TensorView& x, const TensorView& y) {
    if (x.data != y.data) return false;
    for (int i = 0; i < x.rank; ++i)
        if (x.shape[i] > 1 && x.stride[i] != y.stride[i]) return false;
    return true;
}

}  // namespace

int64_t group_stride_of(const TensorView& t, int64_t row_stride) {
    return t.rank == 3 && t.shape[0] > 1 ? t.stride[0] : row_stride;
}

int64_t output_row_stride(const TensorView& t) {
    const int64_t per_unit = kTmaAlignment / element_bytes(t.dtype);
    return t.rows() > 1 ? t.stride[t.row_dimension()] : align_up<int64_t>(t.columns(), per_unit);
}

void check_apart(const TensorView& input, std::string_view name, const TensorView& d) {
    if (overlap(input, d))
        refuse("d", "memory of its own, got an overlap with {}; allocate a separate output", name);
}

void check_c(const TensorView& c, const TensorView& d) {
    const std::array<Extent, 3> shape{{{d.shape[0], "G"}, {d.rows(), "M"}, {d.columns(), "N"}}};
    expect(c, "c")
        .rank(d.rank, d.rank == 3 ? "[G, M, N]" : "[M, N]")
        .dtype({d.dtype}, "c has the dtype of d; convert one of them")
        .shape(std::span<const Extent>(shape).last(static_cast<std::size_t>(d.rank)), "c has the shape of d")
        .tma_addressable("N");
    if (!is_same(c, d) && overlap(c, d))
        refuse("c",
               "d itself (same address, shape and strides) or memory apart from d, got a partial overlap "
               "with d (c "
               "strides {}, d strides {}); clone c",
               strides_text(c), strides_text(d));
}

}  // namespace deep_gemm::contract
