#include "contract/grouped_fp8_gemm.h"

#include <deep_gemm/base/kernel_args.h>

#include <array>

#include "contract/expect.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

// An entry of a layout: how many there are, and what it says.
struct Entries {
    Extent count;
    std::string_view meaning;
};

// Adjacent int32s, each of which says something of a row or a group.
void check_layout(const TensorView& layout, std::string_view name, const Entries& entries,
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
}

// A tile holds rows of one group, and is at least as high as one wgmma.
void check_alignment(int64_t alignment) {
    if (alignment <= 0 || alignment % kWgmmaM != 0)
        refuse("alignment",
               "a positive multiple of {} rows, the least height of a tile on SM90, got {}; call "
               "set_mk_alignment_for_contiguous_layout(128) and lay the groups out anew",
               kWgmmaM, alignment);
}

// The rows a group is likely to want; 0: nobody knows.
int64_t checked_hint(const ContiguousFp8GemmCall& call) {
    const int64_t hint = call.expected_m_for_psum_layout.value_or(0);
    if (call.expected_m_for_psum_layout && !call.use_psum_layout)
        refuse("expected_m_for_psum_layout", "None without use_psum_layout, got {}; leave it out", hint);
    if (hint < 0)
        refuse("expected_m_for_psum_layout",
               "the rows a group is likely to have, 0 or more, got {}; it is only a hint", hint);
    return hint;
}

}  // namespace

Device device_of(const ContiguousFp8GemmCall& call) {
    const Device device = device_of(static_cast<const Fp8Operands&>(call));
    expect(call.grouped_layout, "grouped_layout").same_device(device, "a");
    return device;
}

Device device_of(const MaskedFp8GemmCall& call) {
    const Device device = device_of(static_cast<const Fp8Operands&>(call));
    expect(call.masked_m, "masked_m").same_device(device, "a");
    return device;
}

Fp8GemmProblem check_fp8_gemm(const ContiguousFp8GemmCall& call, int arch_major) {
    device_of(call);
    const bool psum = call.use_psum_layout;
    const int64_t hint = checked_hint(call);
    check_alignment(call.alignment);
    Fp8GemmProblem problem = check_operands(call, psum ? Grouping::kPsum : Grouping::kContiguous, arch_major);
    const Entries ends{{problem.groups.count, "G"}, "the end row of each group, with use_psum_layout"};
    const Entries ids{{problem.m, "M"}, "a group for each row of a"};
    check_layout(call.grouped_layout, "grouped_layout", psum ? ends : ids, call.d);
    problem.groups.layout = static_cast<const int32_t*>(call.grouped_layout.data);
    problem.groups.alignment = call.alignment;
    problem.groups.expected_m = hint;
    problem.groups.zero_padding = call.ensure_zero_padding;
    return problem;
}

Fp8GemmProblem check_fp8_gemm(const MaskedFp8GemmCall& call, int arch_major) {
    device_of(call);
    if (call.expected_m < 0)
        refuse("expected_m", "the rows a group is likely to want, 0 or more, got {}; it is only a hint",
               call.expected_m);
    Fp8GemmProblem problem = check_operands(call, Grouping::kMasked, arch_major);
    const Entries counts{{problem.groups.count, "G"}, "a count of rows for each group"};
    check_layout(call.masked_m, "masked_m", counts, call.d);
    problem.groups.layout = static_cast<const int32_t*>(call.masked_m.data);
    problem.groups.expected_m = call.expected_m;
    return problem;
}

}  // namespace deep_gemm::contract
