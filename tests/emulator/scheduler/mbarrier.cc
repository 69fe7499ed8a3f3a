// mbarrier objects (PTX ISA 9.7.13.15). Phase, pending count, expected count, tx-count.
#include "scheduler/barriers.h"

namespace emu {
namespace {

constexpr int64_t kMaxCount = (1 << 20) - 1;  // PTX ISA: range of the counts

void wake_waiters(Cta& cta, uint32_t offset, const MBarrier& barrier) {
    for (Warp& warp : cta.warps) {
        std::erase_if(warp.waits, [&](const Wait& wait) {
            if (wait.kind != Wait::Kind::kMbarrier || wait.object != offset ||
                !has_completed(barrier, wait.parity))
                return false;
            for_lanes(wait.lanes, [&](int lane) { warp.slot(wait.destination)[lane] = 1; });
            acquire(warp, barrier.completed);
            wake(warp, wait);
            return true;
        });
    }
}

void settle(Cta& cta, uint32_t offset, MBarrier& barrier) {
    ++cta.cluster->launch->progress;
    if (barrier.pending != 0 || barrier.tx != 0) return;
    ++barrier.phase;
    barrier.pending = barrier.expected;
    barrier.completed.join(barrier.arriving);
    barrier.completed.raise(barrier.actor, barrier.phase);
    trace(cta, "phase complete", offset, barrier);
    wake_waiters(cta, offset, barrier);
}

}  // namespace

void trace(Cta& cta, const char* event, uint32_t offset, const MBarrier& barrier) {
    Launch& launch = *cta.cluster->launch;
    if (!launch.options.trace_barriers) return;
    launch.stats.timeline.push_back(
        format("%8llu cluster %u CTA %u mbarrier 0x%x: %s (phase %u, pending %lld of %lld, tx %lld)",
               static_cast<unsigned long long>(launch.stats.warp_instructions), cta.cluster->serial, cta.rank,
               offset, event, barrier.phase, static_cast<long long>(barrier.pending),
               static_cast<long long>(barrier.expected), static_cast<long long>(barrier.tx)));
}

MBarrier& find_barrier(Cta& cta, uint32_t offset, const char* what) {
    auto it = cta.barriers.find(offset);
    if (it == cta.barriers.end())
        fault("%s: there is no initialised mbarrier at shared offset 0x%x of CTA %u", what, offset, cta.rank);
    return it->second;
}

void init_barrier(Exec& x, int lane, Cta& cta, uint32_t offset, uint32_t count) {
    if (offset % 8) fault("mbarrier.init: offset 0x%x is not 8-byte aligned", offset);
    if (count < 1 || count > kMaxCount)
        fault("mbarrier.init: count %u is not in 1..%lld", count, static_cast<long long>(kMaxCount));
    if (cta.barriers.contains(offset))
        fault("mbarrier.init: the mbarrier at offset 0x%x is already initialised", offset);
    MBarrier barrier;
    barrier.pending = barrier.expected = count;
    barrier.actor = x.cluster.num_actors++;
    barrier.init_actor = x.warp.actor;
    barrier.init_time = x.warp.knowledge[x.warp.actor];
    barrier.init_thread = static_cast<uint16_t>(x.thread(lane));
    barrier.init_fences = cta.init_fences[barrier.init_thread];
    barrier.init_line = x.instr->line;
    cta.barriers.emplace(offset, barrier);
}

void check_barrier_use(Exec& x, Cta& cta, const MBarrier& barrier, uint32_t offset, BarrierUse use) {
    if (!x.launch.shadow.is_enabled) return;
    const bool is_visible = barrier.init_actor == x.warp.actor ||
                            barrier.init_time <= x.warp.knowledge[barrier.init_actor] ||
                            barrier.init_time <= x.warp.init_knowledge[barrier.init_actor];
    if (!is_visible)
        fault(
            "the mbarrier at offset 0x%x of CTA %u was initialised at PTX line %d, and is used at PTX line "
            "%d without a barrier between them",
            offset, cta.rank, barrier.init_line, x.instr->line);
    if (use == BarrierUse::kRemoteOrAsync && cta.init_fences[barrier.init_thread] <= barrier.init_fences)
        fault(
            "missing fence.mbarrier_init: the mbarrier at offset 0x%x of CTA %u, initialised at PTX line %d, "
            "is used by another CTA or by the "
            "async proxy at PTX line %d",
            offset, cta.rank, barrier.init_line, x.instr->line);
}

void arrive(Cta& cta, uint32_t offset, int64_t count, const char* what) {
    MBarrier& barrier = find_barrier(cta, offset, what);
    if (count < 1 || barrier.pending < count)
        fault("%s: %lld arrivals on the mbarrier at offset 0x%x of CTA %u, which expects %lld more (of %lld)",
              what, static_cast<long long>(count), offset, cta.rank, static_cast<long long>(barrier.pending),
              static_cast<long long>(barrier.expected));
    barrier.pending -= count;
    trace(cta, what, offset, barrier);
    settle(cta, offset, barrier);
}

void expect_tx(Cta& cta, uint32_t offset, int64_t bytes) {
    MBarrier& barrier = find_barrier(cta, offset, "expect_tx");
    barrier.tx += bytes;
    if (bytes < 0 || barrier.tx > kMaxCount)
        fault("expect_tx: tx-count %lld of the mbarrier at offset 0x%x overflows",
              static_cast<long long>(barrier.tx), offset);
    trace(cta, "expect_tx", offset, barrier);
}

void complete_tx(Cta& cta, uint32_t offset, int64_t bytes, const Clock& knowledge) {
    MBarrier& barrier = find_barrier(cta, offset, "complete_tx");
    barrier.tx -= bytes;
    if (barrier.tx < -kMaxCount)
        fault("complete_tx: tx-count of the mbarrier at offset 0x%x underflows", offset);
    barrier.arriving.join(knowledge);
    trace(cta, "complete_tx", offset, barrier);
    settle(cta, offset, barrier);
}

}  // namespace emu
