// How a problem is divided among groups, as far as it may choose a config.
#pragma once

#include <cstdint>

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

}  // namespace deep_gemm::plan
