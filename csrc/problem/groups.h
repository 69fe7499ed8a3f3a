// How a GEMM is divided among groups, each with its own B.
#pragma once

#include <cstdint>

#include <deep_gemm/base/types.h>

namespace deep_gemm {

// types.h says what each grouping means.
struct Groups {
    Grouping grouping = Grouping::kDense;
    int64_t count = 1;  // matrices of B
    // kContiguous: [m], the group of each row; kMasked: [count], wanted rows; kPsum: [count], end rows
    const int32_t* layout = nullptr;
    int64_t expected_m = 0;    // kMasked, kPsum: a guess of the rows of a group, for planning alone
    int64_t alignment = 0;     // kContiguous, kPsum: groups start at multiples of it
    bool zero_padding = true;  // kPsum: rows between a group's end and the next aligned row become zeros
    bool operator==(const Groups&) const = default;

    // Matrices of A, and of D.
    int64_t matrices_of_a() const { return has_operand_per_group(grouping) ? count : 1; }
    int64_t matrices_of_d() const { return has_output_per_group(grouping) ? count : 1; }
    // Whether D has no rows to write.
    bool no_rows() const { return count == 0 && (has_entry_per_group(grouping) || has_output_per_group(grouping)); }
};

}  // namespace deep_gemm
