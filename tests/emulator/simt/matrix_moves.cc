// ldmatrix, stmatrix (PTX ISA 9.7.14.5), 8x8 matrices of 16-bit elements.
#include <cstring>

#include "simt/access.h"
#include "simt/families.h"
#include "simt/gather.h"

namespace emu {
namespace {

// mode: bit 0 transposed. Row j of matrix i comes from the address of lane 8 i + j.
Step load_matrix(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) {
        const auto& out = i.operands[0].elements;
        for (size_t matrix = 0; matrix < out.size(); ++matrix) {
            uint16_t rows[8][8];
            for (int j = 0; j < 8; ++j) {
                const int lane = int(8 * matrix) + j;
                std::memcpy(
                    rows[j],
                    access(x, lane, Space::kShared, address_of(x, i.operands[1], lane), 16, Use::kRead), 16);
            }
            for (int l = 0; l < kWarpLanes; ++l) {
                const int p = l / 4, q = 2 * (l % 4);
                const uint32_t low = i.mode ? rows[q][p] : rows[p][q],
                               high = i.mode ? rows[q + 1][p] : rows[p][q + 1];
                x.slot(out[matrix])[l] = low | high << 16;
            }
        }
    });
}

Step store_matrix(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) {
        const auto& in = i.operands[1].elements;
        for (size_t matrix = 0; matrix < in.size(); ++matrix) {
            uint16_t rows[8][8];
            for (int l = 0; l < kWarpLanes; ++l) {
                const int p = l / 4, q = 2 * (l % 4);
                const auto value = uint32_t(x.slot(in[matrix])[l]);
                (i.mode ? rows[q][p] : rows[p][q]) = uint16_t(value);
                (i.mode ? rows[q + 1][p] : rows[p][q + 1]) = uint16_t(value >> 16);
            }
            for (int j = 0; j < 8; ++j) {
                const int lane = int(8 * matrix) + j;
                std::memcpy(
                    access(x, lane, Space::kShared, address_of(x, i.operands[0], lane), 16, Use::kWrite),
                    rows[j], 16);
            }
        }
    });
}

enum class Direction : uint8_t { kLoad, kStore };
void decode_matrix(Decoder& d, Direction direction) {
    const bool stores = direction == Direction::kStore;
    d.require("sync");
    d.require("aligned");
    d.require("m8n8");
    const int counts[] = {1, 2, 4};
    const int count = counts[d.require_one({"x1", "x2", "x4"})];
    d.instr.mode = d.take("trans");
    d.take_one({"shared", "shared::cta"});
    d.require("b16");
    const size_t fragment = stores ? 1 : 0;
    Operand& operand = d.instr.operands.at(fragment);
    if (operand.kind == Operand::Kind::kSlot) operand.elements = {operand.slot};
    if (operand.elements.size() != size_t(count)) d.refuse("wrong number of registers");
    if (stores) d.no_destination();
    d.set(stores ? store_matrix : load_matrix);
}
void decode_ldmatrix(Decoder& d) {
    decode_matrix(d, Direction::kLoad);
}
void decode_stmatrix(Decoder& d) {
    decode_matrix(d, Direction::kStore);
}

}  // namespace

FamilyTable matrix_families() {
    return {{"ldmatrix", decode_ldmatrix}, {"stmatrix", decode_stmatrix}};
}

}  // namespace emu
