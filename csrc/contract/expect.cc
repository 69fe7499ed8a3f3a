#include "contract/expect.h"

#include <fmt/format.h>

#include <deep_gemm/base/math.h>

#include "contract/refuse.h"

namespace deep_gemm::contract {

void Expect::fail_device(const Device& device, std::string_view other) const {
    refuse(name_, "a tensor on {}, where {} is, got one on {}; move all tensors of a call to one device",
           device_text(device), other, device_text(tensor_.device));
}

void Expect::fail_rank(int expected, std::string_view dims) const {
    refuse(name_, "{} dimensions {}, got {} (shape {}); reshape or slice it", expected, dims, tensor_.rank,
           shape_text(tensor_));
}

void Expect::fail_dtype(std::initializer_list<Dtype> accepted, std::string_view advice) const {
    std::string names;
    for (const Dtype d : accepted) names += fmt::format("{}{}", names.empty() ? "" : " or ", dtype_name(d));
    refuse(name_, "dtype {}, got {}; {}", names, dtype_name(tensor_.dtype), advice);
}

void Expect::fail_shape(std::span<const Extent> extents, std::string_view advice) const {
    std::string values, letters;
    for (const Extent& extent : extents) {
        const char* separator = values.empty() ? "" : ", ";
        values += fmt::format("{}{}", separator, extent.value);
        letters += fmt::format("{}{}", separator, extent.letter);
    }
    refuse(name_, "shape [{}] ([{}]), got {}; {}", values, letters, shape_text(tensor_), advice);
}

void Expect::fail_extent(int dimension) const {
    refuse(name_, "extents below 2^31, got {} in dimension {} (shape {}); split the problem",
           tensor_.shape[dimension], dimension, shape_text(tensor_));
}

void Expect::fail_unit_stride(std::string_view letter) const {
    refuse(name_, "stride 1 along {0}, got {1} (strides {2}, shape {3}); make it contiguous along {0}",
           letter, tensor_.stride[tensor_.column_dimension()], strides_text(tensor_), shape_text(tensor_));
}

void Expect::fail_row_alignment() const {
    refuse(name_,
           "a row stride that is a multiple of 16 bytes, got {} bytes (strides {}, shape {}); pad the rows "
           "to {} bytes",
           row_stride() * bytes(), strides_text(tensor_), shape_text(tensor_),
           align_up<int64_t>(tensor_.columns() * bytes(), kTmaAlignment));
}

void Expect::fail_row_overlap() const {
    refuse(name_,
           "a row stride of at least {0} elements, the length of a row, got {1} (shape {2}); call "
           ".contiguous() on it",
           tensor_.columns(), row_stride(), shape_text(tensor_));
}

void Expect::fail_distance(std::string_view what, int64_t elements) const {
    refuse(name_,
           "a {} stride below 2^40 bytes, got {} elements (strides {}, shape {}); call .contiguous() on it",
           what, elements, strides_text(tensor_), shape_text(tensor_));
}

bool Expect::groups_apart() const {
    const int64_t group_stride = tensor_.stride[0];
    if (group_stride >= group_length()) return true;
    const int64_t turn = (tensor_.shape[0] - 1) * group_stride + tensor_.columns();
    return group_stride >= tensor_.columns() && row_stride() >= turn;
}

void Expect::fail_group_alignment() const {
    refuse(name_,
           "a group stride that is a multiple of 16 bytes, got {} bytes (strides {}, shape {}); pad the "
           "groups to {} bytes",
           tensor_.stride[0] * bytes(), strides_text(tensor_), shape_text(tensor_),
           align_up<int64_t>(group_length() * bytes(), kTmaAlignment));
}

void Expect::fail_group_overlap() const {
    refuse(name_,
           "groups that do not overlap, a stride of at least {} elements between them, got {} (strides {}, "
           "shape {}); call .contiguous() on it",
           group_length(), tensor_.stride[0], strides_text(tensor_), shape_text(tensor_));
}

void Expect::fail_base(int alignment) const {
    refuse(name_,
           "an address that is a multiple of {} bytes, got one {} bytes past such; call .clone() on the view",
           alignment, reinterpret_cast<uintptr_t>(tensor_.data) % static_cast<unsigned>(alignment));
}

void Expect::fail_negative_stride() const {
    refuse(name_, "strides of 0 or more, got {}; call .contiguous() on it", strides_text(tensor_));
}

}  // namespace deep_gemm::contract
