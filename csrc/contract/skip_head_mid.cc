#include "contract/skip_head_mid.h"

#include <array>

#include "contract/expect.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

constexpr int64_t kColumnStep = 8;  // 16 bytes of BF16
constexpr int64_t kMostColumns = int64_t{1} << 31;

// D as the product sees it: its first N columns.
TensorView product_of(const TensorView& d, int64_t n) {
    TensorView product = d;
    product.shape[product.column_dimension()] = n;
    return product;
}

}  // namespace

void check_head_splits(const HeadSplits& splits) {
    const std::array parts{splits.left, splits.mid, splits.right};
    for (const int64_t part : parts)
        if (part < 0 || part % kColumnStep != 0 || part >= kMostColumns)
            refuse("head_splits",
                   "(left, mid, right), each 0 or a multiple of {} columns, got ({}, {}, {}); pad the heads to such parts",
                   kColumnStep, splits.left, splits.mid, splits.right);
    if (!splits.some())
        refuse("head_splits", "a head with columns of the product, left + right > 0, got ({}, {}, {}); use fp8_gemm_nt where "
               "there are no heads",
               splits.left, splits.mid, splits.right);
}

Fp8GemmProblem check_fp8_gemm(const SkipHeadMidCall& call, int arch_major) {
    device_of(call);
    check_head_splits(call.head_splits);
    expect(call.a, "a").rank(2, "[M, K]").extents_fit();
    expect(call.b, "b").rank(2, "[N, K]").extents_fit();
    expect(call.d, "d").rank(2, "[M, heads*(left+mid+right)]").extents_fit();
    const int64_t n = call.b.rows(), per_head = call.head_splits.product_columns();
    if (n % per_head != 0)
        refuse("b", "N = heads x (left + right), a multiple of {}, got {} rows (shape {}); check head_splits", per_head, n,
               shape_text(call.b));
    const Extent m{call.a.rows(), "M"}, columns{n / per_head * call.head_splits.d_columns(), "heads*(left+mid+right)"};
    expect(call.d, "d").shape(std::array{m, columns}, "M comes from a, the heads from N and head_splits");
    expect(call.d, "d").tma_addressable("N");

    SkipHeadMidCall product = call;
    product.d = product_of(call.d, n);
    Fp8GemmProblem problem = check_operands(product, Grouping::kDense, arch_major);
    check_apart(call.a, "a", call.d);
    check_apart(call.b, "b", call.d);
    check_apart(call.sfa, "sfa (scales of a)", call.d);
    check_apart(call.sfb, "sfb (scales of b)", call.d);
    problem.d_row_stride = output_row_stride(call.d);
    problem.heads = call.head_splits;
    return problem;
}

}  // namespace deep_gemm::contract
