// Named barriers of a CTA, cluster barriers, and what an exit means to them.
#include "scheduler/barriers.h"

namespace emu {
namespace {

void settle_named(Cta& cta, uint32_t id) {
    NamedBarrier& barrier = cta.named[id];
    const uint32_t expected = barrier.counts_all ? cta.live_threads : barrier.expected;
    if (barrier.arrived == 0 || barrier.arrived < expected) return;
    if (barrier.arrived > expected)
        fault("bar %u: %u threads arrived, but it expects %u", id, barrier.arrived, expected);
    ++cta.cluster->launch->progress;
    const Clock clock = barrier.clock;
    barrier = {};
    for (Warp& warp : cta.warps) {
        std::erase_if(warp.waits, [&](const Wait& wait) {
            if (wait.kind != Wait::Kind::kNamedBarrier || wait.object != id) return false;
            acquire(warp, clock);
            warp.meet(wait.lanes);
            wake(warp, wait);
            return true;
        });
    }
}

// Accesses between arrival and wait count as if they came before: lanes that race there are not seen.
void take_clocks(Warp& warp, const ClusterClocks& from, LaneMask lanes) {
    acquire(warp, from.data);
    if (warp.cluster_arrival_releases) warp.meet(lanes);
    warp.init_knowledge.join(from.init);
    warp.cta->exit_knowledge.join(from.control);
}

void settle_cluster(Cluster& cluster) {
    ClusterBarrier& barrier = cluster.barrier;
    if (barrier.arrived == 0 || barrier.arrived < cluster.live_threads) return;
    ++cluster.launch->progress;
    ++barrier.generation;
    barrier.arrived = 0;
    barrier.completed.join(barrier.arriving);
    for (auto& cta : cluster.ctas)
        for (Warp& warp : cta->warps)
            std::erase_if(warp.waits, [&](const Wait& wait) {
                if (wait.kind != Wait::Kind::kClusterBarrier || wait.object >= barrier.generation)
                    return false;
                take_clocks(warp, barrier.completed, wait.lanes);
                for_lanes(wait.lanes, [&](int lane) { warp.cluster_arrivals[size_t(lane)] = 0; });
                wake(warp, wait);
                return true;
            });
}

// Lanes parked in a collective may be complete without the lanes that left: let them try again.
void retry_collectives(Warp& warp) {
    std::erase_if(warp.waits, [&](const Wait& wait) {
        if (wait.kind != Wait::Kind::kCollective) return false;
        warp.runnable |= wait.lanes;
        return true;
    });
}

void check_leaks(Cta& cta) {
    for (size_t id = 0; id < cta.named.size(); ++id)
        if (cta.named[id].arrived)
            fault("CTA %u exits with named barrier %zu left at %u of %u threads", cta.rank, id,
                  cta.named[id].arrived, cta.named[id].expected);
    for (size_t column = 0; column < cta.tmem.owner.size(); ++column)
        if (cta.tmem.owner[column])
            fault("CTA %u exits with tensor memory column %zu still allocated", cta.rank, column);
}

// A peer's access that this CTA has not waited for could as well come after the exit.
void check_remote_accesses(Cta& cta) {
    if (!cta.cluster->launch->shadow.is_enabled) return;
    for (const auto& [actor, access] : cta.remote_accesses)
        if (access.time > cta.exit_knowledge[actor])
            fault(
                "CTA %u exits without having waited for the access of another CTA at PTX line %d to its "
                "shared memory",
                cta.rank, access.line);
}

void check_lane_exit(const Warp& warp) {
    if (warp.hazard_count)
        fault("warp %d exits while asynchronous results are due: wait for wgmma or tcgen05.ld first",
              warp.index);
    if (warp.has_open_bulk) fault("warp %d exits with bulk stores that were never committed", warp.index);
    if (warp.knowledge[warp.store_actor] < warp.bulk_committed)
        fault("warp %d exits while bulk stores may still read shared memory: cp.async.bulk.wait_group first",
              warp.index);
}

}  // namespace

void arrive_named(Exec& x, const NamedArrival& arrival) {
    const auto& [lanes, id, threads, expected, waits] = arrival;
    if (id >= x.cta.named.size()) fault("barrier id %u is not in 0..15", id);
    if (expected % kWarpLanes) fault("bar %u: thread count %u is no multiple of 32", id, expected);
    NamedBarrier& barrier = x.cta.named[id];
    const bool counts_all = expected == 0;
    if (barrier.arrived && (barrier.counts_all != counts_all || barrier.expected != expected))
        fault("bar %u: this warp expects %u threads, an earlier one %u (0: all)", id, expected,
              barrier.expected);
    barrier.counts_all = counts_all;
    barrier.expected = expected;
    barrier.arrived += threads;
    release(x.warp, barrier.clock);
    ++x.launch.progress;
    if (waits) {
        Wait wait{Wait::Kind::kNamedBarrier, lanes, x.pc};
        wait.object = id;
        park(x, wait);
    }
    settle_named(x.cta, id);
}

void arrive_cluster(Exec& x, LaneMask lanes, Ordering ordering) {
    const bool releases = ordering == Ordering::kRelease;
    x.warp.cluster_arrival_releases = releases;
    ClusterBarrier& barrier = x.cluster.barrier;
    for_lanes(lanes, [&](int lane) {
        if (x.warp.cluster_arrivals[size_t(lane)])
            fault("barrier.cluster.arrive twice without barrier.cluster.wait (lane %d)", lane);
        x.warp.cluster_arrivals[size_t(lane)] = barrier.generation + 1;
        if (releases) ++x.cta.init_fences[size_t(x.thread(lane))];
    });
    barrier.arriving.control.join(x.warp.knowledge);
    barrier.arriving.init.join(x.warp.init_knowledge);
    if (releases) release(x.warp, barrier.arriving.data);
    ++x.launch.progress;
    barrier.arrived += uint32_t(std::popcount(lanes));
    settle_cluster(x.cluster);
}

bool wait_cluster(Exec& x, LaneMask lanes) {
    const uint32_t arrival = x.warp.cluster_arrivals[size_t(std::countr_zero(lanes))];
    for_lanes(lanes, [&](int lane) {
        if (x.warp.cluster_arrivals[size_t(lane)] == 0)
            fault("barrier.cluster.wait without barrier.cluster.arrive (lane %d)", lane);
    });
    if (x.cluster.barrier.generation >= arrival) {
        take_clocks(x.warp, x.cluster.barrier.completed, lanes);
        for_lanes(lanes, [&](int lane) { x.warp.cluster_arrivals[size_t(lane)] = 0; });
        return true;
    }
    Wait wait{Wait::Kind::kClusterBarrier, lanes, x.pc};
    wait.object = arrival - 1;
    park(x, wait);
    return false;
}

void exit_lanes(Exec& x, LaneMask lanes) {
    Warp& warp = x.warp;
    for_lanes(lanes, [&](int lane) {
        const uint32_t arrival = warp.cluster_arrivals[size_t(lane)];
        if (arrival == x.cluster.barrier.generation + 1)
            --x.cluster.barrier.arrived;  // counted as exited from now on
    });
    warp.exited |= lanes;
    warp.runnable &= ~lanes;
    ++x.launch.progress;
    const auto count = uint32_t(std::popcount(lanes));
    x.cta.live_threads -= count;
    x.cluster.live_threads -= count;
    x.cta.exit_knowledge.join(warp.knowledge);
    if (warp.live() == 0) check_lane_exit(warp);
    retry_collectives(warp);
    if (x.cta.live_threads == 0) {
        check_leaks(x.cta);
        check_remote_accesses(x.cta);
    }
    for (uint32_t id = 0; id < x.cta.named.size(); ++id)
        if (x.cta.named[id].counts_all) settle_named(x.cta, id);
    settle_cluster(x.cluster);
}

bool time_out_waits(Cluster& cluster) {
    bool any = false;
    for (auto& cta : cluster.ctas)
        for (Warp& warp : cta->warps)
            std::erase_if(warp.waits, [&](const Wait& wait) {
                if (wait.kind != Wait::Kind::kMbarrier) return false;
                for_lanes(wait.lanes, [&](int lane) { warp.slot(wait.destination)[lane] = 0; });
                wake(warp, wait);
                return any = true;
            });
    return any;
}

}  // namespace emu
