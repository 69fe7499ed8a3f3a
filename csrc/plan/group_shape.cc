#include "plan/group_shape.h"

#include <deep_gemm/base/kernel_args.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "support/error.h"

namespace deep_gemm::plan {

namespace {

// Rows that groups want scatter about what is expected: percent of it, for groups that stand for all.
constexpr int kScatter[] = {70, 85, 100, 115, 130};

// Whether every group is a whole M x N product.
bool is_product_per_group(Grouping grouping) {
    return grouping == Grouping::kKGrouped || grouping == Grouping::kBatched;
}

// Whether tiles of `rows` rows are counted from the start of each group.
bool is_cut_by_group(const GroupShape& groups, int64_t rows) {
    if (groups.grouping == Grouping::kContiguous) return groups.alignment % rows != 0;
    return has_entry_per_group(groups.grouping);
}

}  // namespace

int64_t planning_m(int64_t m) {
    return align_up<int64_t>(m, m <= kWgmmaM ? 8 : kWgmmaM);
}

int64_t planning_k(int64_t k, int64_t count) {
    constexpr int64_t kShort = 1024, kStep = 128;
    const int64_t mean = ceil_div(k, max_of<int64_t>(count, 1));
    return align_up<int64_t>(max_of<int64_t>(mean, 1), mean <= kShort ? kStep : kShort);
}

GroupRows group_rows(int64_t m, const GroupShape& groups) {
    switch (groups.grouping) {
        case Grouping::kDense:
            break;
        case Grouping::kContiguous:
        case Grouping::kPsum: {
            // No more groups have rows than there are places to start one.
            const int64_t places = ceil_div(m, groups.alignment);
            const int64_t count = std::clamp<int64_t>(groups.count, 1, places);
            const int64_t mean = ceil_div(m, count);
            return {groups.expected_m == 0 ? mean : std::min(planning_m(groups.expected_m), mean), count};
        }
        case Grouping::kMasked:
            // Nobody knows: all rows are wanted.
            return {groups.expected_m == 0 ? m : std::min(planning_m(groups.expected_m), m), groups.count};
        case Grouping::kBatched:
        case Grouping::kKGrouped:
            return {m, groups.count};
        case Grouping::kBatchSum:
            break;
    }
    return {m, 1};
}

double rows_of_d(int64_t m, const GroupShape& groups) {
    if (is_product_per_group(groups.grouping)) return double(m) * double(groups.count);
    if (!has_entry_per_group(groups.grouping)) return double(m);
    const GroupRows group = group_rows(m, groups);
    return double(group.rows) * double(group.count);
}

int64_t likely_tiles_along_m(int64_t m, const GroupShape& groups, int64_t rows) {
    if (is_product_per_group(groups.grouping)) return groups.count * ceil_div(m, rows);
    if (!is_cut_by_group(groups, rows)) return ceil_div(m, rows);
    const GroupRows group = group_rows(m, groups);
    if (groups.grouping == Grouping::kContiguous) {
        // All rows have tiles, padding, too; only how they are shared out is not known. A group ends anywhere in its last tile
        // that a block of the alignment does, at one of `places`.
        const int64_t places = rows / std::gcd(std::min(groups.alignment, align_up<int64_t>(m, kWgmmaM)), rows);
        return ceil_div(m, rows) + ceil_div((group.count - 1) * (places - 1), 2 * places);
    }
    int64_t tiles = 0;
    for (const int percent : kScatter)
        tiles += ceil_div(std::min(ceil_div<int64_t>(group.rows * percent, 100), m), rows);
    return ceil_div<int64_t>(tiles * group.count, std::size(kScatter));
}

int64_t most_tiles_along_m(int64_t m, const GroupShape& groups, int64_t rows) {
    const int64_t tiles = ceil_div(m, rows);
    if (has_output_per_group(groups.grouping)) return groups.count * tiles;
    if (!is_cut_by_group(groups, rows)) return tiles;
    if (groups.grouping == Grouping::kContiguous) {  // each block may begin a run
        const int64_t alignment = std::min(groups.alignment, m);
        return ceil_div(m, alignment) * ceil_div(alignment, rows);
    }
    // Each group but one may add a part of a tile.
    return tiles + std::min(groups.count, ceil_div(m, groups.alignment)) - 1;
}

int64_t clusters_to_launch(const GroupShape& groups, int64_t tiles, int64_t slots) {
    const bool are_alike = !divides_rows(groups.grouping) && groups.grouping != Grouping::kKGrouped;
    return are_alike ? clusters_of_even_rounds(tiles, slots) : std::min(tiles, slots);
}

void check_groups(const GroupShape& groups) {
    DG_CHECK(groups.count > 0 && groups.expected_m >= 0,
             "groups: planning expects a positive num_groups and an expected_m of 0 or more, got {} and {}",
             groups.count, groups.expected_m);
    const bool aligned = groups.grouping == Grouping::kContiguous || groups.grouping == Grouping::kPsum;
    DG_CHECK(!aligned || groups.alignment > 0, "alignment: expected a positive number of rows, got {}",
             groups.alignment);
}

void check_called_k(int64_t k, const GroupShape& groups) {
    if (groups.grouping != Grouping::kKGrouped) return;
    DG_CHECK(k == planning_k(k, 1),
             "k: calls grouped along K whose mean is {} are planned with {}, got {}: pass what k_grouped_planning_k returns", k,
             planning_k(k, 1), k);
}

bool straddles_groups(const GroupShape& groups, int block_m, int cluster_m) {
    if (!divides_rows(groups.grouping)) return false;
    return cluster_m > 1 || (groups.grouping == Grouping::kContiguous && groups.alignment % block_m != 0);
}

std::string describe(const GroupShape& groups) {
    switch (groups.grouping) {
        case Grouping::kDense:
            break;
        case Grouping::kContiguous:
            return fmt::format(" contiguous groups={} alignment={}", groups.count, groups.alignment);
        case Grouping::kMasked:
            return fmt::format(" masked groups={} expected_m={}", groups.count, groups.expected_m);
        case Grouping::kPsum:
            return fmt::format(" psum groups={} expected_m={} alignment={}", groups.count, groups.expected_m,
                               groups.alignment);
        case Grouping::kBatched:
        case Grouping::kKGrouped:
            return fmt::format(" each of groups={}", groups.count);
        case Grouping::kBatchSum:
            return fmt::format(" sum of batches={}", groups.count);
    }
    return {};
}

}  // namespace deep_gemm::plan
