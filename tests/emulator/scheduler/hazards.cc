#include "scheduler/hazards.h"

#include "machine/fault.h"

namespace emu {

void check_hazards(const Warp& warp, const Instr& instr) {
    // wgmma itself may chain on accumulators in flight; it checks its own operands.
    if (instr.opcode.starts_with("wgmma")) return;
    for (int slot : instr.reads) {
        const auto hazard = static_cast<Hazard>(warp.hazards[size_t(slot)]);
        if (hazard == Hazard::kTmemLoad) fault("a register is read before tcgen05.wait::ld");
        if (hazard == Hazard::kWgmma) fault("a wgmma result is read before wgmma.wait_group");
    }
    for (int slot : instr.writes) {
        const auto hazard = static_cast<Hazard>(warp.hazards[size_t(slot)]);
        if (hazard == Hazard::kTmemLoad)
            fault("a register is written before tcgen05.wait::ld of an earlier load into it");
        if (hazard != Hazard::kNone)
            fault("a register of a wgmma in flight is written before wgmma.wait_group");
    }
}

void set_hazard(Warp& warp, int slot, Hazard hazard) {
    if (slot <= kSinkSlot) return;
    if (!warp.hazards[size_t(slot)]) ++warp.hazard_count;
    warp.hazards[size_t(slot)] = static_cast<uint8_t>(hazard);
}

void clear_hazards(Warp& warp, Hazard hazard) {
    if (!warp.hazard_count) return;
    for (uint8_t& state : warp.hazards)
        if (state == static_cast<uint8_t>(hazard)) {
            state = 0;
            --warp.hazard_count;
        }
}

}  // namespace emu
