#include "reference/bf16_gemm.h"

#include <deep_gemm/base/math.h>

#include <algorithm>
#include <vector>

#include "reference/output.h"
#include "reference/row_ranges.h"

namespace deep_gemm::reference {

namespace {

constexpr int64_t kColumns = 32;  // of D at a time: a panel of B is decoded once for all rows of A

// `k` runs through all batches that are summed.
double value_at(const Bf16GemmProblem& p, const Bf16Operand& operand, int64_t mn, int64_t k) {
    const int64_t at = operand.at(mn, k % p.k) + k / p.k * operand.group_stride;
    return decode_bf16(static_cast<const uint16_t*>(operand.data)[at]);
}

int64_t chain_length(const Bf16GemmProblem& p) {
    return p.groups.grouping == Grouping::kBatchSum ? p.k * p.groups.count : p.k;
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

// One D: of a dense problem, of a batch, or the sum of all batches.
void one_output(const Bf16GemmProblem& p) {
    if (p.empty_output()) return;
    const int64_t length = chain_length(p);
    if (length == 0) return copy_c(p);
    std::vector<double> panel(length * kColumns);
    for (int64_t n = 0; n < p.n; n += kColumns) {
        for (int64_t j = 0; j < min_of(kColumns, p.n - n); ++j)
            for (int64_t k = 0; k < length; ++k) panel[k * kColumns + j] = value_at(p, p.b, n + j, k);
        for (int64_t m = 0; m < p.m; ++m) row_of_panel(p, m, n, panel);
    }
}

// `operand` from an element on.
Bf16Operand from_element(Bf16Operand operand, int64_t element) {
    operand.data = static_cast<const uint16_t*>(operand.data) + element;
    return operand;
}

const char* from_byte(const void* data, int64_t byte) {
    return data == nullptr ? nullptr : static_cast<const char*>(data) + byte;
}

// The dense problem of some rows.
Bf16GemmProblem problem_of(const Bf16GemmProblem& p, const RowRange& rows) {
    const int64_t d_bytes = p.d_dtype == Dtype::kF32 ? 4 : 2;
    Bf16GemmProblem part = p;
    part.groups = {};
    part.m = rows.count;
    part.a = from_element(p.a, rows.matrix * p.a.group_stride + p.a.at(rows.first, 0));
    part.d = static_cast<char*>(p.d) + (rows.matrix * p.d_group_stride + rows.first * p.d_row_stride) * d_bytes;
    part.c = from_byte(p.c, (rows.matrix * p.c_group_stride + rows.first * p.c_row_stride) * d_bytes);
    if (rows.group < 0)
        part.k = 0;
    else
        part.b = from_element(p.b, rows.group * p.b.group_stride);
    return part;
}

}  // namespace

void bf16_gemm(const Bf16GemmProblem& p) {
    const Grouping grouping = p.groups.grouping;
    if (grouping == Grouping::kDense || grouping == Grouping::kBatchSum) return one_output(p);
    for (const RowRange& rows : row_ranges(p.groups, p.m)) one_output(problem_of(p, rows));
}

}  // namespace deep_gemm::reference
