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

std::string_view bare_name(Dtype dtype) {
    switch (dtype) {
        case Dtype::kF8E4M3:
            return "float8_e4m3fn";
        case Dtype::kF8E8M0:
            return "float8_e8m0fnu";
        case Dtype::kF8E5M2:
            return "float8_e5m2";
        case Dtype::kF4E2M1x2:
            return "float4_e2m1fn_x2";
        case Dtype::kBf16:
            return "bfloat16";
        case Dtype::kF16:
            return "float16";
        case Dtype::kF32:
            return "float32";
        case Dtype::kF64:
            return "float64";
        case Dtype::kI8:
            return "int8";
        case Dtype::kU8:
            return "uint8";
        case Dtype::kBool:
            return "bool";
        case Dtype::kI16:
            return "int16";
        case Dtype::kI32:
            return "int32";
        case Dtype::kI64:
            return "int64";
        case Dtype::kOther:
            break;
    }
    return {};
}

}  // namespace

std::string dtype_name(Dtype dtype) {
    const std::string_view name = bare_name(dtype);
    if (name.empty()) return "a dtype that deep_gemm has no use for";
    // house: crossed (frontend): a message spells a dtype as its reader writes it
    return fmt::format("torch.{}", name);
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
