#include "machine/state.h"

namespace emu {

uint32_t Launch::smem_bytes() const {
    return kSystemSmemBytes + round_up(kernel->static_smem_bytes, kernel->dynamic_smem_align) + dynamic_smem;
}

uint64_t Exec::uniform(int slot_index, LaneMask mask, const char* what) {
    const uint64_t* values = slot(slot_index);
    const uint64_t first = values[std::countr_zero(mask)];
    for_lanes(mask, [&](int lane) {
        if (values[lane] != first)
            fault("%s must be the same in all lanes: lane %d has 0x%llx, lane %d has 0x%llx", what,
                  std::countr_zero(mask), static_cast<unsigned long long>(first), lane,
                  static_cast<unsigned long long>(values[lane]));
    });
    return first;
}

Accessor Exec::accessor(int lane) const {
    Accessor who;
    who.actor = warp.actor;
    who.time = warp.knowledge[warp.actor];
    who.knowledge = &warp.knowledge;
    who.line = instr->line;
    who.thread = static_cast<uint16_t>(thread(lane));
    who.cta_rank = static_cast<uint16_t>(cta.rank);
    who.fence_count = cluster.fence_counts[cta.rank][who.thread];
    who.cluster = cluster.serial;
    who.meetings = warp.meetings;
    return who;
}

Accessor Exec::async_accessor(uint16_t actor, uint32_t time, const Clock& knowledge) const {
    Accessor who;
    who.actor = actor;
    who.time = time;
    who.knowledge = &knowledge;
    who.line = instr->line;
    who.is_async_proxy = true;
    who.cta_rank = static_cast<uint16_t>(cta.rank);
    who.cluster = cluster.serial;
    return who;
}

void note_remote_access(Exec& x, Cta& cta) {
    if (&cta != &x.cta) cta.remote_accesses[x.warp.actor] = {x.warp.knowledge[x.warp.actor], x.instr->line};
}

void park(Exec& x, Wait wait) {
    wait.pc = x.pc;
    for_lanes(wait.lanes, [&](int lane) { x.warp.pc[static_cast<size_t>(lane)] = x.pc; });
    x.warp.runnable &= ~wait.lanes;
    x.warp.waits.push_back(wait);
}

void wake(Warp& warp, const Wait& wait) {
    for_lanes(wait.lanes, [&](int lane) { warp.pc[static_cast<size_t>(lane)] = wait.pc + 1; });
    warp.runnable |= wait.lanes;
}

void pass(Exec& x, LaneMask lanes) {
    for_lanes(lanes, [&](int lane) { x.warp.pc[static_cast<size_t>(lane)] = x.pc + 1; });
}

void release(Warp& warp, Clock& into) {
    into.join(warp.knowledge);
    warp.knowledge.raise(warp.actor, warp.knowledge[warp.actor] + 1);
}

}  // namespace emu
