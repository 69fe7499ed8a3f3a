// The emulator's own 128-byte tensor map. Real maps are opaque and are never interpreted.
#pragma once

#include <cstdint>
#include <string>

namespace emu {

// Numbering of the driver enumerations.
enum class MapType : uint8_t {
    kU8,
    kU16,
    kU32,
    kS32,
    kU64,
    kS64,
    kF16,
    kF32,
    kF64,
    kBF16,
    kF32Ftz,
    kTF32,
    kTF32Ftz,
    kU4Align8,
    kU4Align16,
    kU6Align16,
};
enum class MapSwizzle : uint8_t { kNone, k32B, k64B, k128B, k128BAtom32B, k128BAtom32BFlip8B, k128BAtom64B };

struct TensorMap {
    static constexpr uint64_t kMagic = 0x50414D524F534E54ull;  // "TNSORMAP"
    uint64_t magic = kMagic;
    uint64_t untouched =
        0;  // host code may clear bit 21 here (seen in a widely used library): carries nothing
    uint64_t base = 0;
    uint64_t strides[4] = {};  // bytes, dimensions 1..4
    uint32_t dims_minus_one[5] = {};
    uint16_t box[5] = {1, 1, 1, 1, 1};
    uint8_t rank = 0;
    MapType type = MapType::kU8;
    MapSwizzle swizzle = MapSwizzle::kNone;
    uint8_t interleave = 0;
    uint8_t fills_nan = 0;
    uint8_t reserved[37] = {};

    uint64_t dim(int d) const { return uint64_t{dims_minus_one[d]} + 1; }
    int element_bits() const;
    bool is_padded() const { return type == MapType::kU4Align16 || type == MapType::kU6Align16; }
    uint32_t row_data_bytes() const {
        return uint32_t(box[0]) * uint32_t(element_bits()) / 8;
    }  // in global memory
    uint32_t row_smem_bytes() const { return is_padded() ? box[0] : row_data_bytes(); }
    uint32_t pitch() const;  // of box rows in shared memory
    uint32_t rows() const { return uint32_t(box[1]) * box[2] * box[3] * box[4]; }
};
static_assert(sizeof(TensorMap) == 128);

struct TensorMapRequest {
    int type, rank, interleave, swizzle, fill;
    uint64_t base;
    const uint64_t* dims;
    const uint64_t* strides;
    const uint32_t* box;
    const uint32_t* element_strides;
    bool allows_sub_byte;  // sm_100
};

// Validates like the driver. Returns an empty string and fills the map, or says what is wrong.
std::string encode_tensor_map(const TensorMapRequest& request, TensorMap& map);

// XOR of the absolute shared address (CTA-relative).
uint32_t swizzled(uint32_t address, MapSwizzle swizzle);

}  // namespace emu
