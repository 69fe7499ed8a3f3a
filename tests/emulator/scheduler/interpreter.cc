// The inner loop. Among the runnable lanes of a warp, those with the lowest pc run together until they
// diverge, block, or reach the next lowest pc, where they join.
#include "scheduler/hazards.h"
#include "scheduler/scheduler.h"

namespace emu {
namespace {

struct Group {
    LaneMask lanes;
    uint32_t pc;
    uint32_t next_pc;  // of the runnable lanes behind, or ~0
};

Group pick_group(const Warp& warp, uint32_t above) {
    Group group{0, ~0u, ~0u};
    for (LaneMask rest = warp.runnable; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const uint32_t pc = warp.pc[size_t(lane)];
        if (pc <= above && above != ~0u) continue;
        if (pc < group.pc)
            group = {LaneMask{1} << lane, pc, group.pc};
        else if (pc == group.pc)
            group.lanes |= LaneMask{1} << lane;
        else
            group.next_pc = std::min(group.next_pc, pc);
    }
    return group;
}

// Normally the lowest pc. After a quantum that ended in divergent code the next group gets a turn, so that a
// lane spinning on memory cannot starve the lane that would release it.
Group next_group(Warp& warp) {
    if (warp.rotate_groups) {
        warp.rotate_groups = false;
        const Group other = pick_group(warp, warp.last_group_pc);
        if (other.lanes) return other;
    }
    return pick_group(warp, ~0u);
}

void refresh_clock(Launch& launch, Warp& warp, const Instr& instr) {
    uint64_t* slot = warp.slot(instr.a);
    std::fill(slot, slot + kWarpLanes, launch.clock);
}

void store_pcs(Warp& warp, LaneMask lanes, uint32_t pc) {
    for_lanes(lanes, [&](int lane) { warp.pc[size_t(lane)] = pc; });
}

LaneMask guarded(Warp& warp, const Instr& instr, LaneMask lanes) {
    if (instr.guard < 0) return lanes;
    const uint64_t* guard = warp.slot(instr.guard);
    LaneMask mask = 0;
    for_lanes(lanes, [&](int lane) { mask |= LaneMask((guard[lane] & 1) ^ instr.guard_negated) << lane; });
    return mask;
}

// Executes the group until it must be chosen anew.
int run_group(Launch& launch, Warp& warp, Exec& x, Group group, int quantum) {
    const std::vector<Instr>& code = launch.kernel->code;
    int executed = 0;
    while (executed < quantum) {
        const Instr& instr = code[group.pc];
        const LaneMask mask = guarded(warp, instr, group.lanes);
        ++executed;
        launch.stats.thread_instructions += uint64_t(std::popcount(mask));
        x.instr = &instr;
        x.pc = group.pc;
        x.group = group.lanes;
        if (instr.reads_clock) refresh_clock(launch, warp, instr);
        if (warp.hazard_count && mask) check_hazards(warp, instr);
        const Step step = mask ? instr.exec(x, instr, mask) : Step::kNext;
        if (step == Step::kNext) {
            ++group.pc;
        } else if (step == Step::kBranch && mask == group.lanes) {
            group.pc = uint32_t(instr.target);
            if (group.next_pc != ~0u) break;
        } else {
            if (step == Step::kBranch) store_pcs(warp, mask, uint32_t(instr.target));
            store_pcs(warp, group.lanes & ~mask & warp.live(), group.pc + 1);
            return executed;
        }
        if (group.pc >= group.next_pc) break;
    }
    store_pcs(warp, group.lanes, group.pc);
    return executed;
}

}  // namespace

int run_warp(Launch& launch, Warp& warp, int quantum) {
    Exec x{launch, *warp.cta->cluster, *warp.cta, warp, nullptr, 0, 0};
    int executed = 0;
    Group group{};
    try {
        while (executed < quantum && warp.runnable) {
            group = next_group(warp);
            executed += run_group(launch, warp, x, group, quantum - executed);
        }
    } catch (const LocatedFault&) {
        throw;
    } catch (const Fault& error) {
        throw LocatedFault(std::string(error.what()) + "\n" +
                           describe_place(launch, warp, *x.instr, x.group));
    }
    warp.last_group_pc = group.pc;
    warp.rotate_groups = executed >= quantum;
    launch.stats.warp_instructions += uint64_t(executed);
    launch.clock += uint64_t(executed);
    return executed;
}

}  // namespace emu
