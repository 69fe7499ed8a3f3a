// What every operation grouped along M makes of its groups: maps, kernel arguments, what the planner sees,
// empty problems.
#pragma once

#include <deep_gemm/base/kernel_args.h>

#include "plan/group_shape.h"
#include "problem/groups.h"

namespace deep_gemm::ops {

// Whether D is C or zeros, wherever groups begin and end. Where only the device knows which rows are wanted,
// a kernel writes the zeros.
template <typename Problem>
bool has_no_product(const Problem& p) {
    return !has_entry_per_group(p.groups.grouping) && (p.k == 0 || p.groups.count == 0);
}

// Maps have three dimensions where there are groups: `matrices` of them; A and D of contiguous and psum
// problems are one.
inline uint64_t map_groups(const Groups& groups, int64_t matrices) {
    return groups.grouping == Grouping::kDense ? 0 : static_cast<uint64_t>(matrices);
}

// An alignment beyond the `m` rows of A leaves room for one group, as M rounded up does; so rows fit 32 bits.
inline GroupArgs group_args(const Groups& groups, int64_t m) {
    const auto alignment = static_cast<uint32_t>(min_of(groups.alignment, align_up<int64_t>(m, kWgmmaM)));
    return {groups.layout, static_cast<uint32_t>(groups.count), alignment,
            groups.zero_padding ? alignment : 1};
}

inline plan::GroupShape group_shape(const Groups& groups) {
    return {groups.grouping, groups.count, groups.expected_m, groups.alignment};
}

inline uint64_t hash_word(const plan::GroupShape& groups) {
    return static_cast<uint64_t>(groups.grouping) | static_cast<uint64_t>(groups.count) << 8 |
           static_cast<uint64_t>(groups.alignment) << 40;
}

}  // namespace deep_gemm::ops
