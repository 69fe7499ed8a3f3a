#include "contract/vendor_gemm.h"

#include <array>

#include "contract/expect.h"
#include "contract/output.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr int kAnyArchMajor = 9;     // BF16 operands follow the rules of our own kernels, wherever the library runs
constexpr int64_t kExtentStep = 16;  // the library's FP8 products take N and K in steps of this

void check_fp8(const Bf16GemmCall& call) {
    expect(call.a, "a").rank(2, "[M, K]").extents_fit();
    expect(call.b, "b").rank(2, "[N, K]").extents_fit();
    expect(call.d, "d").rank(2, "[M, N]").extents_fit();
    expect(call.b, "b").dtype({Dtype::kF8E4M3}, "both operands have one dtype; convert one of them");
    expect(call.d, "d").dtype({Dtype::kBf16, Dtype::kF32}, "allocate the output in one of these");
    const Extent m{call.a.rows(), "M"}, n{call.b.rows(), "N"}, k{call.a.columns(), "K"};
    expect(call.b, "b").shape(std::array{n, k}, "K comes from a, and b is seen as `nt` sees it: check the layout letters");
    expect(call.d, "d").shape(std::array{m, n}, "M comes from a, N from b");
    if (n.value % kExtentStep != 0 || k.value % kExtentStep != 0)
        refuse("b", "N and K that are multiples of {} with FP8 operands of the vendor's library, got N={} and K={}; pad them, "
               "or call fp8_gemm_* with scales of 1",
               kExtentStep, n.value, k.value);
    expect(call.a, "a").tma_addressable("K");
    expect(call.b, "b").tma_addressable("K");
    expect(call.d, "d").tma_addressable("N");
    check_apart(call.a, "a", call.d);
    check_apart(call.b, "b", call.d);
    if (call.c) check_c(*call.c, call.d);
}

}  // namespace

void check_vendor_gemm(const Bf16GemmCall& call) {
    device_of(call);
    expect(call.a, "a").dtype({Dtype::kBf16, Dtype::kF8E4M3}, "convert the operands to one of these");
    if (call.a.dtype == Dtype::kF8E4M3) return check_fp8(call);
    check_bf16_gemm(call, kAnyArchMajor);
}

}  // namespace deep_gemm::contract
