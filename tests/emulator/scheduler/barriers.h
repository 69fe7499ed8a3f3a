// State machines of the barriers, and the lanes they wake.
#pragma once

#include "machine/state.h"

namespace emu {

// The barrier at an offset of a CTA's window; faults when none is initialised there.
MBarrier& find_barrier(Cta& cta, uint32_t offset, const char* what);
void init_barrier(Exec& x, int lane, Cta& cta, uint32_t offset, uint32_t count);
enum class BarrierUse : uint8_t { kLocal, kRemoteOrAsync };
// Faults when the barrier's initialisation is not visible to this warp, or not fenced for a remote or async
// use.
void check_barrier_use(Exec& x, Cta& cta, const MBarrier& barrier, uint32_t offset, BarrierUse use);
void arrive(Cta& cta, uint32_t offset, int64_t count, const char* what);
void expect_tx(Cta& cta, uint32_t offset, int64_t bytes);
void complete_tx(Cta& cta, uint32_t offset, int64_t bytes, const Clock& knowledge);
inline bool has_completed(const MBarrier& barrier, uint32_t parity) {
    return (barrier.phase & 1) != parity;
}
void trace(Cta& cta, const char* event, uint32_t offset, const MBarrier& barrier);

// Named barriers: arrivals in threads.
struct NamedArrival {
    LaneMask lanes;
    uint32_t id, threads, expected;  // expected 0: all live threads of the CTA
    bool waits;
};
void arrive_named(Exec& x, const NamedArrival& arrival);
enum class Ordering : uint8_t { kRelaxed, kRelease };
void arrive_cluster(Exec& x, LaneMask lanes, Ordering ordering);
bool wait_cluster(Exec& x, LaneMask lanes);  // false: the lanes have been parked

void exit_lanes(Exec& x, LaneMask lanes);
// Potentially blocking waits that found nothing else to do return false. True when any lane went on.
bool time_out_waits(Cluster& cluster);

}  // namespace emu
