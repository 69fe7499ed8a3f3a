// Registers whose asynchronous result is due: reading or writing them before the wait is an error.
#pragma once

#include "machine/state.h"

namespace emu {

enum class Hazard : uint8_t { kNone, kTmemLoad, kWgmma, kWgmmaSource };

void check_hazards(const Warp& warp, const Instr& instr);
void set_hazard(Warp& warp, int slot, Hazard hazard);
void clear_hazards(Warp& warp, Hazard hazard);
inline void clear_hazard(Warp& warp, int slot) {
    if (warp.hazards[size_t(slot)]) {
        warp.hazards[size_t(slot)] = 0;
        --warp.hazard_count;
    }
}

}  // namespace emu
