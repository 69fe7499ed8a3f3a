// tcgen05.ld, st and cp (PTX ISA 9.7.16.8). Fragments 32x32b and 16x256b are settled by third-party kernels,
// the others follow the ISA figures; cp shapes other than 32x128b.warpx4 are refused.
#include "async/tmem_access.h"

#include <cstring>

#include "async/descriptor.h"
#include "async/engine.h"
#include "scheduler/hazards.h"
#include "simt/gather.h"

namespace emu {
namespace {

enum class Fragment : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b };

struct TmemMove {
    Fragment fragment;
    int registers;
};

struct Spot {
    uint32_t lane, column;
};

// Where register r of lane l lies, relative to the address.
Spot spot_of(Fragment fragment, uint32_t r, uint32_t l) {
    switch (fragment) {
        case Fragment::k32x32b:
            return {l, r};
        case Fragment::k16x64b:
            return {(l >> 2) + 8 * (l & 1), (l >> 1 & 1) + 2 * r};
        case Fragment::k16x128b:
            return {(l >> 2) + 8 * (r & 1), (l & 3) + 4 * (r >> 1)};
        default:
            return {(l >> 2) + 8 * (r >> 1 & 1), 2 * (l & 3) + (r & 1) + 8 * (r >> 2)};
    }
}

uint32_t columns_of(const TmemMove& move) {
    switch (move.fragment) {
        case Fragment::k32x32b:
            return uint32_t(move.registers);
        case Fragment::k16x256b:
            return uint32_t(move.registers) * 2;
        default:
            return uint32_t(move.registers) * 2;
    }
}

struct Window {
    uint32_t part, lane, column;
};

// A warp reaches lanes 32 (w % 4) and up. Hardware ignores bits 5 and 6 of the lane; bit 4 counts.
Window window_of(Exec& x, const Operand& address, const TmemMove& move, LaneMask lanes) {
    if (lanes != kAllLanes) fault("tcgen05.ld and st need all 32 lanes");
    const TmemAddress at = tmem_address(x.uniform(address.slot, lanes, "taddr") + uint64_t(address.offset));
    const auto part = uint32_t(x.warp.index % 4);
    const uint32_t given = at.lane & 0x60;
    if (given != 0 && given != part * 32)
        fault("tcgen05.ld/st: lane %u is outside of warp %d's part", at.lane, x.warp.index);
    const uint32_t within = at.lane & 0x1F;
    if (move.fragment == Fragment::k32x32b ? within != 0 : within % 16 != 0)
        fault("tcgen05.ld/st: illegal lane %u", at.lane);
    check_allocated(x.cta, at.column, columns_of(move), "tcgen05.ld/st");
    return {part, part * 32 + within, at.column};
}

Step load(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask lanes) {
        const auto& move = i.as<TmemMove>();
        const Window w = window_of(x, i.operands[1], move, lanes);
        shadow_tmem(x, {x.cta, 1u << w.part, w.column, columns_of(move)}, Use::kRead,
                    tmem_accessor(x, ++x.warp.tmem_time));
        for (uint32_t r = 0; r < uint32_t(move.registers); ++r) {
            const int slot = i.operands[0].elements[r];
            for (uint32_t l = 0; l < kWarpLanes; ++l) {
                const Spot s = spot_of(move.fragment, r, l);
                x.slot(slot)[l] = x.cta.tmem.word(w.lane + s.lane, w.column + s.column);
            }
            set_hazard(x.warp, slot, Hazard::kTmemLoad);
        }
    });
}

Step store(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask lanes) {
        const auto& move = i.as<TmemMove>();
        const Window w = window_of(x, i.operands[0], move, lanes);
        shadow_tmem(x, {x.cta, 1u << w.part, w.column, columns_of(move)}, Use::kWrite,
                    tmem_accessor(x, ++x.warp.tmem_time));
        for (uint32_t r = 0; r < uint32_t(move.registers); ++r)
            for (uint32_t l = 0; l < kWarpLanes; ++l) {
                const Spot s = spot_of(move.fragment, r, l);
                x.cta.tmem.word(w.lane + s.lane, w.column + s.column) =
                    uint32_t(x.slot(i.operands[1].elements[r])[l]);
            }
        ++x.launch.progress;
    });
}

void decode_move(Decoder& d, size_t fragment_operand, Handler handler) {
    d.require("sync");
    d.require("aligned");
    TmemMove move{};
    if (d.has("16x32bx2")) d.refuse("the 16x32bx2 fragment is not supported");
    if (d.has("pack::16b") || d.has("unpack::16b")) d.refuse("16-bit packing is not supported");
    move.fragment = static_cast<Fragment>(d.require_one({"32x32b", "16x64b", "16x128b", "16x256b"}));
    const int repeat = 1 << d.require_one({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
    move.registers = repeat * (move.fragment == Fragment::k16x128b   ? 2
                               : move.fragment == Fragment::k16x256b ? 4
                                                                     : 1);
    d.require("b32");
    Operand& registers = d.instr.operands.at(fragment_operand);
    if (registers.kind == Operand::Kind::kSlot) registers.elements = {registers.slot};
    if (registers.elements.size() != size_t(move.registers)) d.refuse("wrong number of registers");
    d.keep(move);
    d.set(handler);
}

struct ScaleCopy {
    uint64_t descriptor;
    TmemAddress to;
    uint32_t time;
    Clock knowledge, view;
};

// Row r of the source: 16 bytes at the K-major, unswizzled address. It lands in lanes r + 0, 32, 64, 96.
void copy_scales(Exec& x, Cta& cta, const ScaleCopy& c) {
    const MatrixDescriptor descriptor = decode_sm100_descriptor(c.descriptor);
    check_allocated(cta, c.to.column, 4, "tcgen05.cp");
    shadow_tmem(x, {cta, 0xF, c.to.column, 4}, Use::kWrite, tensor_accessor(x, c.time, c.view));
    const Accessor reader = x.async_accessor(x.warp.tensor_actor, c.time, c.knowledge);
    for (uint32_t row = 0; row < 32; ++row) {
        const uint32_t offset = chunk_offset(descriptor, Major::kK, row, 0);
        const SharedPlace place = locate_shared(x, offset | cta.rank << kRankShift, 16, "tcgen05.cp");
        shadow_shared(x, place, 16, Use::kRead, reader);
        uint32_t words[4];
        std::memcpy(words, place.bytes(), 16);
        for (uint32_t column = 0; column < 4; ++column)
            for (uint32_t part = 0; part < 4; ++part)
                cta.tmem.word(part * 32 + row, c.to.column + column) = words[column];
    }
}

Step copy(Exec& x, const Instr& i, LaneMask mask) {
    const int group = int(i.mode);
    check_cta_group(x, group);
    for_lanes(mask, [&](int lane) {
        ScaleCopy c{x.slot(i.a)[lane], tmem_address(address_of(x, i.operands[0], lane)), ++x.warp.tensor_time,
                    x.warp.knowledge, x.warp.tensor_view};
        if (c.to.lane != 0) fault("tcgen05.cp: the destination must start at lane 0, not %u", c.to.lane);
        Exec issue = x;
        submit_tensor(x, [issue, group, c]() mutable {
            const uint32_t first = group == 2 ? issue.cta.rank & ~1u : issue.cta.rank;
            for (uint32_t rank = first; rank < first + uint32_t(group); ++rank)
                copy_scales(issue, *issue.cluster.ctas.at(rank), c);
        });
    });
    return Step::kNext;
}

}  // namespace

void check_allocated(Cta& cta, uint32_t column, uint32_t count, const char* what) {
    if (cta.tmem.words.empty()) fault("%s: CTA %u has not allocated tensor memory", what, cta.rank);
    if (column + count > Tmem::kColumns)
        fault("%s: columns %u..%u exceed 512", what, column, column + count - 1);
    for (uint32_t c = column; c < column + count; ++c)
        if (!cta.tmem.owner[c])
            fault("%s: tensor memory column %u of CTA %u is not allocated", what, c, cta.rank);
}

void shadow_tmem(Exec& x, const TmemRange& range, Use use, const Accessor& who) {
    const auto& [cta, parts, column, count] = range;
    if (!x.launch.shadow.is_enabled) return;
    const Shadow::Place where{"tensor memory", cta.rank, 0};
    for (uint32_t part = 0; part < 4; ++part) {
        if (!(parts >> part & 1)) continue;
        Cell* cells = &cta.tmem.cells[part * Tmem::kColumns];
        if (use == Use::kWrite) {
            x.launch.shadow.write(cells, column * 4, count * 4, who, where);
            continue;
        }
        for (uint32_t c = column; c < column + count; ++c)
            if (!cells[c].initialised)
                fault("tensor memory column %u of CTA %u, lanes %u..%u is read before it was written", c,
                      cta.rank, 32 * part, 32 * part + 31);
        x.launch.shadow.read(cells, column * 4, count * 4, who, where);
    }
}

Accessor tmem_accessor(Exec& x, uint32_t time) {
    Accessor who = x.accessor(0);
    who.actor = x.warp.tmem_actor;
    who.time = time;
    who.knowledge = &x.warp.tensor_view;
    return who;
}

Accessor tensor_accessor(Exec& x, uint32_t time, const Clock& view) {
    Accessor who = x.async_accessor(x.warp.tensor_actor, time, view);
    who.is_async_proxy = false;  // operations of one thread on tensor memory are ordered among themselves
    return who;
}

void check_cta_group(Exec& x, int group) {
    if (x.cluster.tcgen05_cta_group == 0) x.cluster.tcgen05_cta_group = group;
    if (x.cluster.tcgen05_cta_group != group)
        fault("tcgen05 instructions with both cta_group::1 and cta_group::2 in one kernel");
    if (group == 2 && (x.cluster.ctas.size() % 2 != 0))
        fault("cta_group::2 needs a cluster with an even number of CTAs");
}

int take_cta_group(Decoder& d) {
    return d.require_one({"cta_group::1", "cta_group::2"}) + 1;
}

void decode_tmem_load(Decoder& d) {
    decode_move(d, 0, load);
}

void decode_tmem_store(Decoder& d) {
    decode_move(d, 1, store);
    d.no_destination();
}

void decode_tmem_copy(Decoder& d) {
    d.instr.mode = uint32_t(take_cta_group(d));
    if (!d.take("32x128b")) d.refuse("only the 32x128b.warpx4 copy is supported");
    d.require("warpx4");
    d.no_destination();
    d.set(copy);
}

}  // namespace emu
