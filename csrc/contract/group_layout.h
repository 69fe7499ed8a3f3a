// What says which rows belong to which group, of the GEMMs grouped along M, and the checks of it. Shared by
// operand formats.
#pragma once

#include <optional>

#include "problem/groups.h"
#include "support/tensor_view.h"

namespace deep_gemm::contract {

// Of one matrix A [M,K] that holds the rows of all groups.
struct ContiguousLayout {
    TensorView grouped_layout;  // int32 [M]: the group of each row, or -1; psum: [G], the end row of each
    int64_t alignment = 128;    // groups start at multiples of it
    bool use_psum_layout = false;
    bool ensure_zero_padding = true;                    // psum: rows between groups become zeros
    std::optional<int64_t> expected_m_for_psum_layout;  // psum: a guess of a group's rows

    Grouping grouping() const { return use_psum_layout ? Grouping::kPsum : Grouping::kContiguous; }
};

// Of A [G,M,K].
struct MaskedLayout {
    TensorView masked_m;     // int32 [G]: wanted rows of each group
    int64_t expected_m = 0;  // a guess of them: chooses a config, never a bit

    Grouping grouping() const { return Grouping::kMasked; }
};

// What can be refused without the operands: hints and the alignment.
void check_options(const ContiguousLayout& layout);
void check_options(const MaskedLayout& layout);

// The layout is on the operands' device, that of a.
void check_device(const ContiguousLayout& layout, const Device& device);
void check_device(const MaskedLayout& layout, const Device& device);

// The extents of a problem that a layout must have.
struct LayoutExtents {
    int64_t m, groups;
};

// The groups of the problem that writes `d`; values of the layout are not read. Throws Error.
Groups checked_groups(const ContiguousLayout& layout, const LayoutExtents& extents, const TensorView& d);
Groups checked_groups(const MaskedLayout& layout, const LayoutExtents& extents, const TensorView& d);

}  // namespace deep_gemm::contract
