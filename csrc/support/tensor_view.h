// A tensor as the library sees it: borrowed memory, a type and a strided shape. No framework type crosses this line.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <deep_gemm/base/types.h>

namespace deep_gemm {

struct Device {
    enum class Kind : uint8_t { kCpu, kCuda, kOther };
    Kind kind = Kind::kCpu;
    int index = 0;
    bool operator==(const Device&) const = default;
};

inline constexpr int kMaxRank = 5;

struct TensorView {
    void* data = nullptr;
    Dtype dtype = Dtype::kOther;
    Device device;
    int rank = 0;
    std::array<int64_t, kMaxRank> shape{};   // elements
    std::array<int64_t, kMaxRank> stride{};  // elements; of an extent 0 or 1 it means nothing

    // The same memory with dimensions `i` and `j` exchanged.
    TensorView transposed(int i, int j) const {
        TensorView t = *this;
        std::swap(t.shape[i], t.shape[j]);
        std::swap(t.stride[i], t.stride[j]);
        return t;
    }
    // The dimensions of a matrix operand: dimension 0 of three counts its groups.
    int row_dimension() const { return rank - 2; }
    int column_dimension() const { return rank - 1; }
    int64_t rows() const { return shape[row_dimension()]; }
    int64_t columns() const { return shape[column_dimension()]; }
    int64_t numel() const {
        int64_t n = 1;
        for (int i = 0; i < rank; ++i) n *= shape[i];
        return n;
    }
};

}  // namespace deep_gemm
