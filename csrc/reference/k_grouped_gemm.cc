#include "reference/k_grouped_gemm.h"

#include <deep_gemm/base/math.h>

#include <vector>

#include "reference/number.h"
#include "reference/output.h"
#include "support/error.h"

namespace deep_gemm::reference {

namespace {

constexpr int64_t kColumns = 32;  // of D at a time: a panel of B is decoded once for all rows of A

// A group's part of K, and of the factors along K.
struct Part {
    int64_t first, count, first_factor;
};

int64_t step_of(const KGroupedGemmProblem& p) {
    return p.layout == KLayout::kMatrices ? 128 : 1;
}

std::vector<Part> parts_of(const KGroupedGemmProblem& p) {
    std::vector<Part> parts;
    int64_t start = 0, factor = 0;
    for (int64_t group = 0; group < p.groups; ++group) {
        const int64_t entry = p.sizes[group], end = p.alignment > 0 ? entry : start + entry;
        const bool fits = entry >= 0 && end <= max_of(p.k, start) && entry % step_of(p) == 0;
        DG_CHECK(fits,
                 "grouped_layout: expected {} that fit a K of {} and are multiples of {}, got {} for group "
                 "{}, which starts at {}; check "
                 "the layout",
                 p.alignment > 0 ? "ends" : "sizes", p.k, step_of(p), entry, group, start);
        parts.push_back({start, max_of<int64_t>(end - start, 0), factor});
        factor += ceil_div<int64_t>(parts.back().count, p.gran_k);
        start = p.alignment > 0 ? max_of(start, align_up(end, p.alignment)) : end;
    }
    return parts;
}

// Element `k` (within the part) of row `mn` of an operand with `rows` rows, scaled.
class Values {
  public:
    Values(const KGroupedGemmProblem& p, const KGroupedOperand& operand, int64_t rows, const Part& part)
        : p_(p), operand_(operand), rows_(rows), part_(part) {}

    double at(int64_t mn, int64_t k) const {
        const int64_t offset = p_.layout == KLayout::kMatrices ? rows_ * part_.first + mn * part_.count + k
                                                               : (part_.first + k) * operand_.row_stride + mn;
        if (p_.dtype == Dtype::kBf16) return decode_bf16(static_cast<const uint16_t*>(operand_.data)[offset]);
        return e4m3_values()[static_cast<const uint8_t*>(operand_.data)[offset]];
    }

    double scale(int64_t mn, int64_t factor) const {
        if (p_.dtype == Dtype::kBf16) return 1.0;
        const ScaleView& s = operand_.scales;
        return s.data[mn * s.stride_mn + (part_.first_factor + factor) * s.stride_k];
    }

  private:
    const KGroupedGemmProblem& p_;
    const KGroupedOperand& operand_;
    const int64_t rows_;
    const Part part_;
};

// Columns [n, n + kColumns) of a group's D; `panel` holds B's rows K-first.
void columns_of_group(const KGroupedGemmProblem& p, const Values& a, const Values& b, const Part& part,
                      int64_t n, const std::vector<double>& panel) {
    const int64_t columns = min_of(kColumns, p.n - n);
    for (int64_t m = 0; m < p.m; ++m) {
        double total[kColumns] = {};
        for (int64_t k = 0, factor = 0; k < part.count; k += p.gran_k, ++factor) {
            double sums[kColumns] = {};
            for (int64_t i = k; i < min_of(k + p.gran_k, part.count); ++i) {
                const double value = a.at(m, i);
                for (int64_t j = 0; j < columns; ++j) sums[j] += value * panel[i * kColumns + j];
            }
            const double scale = a.scale(m, factor);
            for (int64_t j = 0; j < columns; ++j) total[j] += scale * b.scale(n + j, factor) * sums[j];
        }
        for (int64_t j = 0; j < columns; ++j)
            store_d(p, m, n + j, p.has_c() ? load_c(p, m, n + j) + total[j] : total[j]);
    }
}

void one_group(const KGroupedGemmProblem& p, const Part& part) {
    if (part.count == 0) return copy_c(p);
    const Values a(p, p.a, p.m, part), b(p, p.b, p.n, part);
    std::vector<double> panel(part.count * kColumns);
    for (int64_t n = 0; n < p.n; n += kColumns) {
        for (int64_t j = 0; j < min_of(kColumns, p.n - n); ++j)
            for (int64_t k = 0; k < part.count; ++k) panel[k * kColumns + j] = b.at(n + j, k);
        columns_of_group(p, a, b, part, n, panel);
    }
}

}  // namespace

void k_grouped_gemm(const KGroupedGemmProblem& p) {
    const std::vector<Part> parts = parts_of(p);
    KGroupedGemmProblem group = p;
    for (const Part& part : parts) {
        one_group(group, part);
        group.d = static_cast<float*>(group.d) + p.d_group_stride;
        if (p.has_c()) group.c = static_cast<const float*>(group.c) + p.c_group_stride;
    }
}

}  // namespace deep_gemm::reference
