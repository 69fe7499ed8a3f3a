// Rules of cuTensorMapEncodeTiled (driver API reference) and the swizzle functions (measured on H200; atoms
// of 32 and 64 bytes follow the reference only).
#include "async/tensor_map.h"

#include "machine/fault.h"

namespace emu {
namespace {

constexpr int kBits[16] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};

uint32_t span_of(MapSwizzle swizzle) {
    switch (swizzle) {
        case MapSwizzle::kNone:
            return 0;
        case MapSwizzle::k32B:
            return 32;
        case MapSwizzle::k64B:
            return 64;
        default:
            return 128;
    }
}

std::string check_ranges(const TensorMapRequest& r) {
    if (r.type < 0 || r.type > 15) return format("data type %d is unknown", r.type);
    if (r.type >= 13 && !r.allows_sub_byte) return "sub-byte types need sm_100";
    if (r.rank < 1 || r.rank > 5) return format("rank %d is not in 1..5", r.rank);
    if (r.interleave != 0) return "interleaved layouts are not supported";
    if (r.swizzle < 0 || r.swizzle > 6) return format("swizzle %d is unknown", r.swizzle);
    if (r.swizzle >= 4 && !r.allows_sub_byte) return "swizzle atoms of 32 and 64 bytes need sm_100";
    if (r.base == 0 || r.base % 16)
        return format("base address 0x%llx is not 16-byte aligned", static_cast<unsigned long long>(r.base));
    return "";
}

std::string check_dims(const TensorMapRequest& r) {
    for (int d = 0; d < r.rank; ++d) {
        if (r.dims[d] < 1 || r.dims[d] > uint64_t{1} << 32)
            return format("dimension %d is %llu", d, static_cast<unsigned long long>(r.dims[d]));
        if (r.box[d] < 1 || r.box[d] > 256)
            return format("box dimension %d is %u, not in 1..256", d, r.box[d]);
        if (r.element_strides[d] != 1)
            return format("element stride %d is %u; only 1 is supported", d, r.element_strides[d]);
    }
    for (int d = 0; d + 1 < r.rank; ++d) {
        const uint64_t stride = r.strides[d];
        if (stride % 16 || stride >= uint64_t{1} << 40)
            return format("stride %d is %llu bytes, no multiple of 16", d,
                          static_cast<unsigned long long>(stride));
    }
    return "";
}

std::string check_box(const TensorMap& map) {
    const uint32_t inner = map.row_smem_bytes();
    if (inner % 16) return format("the inner box has %u bytes, no multiple of 16", inner);
    const uint32_t span = span_of(map.swizzle);
    if (span && inner > span)
        return format("the inner box has %u bytes, more than the swizzle span of %u", inner, span);
    if (!map.is_padded()) return "";
    if (map.box[0] != 128 || map.dim(0) % 128)
        return "padded sub-byte types need an inner box of 128 and an inner dimension that is a multiple of "
               "128";
    if (map.base % 32) return "padded sub-byte types need a 32-byte aligned base";
    for (int d = 0; d + 1 < map.rank; ++d)
        if (map.strides[d] % 32) return "padded sub-byte types need strides that are multiples of 32 bytes";
    const bool ok = map.swizzle == MapSwizzle::kNone || map.swizzle == MapSwizzle::k128B ||
                    map.swizzle == MapSwizzle::k128BAtom32B;
    return ok ? "" : "padded sub-byte types allow no swizzle, 128B or 128B_ATOM_32B";
}

}  // namespace

int TensorMap::element_bits() const {
    return kBits[static_cast<int>(type)];
}

uint32_t TensorMap::pitch() const {
    return swizzle == MapSwizzle::kNone ? row_smem_bytes() : span_of(swizzle);
}

std::string encode_tensor_map(const TensorMapRequest& r, TensorMap& map) {
    if (std::string problem = check_ranges(r); !problem.empty()) return problem;
    if (std::string problem = check_dims(r); !problem.empty()) return problem;
    map = TensorMap{};
    map.base = r.base;
    map.rank = static_cast<uint8_t>(r.rank);
    map.type = static_cast<MapType>(r.type);
    map.swizzle = static_cast<MapSwizzle>(r.swizzle);
    map.fills_nan = r.fill == 1;
    for (int d = 0; d < r.rank; ++d) {
        map.dims_minus_one[d] = static_cast<uint32_t>(r.dims[d] - 1);
        map.box[d] = static_cast<uint16_t>(r.box[d]);
        if (d > 0) map.strides[d - 1] = r.strides[d - 1];
    }
    return check_box(map);
}

uint32_t swizzled(uint32_t a, MapSwizzle swizzle) {
    switch (swizzle) {
        case MapSwizzle::kNone:
            return a;
        case MapSwizzle::k32B:
            return a ^ ((a >> 3) & 0x10);
        case MapSwizzle::k64B:
            return a ^ ((a >> 3) & 0x30);
        case MapSwizzle::k128B:
            return a ^ ((a >> 3) & 0x70);
        case MapSwizzle::k128BAtom32B:
            return a ^ ((a >> 2) & 0x60);
        case MapSwizzle::k128BAtom32BFlip8B:
            fault("the 128B_ATOM_32B_FLIP_8B swizzle is not supported");
        case MapSwizzle::k128BAtom64B:
            return a ^ ((a >> 1) & 0x40);
    }
    return a;
}

}  // namespace emu
