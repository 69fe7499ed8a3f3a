// Collectives: lanes of a `.sync` or `.aligned` instruction wait here until all members have come.
#pragma once

#include "machine/state.h"

namespace emu {

// Lanes that execute now: all members have arrived at this instruction. Zero: they have been parked.
inline LaneMask gather(Exec& x, LaneMask mask, LaneMask members) {
    const LaneMask needed = members & x.warp.live();
    LaneMask arrived = mask;
    if (!x.warp.waits.empty())
        for (const Wait& wait : x.warp.waits)
            if (wait.kind == Wait::Kind::kCollective && wait.pc == x.pc) arrived |= wait.lanes;
    if ((arrived & needed) != needed) {
        Wait wait{Wait::Kind::kCollective, mask, x.pc};
        wait.object = needed;
        park(x, wait);
        return 0;
    }
    if (arrived != mask) {
        std::erase_if(x.warp.waits, [&](const Wait& wait) {
            const bool joins = wait.kind == Wait::Kind::kCollective && wait.pc == x.pc;
            if (joins) wake(x.warp, wait);
            return joins;
        });
    }
    return arrived;
}

// Runs `f(lanes)` once all members have arrived.
template <class F>
Step collective(Exec& x, LaneMask mask, LaneMask members, F f) {
    const LaneMask lanes = gather(x, mask, members);
    if (lanes == 0) return Step::kSplit;
    f(lanes);
    if (lanes == mask) return Step::kNext;
    pass(x, lanes);
    return Step::kSplit;
}

// `.aligned`: every live lane of the warp takes part.
template <class F>
Step aligned(Exec& x, LaneMask mask, F f) {
    return collective(x, mask, x.warp.live(), f);
}

}  // namespace emu
