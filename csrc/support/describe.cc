#include "support/describe.h"

#include <fmt/format.h>

#include <span>

namespace deep_gemm {

namespace {

std::string list_text(std::span<const int64_t> values) {
    std::string text = "[";
    for (std::size_t i = 0; i < values.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
    return text + "]";
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
    switch (dtype) {
        case Dtype::kF8E4M3:
            return "torch.float8_e4m3fn";
        case Dtype::kF8E8M0:
            return "torch.float8_e8m0fnu";
        case Dtype::kF8E5M2:
            return "torch.float8_e5m2";
        case Dtype::kF4E2M1x2:
            return "torch.float4_e2m1fn_x2";
        case Dtype::kBf16:
            return "torch.bfloat16";
        case Dtype::kF16:
            return "torch.float16";
        case Dtype::kF32:
            return "torch.float32";
        case Dtype::kF64:
            return "torch.float64";
        case Dtype::kI8:
            return "torch.int8";
        case Dtype::kU8:
            return "torch.uint8";
        case Dtype::kBool:
            return "torch.bool";
        case Dtype::kI16:
            return "torch.int16";
        case Dtype::kI32:
            return "torch.int32";
        case Dtype::kI64:
            return "torch.int64";
        case Dtype::kOther:
            break;
    }
    return "a dtype that deep_gemm has no use for";
}

std::string device_text(const Device& device) {
    switch (device.kind) {
        case Device::Kind::kCpu:
            return "cpu";
        case Device::Kind::kCuda:
            return fmt::format("cuda:{}", device.index);
        case Device::Kind::kOther:
            break;
    }
    return "neither a CUDA device nor the CPU";
}

std::string shape_text(const TensorView& t) {
    return list_text({t.shape.data(), static_cast<std::size_t>(t.rank)});
}

std::string strides_text(const TensorView& t) {
    return list_text({t.stride.data(), static_cast<std::size_t>(t.rank)});
}

}  // namespace deep_gemm
