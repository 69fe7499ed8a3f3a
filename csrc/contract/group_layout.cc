#include "contract/group_layout.h"

#include <deep_gemm/base/kernel_args.h>

#include <array>

#include "contract/expect.h"
#include "contract/output.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

// An entry of a layout: how many there are, and what it says.
struct Entries {
    Extent count;
    std::string_view meaning;
};

// Adjacent int32s, each of which says something of a row or a group.
const int32_t* checked_entries(const TensorView& layout, std::string_view name, const Entries& entries,
                               const TensorView& d) {
    const Extent& count = entries.count;
    const std::array<Extent, 1> shape{count};
    expect(layout, name)
        .rank(1, count.letter == "M" ? "[M]" : "[G]")
        .dtype({Dtype::kI32}, "convert it with .int()")
        .shape(shape, entries.meaning)
        .rows_contiguous(count.letter)
        .base_aligned(sizeof(int32_t));
    check_apart(layout, name, d);
    return static_cast<const int32_t*>(layout.data);
}

}  // namespace

void check_options(const ContiguousLayout& layout) {
    const int64_t hint = layout.expected_m_for_psum_layout.value_or(0);
    if (layout.expected_m_for_psum_layout && !layout.use_psum_layout)
        refuse("expected_m_for_psum_layout", "None without use_psum_layout, got {}; leave it out", hint);
    if (hint < 0)
        refuse("expected_m_for_psum_layout",
               "the rows a group is likely to have, 0 or more, got {}; it is only a hint", hint);
    // A tile holds rows of one group, and is at least as high as one wgmma.
    if (layout.alignment <= 0 || layout.alignment % kWgmmaM != 0)
        refuse("alignment",
               "a positive multiple of {} rows, the least height of a tile on SM90, got {}; call "
               "set_mk_alignment_for_contiguous_layout(128) and lay the groups out anew",
               kWgmmaM, layout.alignment);
}

void check_options(const MaskedLayout& layout) {
    if (layout.expected_m < 0)
        refuse("expected_m", "the rows a group is likely to want, 0 or more, got {}; it is only a hint",
               layout.expected_m);
}

void check_device(const ContiguousLayout& layout, const Device& device) {
    expect(layout.grouped_layout, "grouped_layout").same_device(device, "a");
}

void check_device(const MaskedLayout& layout, const Device& device) {
    expect(layout.masked_m, "masked_m").same_device(device, "a");
}

Groups checked_groups(const ContiguousLayout& layout, const LayoutExtents& extents, const TensorView& d) {
    const Entries ends{{extents.groups, "G"}, "the end row of each group, with use_psum_layout"};
    const Entries ids{{extents.m, "M"}, "a group for each row of a"};
    return {.grouping = layout.grouping(),
            .count = extents.groups,
            .layout = checked_entries(layout.grouped_layout, "grouped_layout",
                                      layout.use_psum_layout ? ends : ids, d),
            .expected_m = layout.expected_m_for_psum_layout.value_or(0),
            .alignment = layout.alignment,
            .zero_padding = layout.ensure_zero_padding};
}

Groups checked_groups(const MaskedLayout& layout, const LayoutExtents& extents, const TensorView& d) {
    const Entries counts{{extents.groups, "G"}, "a count of rows for each group"};
    return {.grouping = layout.grouping(),
            .count = extents.groups,
            .layout = checked_entries(layout.masked_m, "masked_m", counts, d),
            .expected_m = layout.expected_m};
}

}  // namespace deep_gemm::contract
