// Tensors in words, spelled as PyTorch prints them: for messages and logs.
#pragma once

#include <string>

#include "support/tensor_view.h"

namespace deep_gemm {

std::string dtype_name(Dtype dtype);            // "torch.float8_e4m3fn"
std::string device_text(const Device& device);  // "cuda:1", "cpu"
std::string shape_text(const TensorView& t);    // "[128, 512]"
std::string strides_text(const TensorView& t);  // "[512, 1]", elements

// Bytes of one element; 0 for a dtype the library does not know.
constexpr int element_bytes(Dtype dtype) {
    switch (dtype) {
        case Dtype::kF8E4M3:
        case Dtype::kF8E8M0:
        case Dtype::kF8E5M2:
        case Dtype::kF4E2M1x2:
        case Dtype::kI8:
        case Dtype::kU8:
        case Dtype::kBool:
            return 1;
        case Dtype::kBf16:
        case Dtype::kF16:
        case Dtype::kI16:
            return 2;
        case Dtype::kF32:
        case Dtype::kI32:
            return 4;
        case Dtype::kF64:
        case Dtype::kI64:
            return 8;
        case Dtype::kOther:
            return 0;
    }
    return 0;
}

}  // namespace deep_gemm
