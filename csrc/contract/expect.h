// Fluent checks of one tensor: expect(d, "d").rank(2).dtype(Dtype::kBf16).rows_contiguous("N")...
// A check that holds costs a comparison; one that fails throws an Error whose sentence names the argument,
// what was expected, what came and what to do. Pure: memory behind the tensor is never read.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "support/describe.h"
#include "support/tensor_view.h"

namespace deep_gemm::contract {

inline constexpr int kTmaAlignment = 16;  // bytes: of a base address and of every stride but the innermost
inline constexpr int64_t kTmaStrideLimit = int64_t{1} << 40;  // bytes: every stride of a map lies below

// A word with what it stands for, e.g. {256, "N"}: messages print both.
struct Extent {
    int64_t value;
    std::string_view letter;
};

class Expect {
  public:
    Expect(const TensorView& tensor, std::string_view name) : tensor_(tensor), name_(name) {}

    // The tensor lives where `other` does.
    const Expect& same_device(const Device& device, std::string_view other) const {
        if (!(tensor_.device == device)) [[unlikely]]
            fail_device(device, other);
        return *this;
    }
    const Expect& rank(int expected, std::string_view dims) const {
        if (tensor_.rank != expected) [[unlikely]]
            fail_rank(expected, dims);
        return *this;
    }
    // One of `accepted`; `advice` says what to do otherwise.
    const Expect& dtype(std::initializer_list<Dtype> accepted, std::string_view advice) const {
        for (const Dtype d : accepted)
            if (tensor_.dtype == d) return *this;
        fail_dtype(accepted, advice);
    }
    // As many extents as the tensor has dimensions.
    const Expect& shape(std::span<const Extent> extents, std::string_view advice) const {
        for (std::size_t i = 0; i < extents.size(); ++i)
            if (tensor_.shape[i] != extents[i].value) [[unlikely]]
                fail_shape(extents, advice);
        return *this;
    }
    // Every extent fits the kernels' 32-bit indices.
    const Expect& extents_fit() const {
        for (int i = 0; i < tensor_.rank; ++i)
            if (tensor_.shape[i] < 0 || tensor_.shape[i] >= (int64_t{1} << 31)) [[unlikely]]
                fail_extent(i);
        return *this;
    }
    // Elements of a row are adjacent; `letter` names the last dimension. Of extents 0 and 1 any stride is
    // right.
    const Expect& rows_contiguous(std::string_view letter) const {
        const int column = tensor_.column_dimension();
        if (tensor_.stride[column] != 1 && tensor_.shape[column] > 1 && strides_matter()) [[unlikely]]
            fail_unit_stride(letter);
        return *this;
    }
    // Rows neither overlap, nor start off a 16-byte boundary, nor lie further apart than a map can say.
    const Expect& rows_addressable() const {
        if (tensor_.rows() <= 1) return *this;
        const int64_t elements = row_stride();
        const bool right = is_distance(elements) && is_aligned(elements) && elements >= tensor_.columns();
        if (!right && strides_matter()) [[unlikely]] {
            if (!is_distance(elements)) fail_distance("row", elements);
            if (!is_aligned(elements)) fail_row_alignment();
            fail_row_overlap();
        }
        return *this;
    }
    // Of three dimensions: groups start on 16-byte boundaries and share no byte. They may lie one after
    // another or interleave, a row of each in turn.
    const Expect& groups_addressable() const {
        if (tensor_.rank == 3 && tensor_.shape[0] > 1 && strides_matter()) {
            if (!is_distance(tensor_.stride[0])) [[unlikely]]
                fail_distance("group", tensor_.stride[0]);
            if (!is_aligned(tensor_.stride[0])) [[unlikely]]
                fail_group_alignment();
            if (!groups_apart()) [[unlikely]]
                fail_group_overlap();
        }
        return *this;
    }
    const Expect& base_aligned(int alignment) const {
        if (reinterpret_cast<uintptr_t>(tensor_.data) % static_cast<unsigned>(alignment) != 0 && strides_matter()) [[unlikely]]
            fail_base(alignment);
        return *this;
    }
    // No stride is negative.
    const Expect& strides_forward() const {
        for (int i = 0; i < tensor_.rank; ++i)
            if (tensor_.shape[i] > 1 && tensor_.stride[i] < 0) [[unlikely]]
                fail_negative_stride();
        return *this;
    }

    // What any tensor a TMA map describes must be: rows contiguous, 16-byte rows, groups and base.
    const Expect& tma_addressable(std::string_view letter) const {
        return rows_contiguous(letter).rows_addressable().groups_addressable().base_aligned(kTmaAlignment);
    }

  private:
    // Asked after what is cheaper to know.
    bool strides_matter() const { return tensor_.numel() != 0; }
    int64_t bytes() const { return element_bytes(tensor_.dtype); }
    // Whether a map can say that lines lie so many elements apart.
    bool is_distance(int64_t elements) const {
        return elements < kTmaStrideLimit && elements * bytes() < kTmaStrideLimit;
    }
    bool is_aligned(int64_t elements) const { return elements * bytes() % kTmaAlignment == 0; }
    int64_t row_stride() const { return tensor_.stride[tensor_.row_dimension()]; }
    // Elements from the first of a group to its last.
    int64_t group_length() const { return (tensor_.rows() - 1) * row_stride() + tensor_.columns(); }
    bool groups_apart() const;

    [[noreturn]] void fail_device(const Device& device, std::string_view other) const;
    [[noreturn]] void fail_rank(int expected, std::string_view dims) const;
    [[noreturn]] void fail_dtype(std::initializer_list<Dtype> accepted, std::string_view advice) const;
    [[noreturn]] void fail_shape(std::span<const Extent> extents, std::string_view advice) const;
    [[noreturn]] void fail_extent(int dimension) const;
    [[noreturn]] void fail_unit_stride(std::string_view letter) const;
    [[noreturn]] void fail_row_alignment() const;
    [[noreturn]] void fail_row_overlap() const;
    [[noreturn]] void fail_group_alignment() const;
    [[noreturn]] void fail_group_overlap() const;
    [[noreturn]] void fail_distance(std::string_view what, int64_t elements) const;
    [[noreturn]] void fail_base(int alignment) const;
    [[noreturn]] void fail_negative_stride() const;

    const TensorView& tensor_;
    std::string_view name_;
};

// `name` is the argument as the caller knows it; both outlive the expression.
inline Expect expect(const TensorView& tensor, std::string_view name) {
    return {tensor, name};
}

}  // namespace deep_gemm::contract
