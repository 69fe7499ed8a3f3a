// Shared-memory matrix descriptors and the element address functions (verified on H200 with random LBO, SBO
// and odd starts, except BASE32B).
#pragma once

#include <cstdint>
#include <vector>

#include "async/tensor_map.h"
#include "machine/state.h"
#include "simt/access.h"
#include "tensor/formats.h"

namespace emu {

enum class Major : uint8_t { kK, kMn };

struct MatrixDescriptor {
    uint32_t start, lbo, sbo;
    uint32_t span;  // 0 without swizzle, else 32, 64, 128
    MapSwizzle swizzle;
};

MatrixDescriptor decode_sm90_descriptor(uint64_t bits);
MatrixDescriptor decode_sm100_descriptor(uint64_t bits);

// Offset in the CTA's window of the 16-byte chunk `chunk` along the contiguous dimension, at `line` of the
// other one: K-major: line = mn, chunk along K. MN-major: line = k, chunk along MN.
uint32_t chunk_offset(const MatrixDescriptor& d, Major major, uint32_t line, uint32_t chunk);

// How elements lie in shared memory.
struct ElementLayout {
    int container_bits;  // space per element: 8 for padded f4/f6
    int element_bits;
    bool is_padded;  // 16 elements packed at the start of a 16-byte chunk
};

// Reads elements into raw[k * count + i]. `first` is the first row or column, `depth` elements along K.
struct TileRead {
    Cta* cta;
    MatrixDescriptor descriptor;
    Major major;
    ElementLayout layout;
    int first, count, depth;
};
void read_tile(Exec& x, const TileRead& tile, const Accessor& who, std::vector<uint32_t>& raw);

}  // namespace emu
