#include "reference/row_ranges.h"

#include <deep_gemm/base/math.h>

#include "support/error.h"

namespace deep_gemm::reference {

namespace {

// Runs of rows of one group.
std::vector<RowRange> contiguous_ranges(const Groups& groups, int64_t m) {
    std::vector<RowRange> ranges;
    for (int64_t row = 0; row < m; ++row) {
        const int64_t group = groups.layout[row];
        DG_CHECK(group < groups.count,
                 "grouped_layout: expected groups from 0 to {}, or -1, got {} in row {}; check the layout",
                 groups.count - 1, group, row);
        if (ranges.empty() || ranges.back().group != group) ranges.push_back({row, 0, group, 0});
        ++ranges.back().count;
    }
    return ranges;
}

std::vector<RowRange> masked_ranges(const Groups& groups, int64_t m) {
    std::vector<RowRange> ranges;
    for (int64_t group = 0; group < groups.count; ++group) {
        const int64_t count = groups.layout[group];
        DG_CHECK(0 <= count && count <= m,
                 "masked_m: expected from 0 to {} rows, got {} for group {}; check the counts", m, count,
                 group);
        ranges.push_back({0, count, group, group});
    }
    return ranges;
}

std::vector<RowRange> batches(const Groups& groups, int64_t m) {
    std::vector<RowRange> ranges;
    for (int64_t batch = 0; batch < groups.count; ++batch) ranges.push_back({0, m, batch, batch});
    return ranges;
}

// The rows of each group that has any, and their padding where it becomes zeros.
std::vector<RowRange> psum_ranges(const Groups& groups, int64_t m) {
    std::vector<RowRange> ranges;
    for (int64_t group = 0, start = 0; group < groups.count; ++group) {
        const int64_t end = groups.layout[group], next = align_up(end, groups.alignment);
        DG_CHECK(0 <= end && end <= max_of(m, start) && start <= next,
                 "grouped_layout: expected ends up to {} rows that leave no group before another, got {} for "
                 "group {}, which starts at row {}; check the layout",
                 m, end, group, start);
        if (start < end) {
            ranges.push_back({start, end - start, group, 0});
            if (groups.zero_padding) ranges.push_back({end, min_of(next, m) - end, -1, 0});
        }
        start = next;
    }
    return ranges;
}

}  // namespace

std::vector<RowRange> row_ranges(const Groups& groups, int64_t m) {
    switch (groups.grouping) {
        case Grouping::kDense:
            break;
        case Grouping::kContiguous:
            return contiguous_ranges(groups, m);
        case Grouping::kMasked:
            return masked_ranges(groups, m);
        case Grouping::kPsum:
            return psum_ranges(groups, m);
        case Grouping::kBatched:
            return batches(groups, m);
        case Grouping::kBatchSum:  // one D of several products: bf16_gemm.cc
        case Grouping::kKGrouped:  // a problem of its own: k_grouped_gemm.h
            break;
    }
    return {{0, m, 0, 0}};
}

}  // namespace deep_gemm::reference
