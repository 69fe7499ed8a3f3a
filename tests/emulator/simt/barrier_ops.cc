// bar, barrier, barrier.cluster, mbarrier, fence, membar (PTX ISA 9.7.13).
#include "async/tensor_map_ops.h"
#include "scheduler/barriers.h"
#include "simt/access.h"
#include "simt/families.h"
#include "simt/gather.h"

namespace emu {
namespace {

// mode: bit 0 aligned, bit 1 arrive only, bit 2 warp barrier
Step named_barrier(Exec& x, const Instr& i, LaneMask mask) {
    const bool is_aligned = i.mode & 1, only_arrives = i.mode & 2;
    const LaneMask lanes = is_aligned ? gather(x, mask, x.warp.live()) : mask;
    if (lanes == 0) return Step::kSplit;
    const auto id = uint32_t(x.uniform(i.d, lanes, "barrier id"));
    const uint32_t expected = i.operands.size() > 1 ? uint32_t(x.uniform(i.a, lanes, "thread count")) : 0;
    if (i.operands.size() > 1 && expected == 0) fault("bar: a thread count of zero");
    const uint32_t threads = is_aligned && expected ? kWarpLanes : uint32_t(std::popcount(lanes));
    pass(x, lanes);
    arrive_named(x, {lanes, id, threads, expected, !only_arrives});
    return Step::kSplit;
}

Step warp_barrier(Exec& x, const Instr& i, LaneMask mask) {
    return collective(x, mask, LaneMask(x.uniform(i.d, mask, "membermask")),
                      [&](LaneMask lanes) { x.warp.meet(lanes); });
}

// mode: bit 0 aligned, bit 1 wait, bit 2 relaxed
Step cluster_barrier(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask lanes = i.mode & 1 ? gather(x, mask, x.warp.live()) : mask;
    if (lanes == 0) return Step::kSplit;
    pass(x, lanes);
    if (i.mode & 2)
        wait_cluster(x, lanes);
    else
        arrive_cluster(x, lanes, i.mode & 4 ? Ordering::kRelaxed : Ordering::kRelease);
    return Step::kSplit;
}

void decode_cluster_barrier(Decoder& d) {
    const bool waits = d.require_one({"arrive", "wait"}) == 1;
    const bool relaxed = d.take("relaxed");
    d.take_one({"release", "acquire"});
    d.instr.mode = uint32_t(d.take("aligned")) | uint32_t(waits) << 1 | uint32_t(relaxed) << 2;
    d.set(cluster_barrier);
}

void decode_bar(Decoder& d) {
    d.no_destination();
    if (d.take("cluster")) return decode_cluster_barrier(d);
    if (d.take("warp")) {
        d.require("sync");
        return d.set(warp_barrier);
    }
    d.take("cta");
    if (d.has("red")) d.refuse("barrier reductions are not supported");
    const bool arrives = d.require_one({"sync", "arrive"}) == 1;
    const bool is_bar = d.instr.opcode.starts_with("bar.");
    d.instr.mode = uint32_t(d.take("aligned") || is_bar) | uint32_t(arrives) << 1;
    d.expect_operands(arrives ? 2 : 1, 2);
    d.set(named_barrier);
}

Step barrier_init(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        const SharedPlace place =
            locate_shared(x, to_shared_address(address_of(x, i.operands[0], l)), 8, "mbarrier.init");
        if (place.cta != &x.cta) fault("mbarrier.init of another CTA's barrier");
        init_barrier(x, l, x.cta, place.offset, uint32_t(x.slot(i.a)[l]));
    });
    return Step::kNext;
}

Step barrier_invalidate(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        const SharedPlace place =
            locate_shared(x, to_shared_address(address_of(x, i.operands[0], l)), 8, "mbarrier.inval");
        find_barrier(*place.cta, place.offset, "mbarrier.inval");
        place.cta->barriers.erase(place.offset);
    });
    return Step::kNext;
}

struct ArriveOp {
    bool has_state;   // first operand receives the phase token
    bool expects_tx;  // arrive.expect_tx
    bool arrives;     // false: plain expect_tx
    bool releases;
    size_t address;  // operand index
    bool drops = false;
};

Step barrier_arrive(Exec& x, const Instr& i, LaneMask mask) {
    const auto& op = i.as<ArriveOp>();
    const bool has_value = i.operands.size() > op.address + 1;
    for_lanes(mask, [&](int l) {
        const SharedPlace place = locate_shared(
            x, to_shared_address(address_of(x, i.operands[op.address], l)), 8, i.opcode.c_str());
        Cta& cta = *place.cta;
        MBarrier& barrier = find_barrier(cta, place.offset, i.opcode.c_str());
        check_barrier_use(x, cta, barrier, place.offset,
                          &cta == &x.cta ? BarrierUse::kLocal : BarrierUse::kRemoteOrAsync);
        const int64_t value = has_value ? int64_t(uint32_t(x.slot(i.operands[op.address + 1].slot)[l])) : 1;
        note_remote_access(x, cta);
        if (op.has_state) x.slot(i.d)[l] = barrier.phase;
        if (op.expects_tx) expect_tx(cta, place.offset, value);
        if (!op.arrives) return;
        if (op.releases) release(x.warp, barrier.arriving);
        if (op.drops) --barrier.expected;
        arrive(cta, place.offset, op.expects_tx ? 1 : value, i.opcode.c_str());
    });
    return Step::kNext;
}

Step barrier_complete(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        const SharedPlace place =
            locate_shared(x, to_shared_address(address_of(x, i.operands[0], l)), 8, "mbarrier.complete_tx");
        complete_tx(*place.cta, place.offset, int64_t(uint32_t(x.slot(i.a)[l])), x.warp.knowledge);
    });
    return Step::kNext;
}

// mode: bit 0 may block (try_wait), bit 1 parity form
Step barrier_wait(Exec& x, const Instr& i, LaneMask mask) {
    const bool may_block = i.mode & 1;
    LaneMask parked = 0;
    for_lanes(mask, [&](int l) {
        const SharedPlace place =
            locate_shared(x, to_shared_address(address_of(x, i.operands[1], l)), 8, i.opcode.c_str());
        if (place.cta != &x.cta)
            fault("%s on the barrier of another CTA: waiting is local", i.opcode.c_str());
        const MBarrier& barrier = find_barrier(x.cta, place.offset, i.opcode.c_str());
        check_barrier_use(x, x.cta, barrier, place.offset, BarrierUse::kLocal);
        const uint32_t parity = uint32_t(x.slot(i.b)[l]) & 1;
        const bool spurious = x.launch.options.is_async && may_block && x.launch.random() % 8 == 0;
        if (has_completed(barrier, parity) && !spurious) {
            acquire(x.warp, barrier.completed);
            x.slot(i.d)[l] = 1;
        } else if (!may_block || spurious) {
            x.slot(i.d)[l] = 0;
        } else {
            Wait wait{Wait::Kind::kMbarrier, LaneMask{1} << l, x.pc};
            wait.object = place.offset;
            wait.parity = parity;
            wait.destination = i.d;
            park(x, wait);
            parked |= wait.lanes;
        }
    });
    if (!parked) return Step::kNext;
    pass(x, mask & ~parked);
    return Step::kSplit;
}

Step barrier_pending_count(Exec&, const Instr&, LaneMask) {
    fault("mbarrier.pending_count is not supported");
}

enum class Patience : uint8_t { kTest, kTry };
void decode_wait(Decoder& d, Patience patience) {
    const bool parity = d.take("parity");
    d.take_one({"acquire", "relaxed"});
    d.take_one({"cta", "cluster"});
    d.take_one({"shared", "shared::cta"});
    d.require("b64");
    d.expect_operands(3, 4);
    d.instr.mode = uint32_t(patience == Patience::kTry) | uint32_t(parity) << 1;
    d.set(barrier_wait);
}

enum class Arrival : uint8_t { kArrive, kDrop, kExpectOnly };
void decode_arrive(Decoder& d, Arrival kind) {
    ArriveOp op{};
    op.arrives = kind != Arrival::kExpectOnly;
    op.drops = kind == Arrival::kDrop;
    op.expects_tx = !op.arrives || d.take("expect_tx");
    if (d.has("noComplete")) d.refuse(".noComplete is not supported");
    op.releases = !d.take("relaxed");
    d.take("release");
    d.take_one({"cta", "cluster"});
    d.take_one({"shared", "shared::cta", "shared::cluster"});
    d.require("b64");
    op.has_state = d.operand(0).kind != Operand::Kind::kAddress;
    op.address = op.has_state ? 1 : 0;
    if (!op.has_state) d.no_destination();
    d.keep(op);
    d.set(barrier_arrive);
}

void decode_mbarrier(Decoder& d) {
    switch (d.require_one({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait",
                           "try_wait", "pending_count"})) {
        case 2:
            return decode_arrive(d, Arrival::kArrive);
        case 3:
            return decode_arrive(d, Arrival::kDrop);
        case 4:
            return decode_arrive(d, Arrival::kExpectOnly);
        case 6:
            return decode_wait(d, Patience::kTest);
        case 7:
            return decode_wait(d, Patience::kTry);
        case 8:
            d.require("b64");
            return d.set(barrier_pending_count);
        case 5:
            d.take("relaxed");
            d.take_one({"cta", "cluster"});
            d.set(barrier_complete);
            break;
        case 1:
            d.set(barrier_invalidate);
            break;
        default:
            d.set(barrier_init);
            d.expect_operands(2, 2);
    }
    d.take_one({"shared", "shared::cta", "shared::cluster"});
    d.require("b64");
    d.no_destination();
}

enum Fence : uint32_t { kOrder, kProxyAsync, kMbarrierInit };
Step fence(Exec& x, const Instr& i, LaneMask mask) {
    if (i.mode == kMbarrierInit) x.warp.init_knowledge.raise(x.warp.actor, x.warp.knowledge[x.warp.actor]);
    for_lanes(mask, [&](int l) {
        const auto thread = size_t(x.thread(l));
        if (i.mode == kProxyAsync) ++x.cluster.fence_counts[x.cta.rank][thread];
        if (i.mode != kOrder) ++x.cta.init_fences[thread];
    });
    return Step::kNext;
}

void decode_fence(Decoder& d) {
    d.no_destination();
    d.set(fence);
    const bool acquires = d.take_one({"sc", "acq_rel", "release", "acquire"}) == 3;
    d.take("sync_restrict::shared::cta");
    d.take("sync_restrict::shared::cluster");
    if (d.take("mbarrier_init")) d.instr.mode = kMbarrierInit;
    if (d.take("proxy")) {
        if (d.take("tensormap::generic"))
            return decode_map_fence(d, acquires ? MapFence::kAcquire : MapFence::kOther);
        if (d.take("async"))
            d.instr.mode = kProxyAsync;
        else if (d.take_one({"alias", "async::generic"}) < 0)
            d.refuse("unknown proxy");
        // Only shared memory carries the proxy check; a fence of global memory alone does not help it.
        if (d.take_one({"shared::cta", "shared::cluster", "global"}) == 2) d.instr.mode = kOrder;
    }
    d.take_one({"cta", "cluster", "gpu", "sys", "gl"});
}

}  // namespace

FamilyTable barrier_families() {
    return {{"bar", decode_bar},
            {"barrier", decode_bar},
            {"mbarrier", decode_mbarrier},
            {"fence", decode_fence},
            {"membar", decode_fence}};
}

}  // namespace emu
