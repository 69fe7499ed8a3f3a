#include "reference/bf16_gemm.h"

#include <deep_gemm/base/math.h>

#include <algorithm>
#include <vector>

#include "reference/output.h"
#include "reference/row_ranges.h"

namespace deep_gemm::reference {

namespace {

constexpr int64_t kColumns = 32;  // of D at a time: a panel of B is decoded once for all rows of A

double value_at(const Bf16Operand& operand, int64_t mn, int64_t k) {
    return decode_bf16(static_cast<const uint16_t*>(operand.data)[operand.at(mn, k)]);
}

// Row `m` of D, `columns` of them from `n` on; `panel` holds B K-first.
void row_of_panel(const Bf16GemmProblem& p, int64_t m, int64_t n, const std::vector<double>& panel) {
    const int64_t columns = min_of(kColumns, p.n - n);
    double sums[kColumns] = {};
    for (int64_t k = 0; k < p.k; ++k) {
        const double a = value_at(p.a, m, k);
        for (int64_t j = 0; j < columns; ++j) sums[j] += a * panel[k * kColumns + j];
    }
    for (int64_t j = 0; j < columns; ++j) store_d(p, m, n + j, p.has_c() ? load_c(p, m, n + j) + sums[j] : sums[j]);
}

void dense(const Bf16GemmProblem& p) {
    if (p.empty_output()) return;
    if (p.k == 0) return copy_c(p);
    std::vector<double> panel(p.k * kColumns);
    for (int64_t n = 0; n < p.n; n += kColumns) {
        for (int64_t j = 0; j < min_of(kColumns, p.n - n); ++j)
            for (int64_t k = 0; k < p.k; ++k) panel[k * kColumns + j] = value_at(p.b, n + j, k);
        for (int64_t m = 0; m < p.m; ++m) row_of_panel(p, m, n, panel);
    }
}

// `operand` from an element on.
Bf16Operand from_element(Bf16Operand operand, int64_t element) {
    operand.data = static_cast<const uint16_t*>(operand.data) + element;
    return operand;
}

// The dense problem of some rows; D of a grouped one is BF16.
Bf16GemmProblem problem_of(const Bf16GemmProblem& p, const RowRange& rows) {
    Bf16GemmProblem part = p;
    part.groups = {};
    part.m = rows.count;
    part.a = from_element(p.a, rows.matrix * p.a.group_stride + p.a.at(rows.first, 0));
    part.d = static_cast<uint16_t*>(p.d) + rows.matrix * p.d_group_stride + rows.first * p.d_row_stride;
    if (rows.group < 0)
        part.k = 0;
    else
        part.b = from_element(p.b, rows.group * p.b.group_stride);
    return part;
}

}  // namespace

void bf16_gemm(const Bf16GemmProblem& p) {
    if (p.groups.grouping == Grouping::kDense) return dense(p);
    for (const RowRange& rows : row_ranges(p.groups, p.m)) dense(problem_of(p, rows));
}

}  // namespace deep_gemm::reference
