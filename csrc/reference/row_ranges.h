// Which rows of a grouped problem are multiplied with which matrix of B, read from its layout on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/groups.h"

namespace deep_gemm::reference {

// Rows of D that are multiplied with one matrix of B.
struct RowRange {
    int64_t first, count;  // within matrix `matrix` of A and D
    int64_t group;         // negative: of no group, D is zero
    int64_t matrix;
};

// The ranges of a problem whose matrices of A have `m` rows; a dense problem is one. Throws Error for values
// that no layout can have, naming their place.
std::vector<RowRange> row_ranges(const Groups& groups, int64_t m);

}  // namespace deep_gemm::reference
