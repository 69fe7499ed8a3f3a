#include "reference/bf16_gemm.h"

#include <deep_gemm/base/math.h>

#include <algorithm>
#include <vector>

#include "reference/output.h"

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

}  // namespace

void bf16_gemm(const Bf16GemmProblem& p) {
    if (p.k == 0) return copy_c(p);
    std::vector<double> panel(p.k * kColumns);
    for (int64_t n = 0; n < p.n; n += kColumns) {
        for (int64_t j = 0; j < min_of(kColumns, p.n - n); ++j)
            for (int64_t k = 0; k < p.k; ++k) panel[k * kColumns + j] = value_at(p.b, n + j, k);
        for (int64_t m = 0; m < p.m; ++m) row_of_panel(p, m, n, panel);
    }
}

}  // namespace deep_gemm::reference
