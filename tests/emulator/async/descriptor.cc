#include "async/descriptor.h"

#include <cstring>

namespace emu {
namespace {

MatrixDescriptor decode_common(uint64_t bits) {
    MatrixDescriptor d{};
    d.start = uint32_t(bits & 0x3FFF) << 4;
    d.lbo = uint32_t(bits >> 16 & 0x3FFF) << 4;
    d.sbo = uint32_t(bits >> 32 & 0x3FFF) << 4;
    if (bits >> 49 & 7)
        fault("matrix descriptor 0x%016llx: a base offset other than 0 is not supported",
              static_cast<unsigned long long>(bits));
    return d;
}

void set_swizzle(MatrixDescriptor& d, MapSwizzle swizzle) {
    d.swizzle = swizzle;
    d.span = swizzle == MapSwizzle::kNone  ? 0
             : swizzle == MapSwizzle::k32B ? 32
             : swizzle == MapSwizzle::k64B ? 64
                                           : 128;
}

uint32_t element_at(const uint8_t* chunk, int index, const ElementLayout& layout) {
    const int bits =
        layout.is_padded || layout.element_bits < 8 ? layout.element_bits : layout.container_bits;
    const int at = index * bits;
    uint32_t word = 0;
    std::memcpy(&word, chunk + at / 8, size_t(std::min(4, 16 - at / 8)));
    word >>= at % 8;
    return bits == 32 ? word : word & ((1u << bits) - 1);
}

}  // namespace

MatrixDescriptor decode_sm90_descriptor(uint64_t bits) {
    MatrixDescriptor d = decode_common(bits);
    if (bits >> 52 & 0x3FF || bits >> 46 & 7)
        fault("wgmma descriptor 0x%016llx: reserved bits are set", static_cast<unsigned long long>(bits));
    constexpr MapSwizzle kModes[] = {MapSwizzle::kNone, MapSwizzle::k128B, MapSwizzle::k64B,
                                     MapSwizzle::k32B};
    set_swizzle(d, kModes[bits >> 62]);
    return d;
}

MatrixDescriptor decode_sm100_descriptor(uint64_t bits) {
    MatrixDescriptor d = decode_common(bits);
    if ((bits >> 46 & 7) != 1)
        fault("tcgen05 descriptor 0x%016llx: bits 46..48 must be 001", static_cast<unsigned long long>(bits));
    if (bits >> 52 & 0x1FF)
        fault("tcgen05 descriptor 0x%016llx: reserved bits are set", static_cast<unsigned long long>(bits));
    switch (bits >> 61) {
        case 0:
            set_swizzle(d, MapSwizzle::kNone);
            break;
        case 1:
            set_swizzle(d, MapSwizzle::k128BAtom32B);
            break;
        case 2:
            set_swizzle(d, MapSwizzle::k128B);
            break;
        case 4:
            set_swizzle(d, MapSwizzle::k64B);
            break;
        case 6:
            set_swizzle(d, MapSwizzle::k32B);
            break;
        default:
            fault("tcgen05 descriptor 0x%016llx: illegal swizzle", static_cast<unsigned long long>(bits));
    }
    return d;
}

uint32_t chunk_offset(const MatrixDescriptor& d, Major major, uint32_t line, uint32_t chunk) {
    const uint32_t byte = chunk * 16;
    uint32_t address;
    if (major == Major::kK) {
        address = d.span == 0 ? d.start + line % 8 * 16 + line / 8 * d.sbo + chunk * d.lbo
                              : d.start + line % 8 * d.span + line / 8 * d.sbo + byte;
    } else if (d.span == 0) {
        address = d.start + chunk * d.sbo + line % 8 * 16 + line / 8 * d.lbo;
    } else if (d.swizzle == MapSwizzle::k128BAtom32B) {
        address = d.start + byte % 128 + byte / 128 * d.lbo + line % 4 * 128 + line / 4 * d.sbo;
    } else {
        address = d.start + byte % d.span + byte / d.span * d.lbo + line % 8 * d.span + line / 8 * d.sbo;
    }
    return swizzled(address & 0x3FFFF, d.swizzle);
}

void read_tile(Exec& x, const TileRead& tile, const Accessor& who, std::vector<uint32_t>& raw) {
    raw.resize(size_t(tile.count * tile.depth));
    const int per_chunk = 128 / tile.layout.container_bits;
    const bool k_major = tile.major == Major::kK;
    const int lines = k_major ? tile.count : tile.depth, along = k_major ? tile.depth : tile.count;
    const int first_line = k_major ? tile.first : 0, first_along = k_major ? 0 : tile.first;
    for (int line = 0; line < lines; ++line) {
        for (int i = 0; i < along;) {
            const int at = first_along + i;
            const uint32_t offset = chunk_offset(tile.descriptor, tile.major, uint32_t(first_line + line),
                                                 uint32_t(at / per_chunk));
            const SharedPlace place =
                locate_shared(x, offset | tile.cta->rank << kRankShift, 16, "matrix operand");
            shadow_shared(x, place, tile.layout.is_padded ? uint32_t(2 * tile.layout.element_bits) : 16,
                          Use::kRead, who);
            const int last = std::min(along, i + per_chunk - at % per_chunk);
            for (; i < last; ++i) {
                const uint32_t element =
                    element_at(place.bytes(), (first_along + i) % per_chunk, tile.layout);
                raw[k_major ? size_t(i * tile.count + line) : size_t(line * tile.count + i)] = element;
            }
        }
    }
}

}  // namespace emu
