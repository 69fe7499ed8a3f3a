#include "reference/fp8_gemm.h"

#include <deep_gemm/base/math.h>

#include <algorithm>
#include <vector>

#include "reference/number.h"
#include "reference/output.h"
#include "support/error.h"

namespace deep_gemm::reference {

namespace {

constexpr int64_t kScaleK = 128;
constexpr int kColumns = 32;  // of D at a time: a panel of B is decoded once for all rows of A

// B's rows [n, n + kColumns) decoded, K-first so that the inner loop runs along columns; rows past N are
// zeros.
void decode_panel(const Fp8GemmProblem& p, int64_t n, std::vector<double>& panel) {
    const auto& value_of = e4m3_values();
    const int columns = static_cast<int>(min_of<int64_t>(kColumns, p.n - n));
    std::fill(panel.begin(), panel.end(), 0.0);
    for (int j = 0; j < columns; ++j) {
        const uint8_t* row = static_cast<const uint8_t*>(p.b.data) + (n + j) * p.b.row_stride;
        for (int64_t k = 0; k < p.k; ++k) panel[k * kColumns + j] = value_of[row[k * p.b.k_stride]];
    }
}

// Σ a[k] * b[k] over one scale block, for every column: multiples of 2^-18 below 2^25, hence exact in FP64.
void block_sums(const uint8_t* a, int64_t a_stride, const double* b, int64_t count, double (&sums)[kColumns]) {
    const auto& value_of = e4m3_values();
    std::fill(std::begin(sums), std::end(sums), 0.0);
    for (int64_t k = 0; k < count; ++k) {
        const double a_value = value_of[a[k * a_stride]];
        for (int j = 0; j < kColumns; ++j) sums[j] += a_value * b[k * kColumns + j];
    }
}

double scale_at(const ScaleView& s, int64_t mn, int64_t k_block) {
    return s.data[mn / s.granularity_mn * s.stride_mn + k_block * s.stride_k];
}

// One row of D, columns [n, n + kColumns).
void row_of_panel(const Fp8GemmProblem& p, int64_t m, int64_t n, const std::vector<double>& panel) {
    const uint8_t* a = static_cast<const uint8_t*>(p.a.data) + m * p.a.row_stride;
    const int columns = static_cast<int>(min_of<int64_t>(kColumns, p.n - n));
    double total[kColumns] = {};
    for (int64_t k = 0, block = 0; k < p.k; k += kScaleK, ++block) {
        double sums[kColumns];
        block_sums(a + k * p.a.k_stride, p.a.k_stride, panel.data() + k * kColumns, min_of(kScaleK, p.k - k), sums);
        const double a_scale = scale_at(p.sfa, m, block);
        for (int j = 0; j < columns; ++j) total[j] += a_scale * scale_at(p.sfb, n + j, block) * sums[j];
    }
    for (int j = 0; j < columns; ++j)
        store_d(p, m, p.heads.column_of_d(n + j), p.has_c() ? load_c(p, m, n + j) + total[j] : total[j]);
}

void dense(const Fp8GemmProblem& p) {
    if (p.empty_output()) return;
    if (p.k == 0 && !p.heads.some()) return copy_c(p);
    std::vector<double> panel(p.k * kColumns);
    for (int64_t n = 0; n < p.n; n += kColumns) {
        decode_panel(p, n, panel);
        for (int64_t m = 0; m < p.m; ++m) row_of_panel(p, m, n, panel);
    }
}

// Rows of D that are multiplied with one matrix of B; of a masked problem counted within the group, else
// through.
struct RowRange {
    int64_t first, count;
    int64_t group;  // negative: of no group, D is zero
};

const void* at_byte(const void* data, int64_t offset) {
    return static_cast<const char*>(data) + offset;
}

// The dense problem of some rows. `matrix` is the matrix of A and D they are in.
Fp8GemmProblem problem_of(const Fp8GemmProblem& p, const RowRange& rows, int64_t matrix) {
    Fp8GemmProblem part = p;
    part.groups = {};
    part.m = rows.count;
    part.a.data = at_byte(p.a.data, matrix * p.a.group_stride + rows.first * p.a.row_stride);
    part.sfa.data += matrix * p.sfa.stride_g + rows.first * p.sfa.stride_mn;
    const int64_t d_bytes = p.d_dtype == Dtype::kF32 ? 4 : 2;
    part.d = static_cast<char*>(p.d) + (matrix * p.d_group_stride + rows.first * p.d_row_stride) * d_bytes;
    if (p.has_c())
        part.c = at_byte(p.c, (matrix * p.c_group_stride + rows.first * p.c_row_stride) * d_bytes);
    if (rows.group < 0) {
        part.k = 0;
        return part;
    }
    part.b.data = at_byte(p.b.data, rows.group * p.b.group_stride);
    part.sfb.data += rows.group * p.sfb.stride_g;
    return part;
}

// Runs of rows of one group.
std::vector<RowRange> contiguous_ranges(const Fp8GemmProblem& p) {
    std::vector<RowRange> ranges;
    for (int64_t m = 0; m < p.m; ++m) {
        const int64_t group = p.groups.layout[m];
        DG_CHECK(group < p.groups.count,
                 "grouped_layout: expected groups from 0 to {}, or -1, got {} in row {}; check the layout",
                 p.groups.count - 1, group, m);
        if (ranges.empty() || ranges.back().group != group) ranges.push_back({m, 0, group});
        ++ranges.back().count;
    }
    return ranges;
}

void contiguous(const Fp8GemmProblem& p) {
    for (const RowRange& rows : contiguous_ranges(p)) dense(problem_of(p, rows, 0));
}

void masked(const Fp8GemmProblem& p) {
    for (int64_t group = 0; group < p.groups.count; ++group)
        DG_CHECK(0 <= p.groups.layout[group] && p.groups.layout[group] <= p.m,
                 "masked_m: expected from 0 to {} rows, got {} for group {}; check the counts", p.m,
                 p.groups.layout[group], group);
    for (int64_t group = 0; group < p.groups.count; ++group)
        dense(problem_of(p, {0, p.groups.layout[group], group}, group));
}

// The rows of each group that has any, and their padding where it becomes zeros.
std::vector<RowRange> psum_ranges(const Fp8GemmProblem& p) {
    std::vector<RowRange> ranges;
    for (int64_t group = 0, start = 0; group < p.groups.count; ++group) {
        const int64_t end = p.groups.layout[group], next = align_up(end, p.groups.alignment);
        DG_CHECK(0 <= end && end <= max_of(p.m, start) && start <= next,
                 "grouped_layout: expected ends up to {} rows that leave no group before another, got {} for "
                 "group {}, which starts at row {}; check the layout",
                 p.m, end, group, start);
        if (start < end) {
            ranges.push_back({start, end - start, group});
            if (p.groups.zero_padding) ranges.push_back({end, min_of(next, p.m) - end, -1});
        }
        start = next;
    }
    return ranges;
}

void batched(const Fp8GemmProblem& p) {
    for (int64_t group = 0; group < p.groups.count; ++group) dense(problem_of(p, {0, p.m, group}, group));
}

void psum(const Fp8GemmProblem& p) {
    for (const RowRange& rows : psum_ranges(p)) dense(problem_of(p, rows, 0));
}

}  // namespace

void fp8_gemm(const Fp8GemmProblem& p) {
    switch (p.groups.grouping) {
        case Grouping::kDense:
            return dense(p);
        case Grouping::kContiguous:
            return contiguous(p);
        case Grouping::kMasked:
            return masked(p);
        case Grouping::kPsum:
            return psum(p);
        case Grouping::kBatched:
            return batched(p);
        case Grouping::kBatchSum:  // no FP8 contraction is one
        case Grouping::kKGrouped:  // a problem of its own: k_grouped_gemm.h
            break;
    }
}

}  // namespace deep_gemm::reference
