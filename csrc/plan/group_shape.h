// The groups of a problem as far as they may choose a config, and how many tiles they make.
#pragma once

#include <cstdint>
#include <string>

#include <deep_gemm/base/types.h>

namespace deep_gemm::plan {

struct GroupShape {
    Grouping grouping = Grouping::kDense;
    int64_t count = 1;
    int64_t expected_m = 0;  // kMasked, kPsum: rows that a group is likely to want; 0: nobody knows
    int64_t alignment = 0;   // kContiguous, kPsum: groups start at multiples of it
    bool operator==(const GroupShape&) const = default;
};

// The K that stands for the mean of `count` groups, `k` in all (kKGrouped): sizes change with every call, plans need not.
int64_t planning_k(int64_t k, int64_t count);

// The M that stands for `m` in every estimate, so that a choice can only change between two of them: a
// multiple of 8 up to one wgmma tile, of 64 beyond.
int64_t planning_m(int64_t m);

// A problem of `m` rows (of one group where each has an output) as estimates see it: `count` matrices of B, each
// multiplied with `rows` rows of A. Dense: one.
struct GroupRows {
    int64_t rows, count;
};
GroupRows group_rows(int64_t m, const GroupShape& groups);

// Rows of D that are likely to be wanted, of all groups.
double rows_of_d(int64_t m, const GroupShape& groups);

// Tiles of `rows` rows along M: those that are likely, and the most there can be, whatever the layout says.
int64_t likely_tiles_along_m(int64_t m, const GroupShape& groups, int64_t rows);
int64_t most_tiles_along_m(int64_t m, const GroupShape& groups, int64_t rows);

// Of `slots` clusters that are resident at once, those to launch for at most so many tiles, counted in clusters. Where tiles are not alike, or the
// device alone knows how many there are, all of them: fewer might share them out worse.
int64_t clusters_to_launch(const GroupShape& groups, int64_t tiles, int64_t slots);

// Throws Error for groups that planning cannot make sense of.
void check_groups(const GroupShape& groups);

// Throws Error where no call is planned with `k`: of kKGrouped, whose calls are planned with a K that stands for theirs.
void check_called_k(int64_t k, const GroupShape& groups);

// Whether tiles of `block_m` rows, counted from row 0, or clusters of `cluster_m` of them, may hold rows of two groups.
bool straddles_groups(const GroupShape& groups, int block_m, int cluster_m);

// " masked groups=8 expected_m=64", or nothing for a dense problem.
std::string describe(const GroupShape& groups);

}  // namespace deep_gemm::plan
