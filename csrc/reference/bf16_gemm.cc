#include "reference/bf16_gemm.h"

#include <deep_gemm/base/math.h>

#include <algorithm>
#include <vector>

#include "reference/output.h"

namespace deep_gemm::reference {

namespace {

constexpr int64_t kColumns = 32;  // of D at a time: a panel of B is decoded once for all rows of A

// `k` runs through all batches that are summed.
double value_at(const Bf16GemmProblem& p, const Bf16Operand& operand, int64_t mn, int64_t k) {
    const int64_t at = operand.at(mn, k % p.k) + k / p.k * operand.batch_stride;
    return decode_bf16(static_cast<const uint16_t*>(operand.data)[at]);
}

int64_t chain_length(const Bf16GemmProblem& p) {
    return p.batches.grouping == Grouping::kBatchSum ? p.k * p.batches.count : p.k;
}

// Row `m` of D, `columns` of them from `n` on; `panel` holds B K-first.
void row_of_panel(const Bf16GemmProblem& p, int64_t m, int64_t n, const std::vector<double>& panel) {
    const int64_t columns = min_of(kColumns, p.n - n);
    double sums[kColumns] = {};
    for (int64_t k = 0; k < chain_length(p); ++k) {
        const double a = value_at(p, p.a, m, k);
        for (int64_t j = 0; j < columns; ++j) sums[j] += a * panel[k * kColumns + j];
    }
    for (int64_t j = 0; j < columns; ++j) store_d(p, m, n + j, p.has_c() ? load_c(p, m, n + j) + sums[j] : sums[j]);
}

// One D: of a dense problem, of a batch, or the sum of all.
void one_output(const Bf16GemmProblem& p) {
    if (p.no_product()) return copy_c(p);
    const int64_t length = chain_length(p);
    std::vector<double> panel(length * kColumns);
    for (int64_t n = 0; n < p.n; n += kColumns) {
        for (int64_t j = 0; j < min_of(kColumns, p.n - n); ++j)
            for (int64_t k = 0; k < length; ++k) panel[k * kColumns + j] = value_at(p, p.b, n + j, k);
        for (int64_t m = 0; m < p.m; ++m) row_of_panel(p, m, n, panel);
    }
}

const void* at_element(const void* data, int64_t index, int64_t bytes) {
    return data == nullptr ? nullptr : static_cast<const char*>(data) + index * bytes;
}

Bf16GemmProblem problem_of_batch(const Bf16GemmProblem& p, int64_t batch) {
    const int64_t d_bytes = p.d_dtype == Dtype::kF32 ? 4 : 2;
    Bf16GemmProblem part = p;
    part.batches = {};
    part.a.data = at_element(p.a.data, batch * p.a.batch_stride, 2);
    part.b.data = at_element(p.b.data, batch * p.b.batch_stride, 2);
    part.d = static_cast<char*>(p.d) + batch * p.batches.d_stride * d_bytes;
    part.c = at_element(p.c, batch * p.batches.c_stride, d_bytes);
    return part;
}

}  // namespace

void bf16_gemm(const Bf16GemmProblem& p) {
    if (p.batches.grouping != Grouping::kBatched) return one_output(p);
    for (int64_t batch = 0; batch < p.batches.count; ++batch) one_output(problem_of_batch(p, batch));
}

}  // namespace deep_gemm::reference
