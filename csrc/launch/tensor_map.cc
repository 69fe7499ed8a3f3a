#include <array>
#include <bit>

#include "launch/driver.h"
#include "launch/launch.h"
#include "support/error.h"

namespace deep_gemm::launch {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));

CUtensorMapDataType data_type(int element_bytes) {
    switch (element_bytes) {
        case 1:
            return CU_TENSOR_MAP_DATA_TYPE_UINT8;
        case 2:
            return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        default:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    }
}

}  // namespace

TensorMap encode_tile_map(const TileMapSpec& spec) {
    CUtensorMap map;  // its alignment differs between versions of the header
    const std::array<cuuint64_t, 2> extents = {spec.inner, spec.outer};
    const std::array<cuuint64_t, 1> strides = {spec.outer_stride};
    const std::array<cuuint32_t, 2> box = {spec.box_inner, spec.box_outer};
    const std::array<cuuint32_t, 2> element_strides = {1, 1};
    const CUresult result = driver().encode_tiled(
        &map, data_type(spec.element_bytes), 2, const_cast<void*>(spec.data), extents.data(), strides.data(),
        box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) [[unlikely]]
        check_driver(
            result, "cuTensorMapEncodeTiled",
            fmt::format("address {}, {} x {} elements of {} bytes, row pitch {} bytes, box {} x {} cannot be "
                        "tiled; the address and the pitch must be multiples of 16 bytes",
                        spec.data, spec.outer, spec.inner, spec.element_bytes, spec.outer_stride,
                        spec.box_outer, spec.box_inner)
                .c_str());
    return std::bit_cast<TensorMap>(map);
}

}  // namespace deep_gemm::launch
