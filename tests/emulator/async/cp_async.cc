// cp.async (PTX ISA 9.7.9.25.3): per-thread copies of 4, 8 or 16 bytes through the generic proxy, completed
// by wait_group, wait_all or an arrival on an mbarrier. In seeded mode they land when their completion is
// signalled.
#include "async/cp_async.h"

#include <cstring>

#include "async/engine.h"
#include "scheduler/barriers.h"
#include "simt/access.h"

namespace emu {
namespace {

struct LaneCopy {
    int lane;
    uint32_t target, bytes, source_bytes;  // bytes behind source_bytes become zero
    uint64_t source;
    uint32_t time;
    Clock knowledge;
};

void copy_one(Exec& x, const LaneCopy& c) {
    if (c.target % c.bytes || c.source % c.bytes)
        fault("cp.async: addresses must be multiples of %u", c.bytes);
    const SharedPlace place = locate_shared(x, c.target, c.bytes, "cp.async");
    Accessor who = x.accessor(c.lane);
    who.actor = x.warp.copy_actor;
    who.time = c.time;
    who.knowledge = &c.knowledge;
    shadow_shared(x, place, c.bytes, Use::kWrite, who);
    std::memset(place.bytes(), 0, c.bytes);
    if (c.source_bytes == 0) return;
    x.launch.memory->check(c.source, c.source_bytes, "cp.async");
    std::memcpy(place.bytes(), reinterpret_cast<const void*>(c.source), c.source_bytes);
    ++x.launch.progress;
}

Step copy(Exec& x, const Instr& i, LaneMask mask) {
    const auto bytes = uint32_t(x.slot(i.operands[2].slot)[0]);
    if (bytes != 4 && bytes != 8 && bytes != 16) fault("cp.async: size %u is not 4, 8 or 16", bytes);
    const bool has_source_size = i.operands.size() > 3 && !(i.mode & 1);
    ++x.warp.copy_time;
    for_lanes(mask, [&](int lane) {
        LaneCopy c{lane, 0, bytes, bytes, 0, x.warp.copy_time, x.warp.knowledge};
        c.target = to_shared_address(address_of(x, i.operands[0], lane));
        c.source = address_of(x, i.operands[1], lane);
        if (has_source_size) c.source_bytes = uint32_t(x.slot(i.operands[3].slot)[lane]);
        if (c.source_bytes > bytes) fault("cp.async: source size %u exceeds %u", c.source_bytes, bytes);
        Exec issue = x;
        auto run = [issue, c]() mutable { copy_one(issue, c); };
        if (x.launch.options.is_async)
            x.warp.copies.push_back(run);
        else
            run();
    });
    return Step::kNext;
}

void land(Warp& warp) {
    for (auto& run : warp.copies) run();
    warp.copies.clear();
}

Step wait(Exec& x, const Instr&, LaneMask) {
    land(x.warp);
    x.warp.knowledge.raise(x.warp.copy_actor, x.warp.copy_time);
    return Step::kNext;
}

Step nothing(Exec&, const Instr&, LaneMask) {
    return Step::kNext;
}

// mode bit 0: .noinc, the arrival was counted when the barrier was initialised.
Step arrive_when_landed(Exec& x, const Instr& i, LaneMask mask) {
    auto copies = std::make_shared<std::vector<std::function<void()>>>(std::move(x.warp.copies));
    x.warp.copies.clear();
    for_lanes(mask, [&](int lane) {
        const SharedPlace place = locate_shared(x, to_shared_address(address_of(x, i.operands[0], lane)), 8,
                                                "cp.async.mbarrier.arrive");
        if (place.cta != &x.cta) fault("cp.async.mbarrier.arrive on another CTA's barrier");
        MBarrier& barrier = find_barrier(x.cta, place.offset, "cp.async.mbarrier.arrive");
        check_barrier_use(x, x.cta, barrier, place.offset, BarrierUse::kLocal);
        if (!(i.mode & 1)) ++barrier.pending;
        Clock knowledge = x.warp.knowledge;
        knowledge.raise(x.warp.copy_actor, x.warp.copy_time);
        submit_bulk(x, [&cta = x.cta, offset = place.offset, copies, knowledge] {
            for (auto& run : *copies) run();
            copies->clear();
            find_barrier(cta, offset, "cp.async.mbarrier.arrive").arriving.join(knowledge);
            arrive(cta, offset, 1, "cp.async.mbarrier.arrive");
        });
    });
    return Step::kNext;
}

Step create_policy(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int lane) { x.slot(i.d)[lane] = 0x1000000000000000ull; });
    return Step::kNext;
}

}  // namespace

void decode_cp_async(Decoder& d) {
    d.no_destination();
    if (d.take("mbarrier")) {
        d.require("arrive");
        d.instr.mode = d.take("noinc");
        d.take_one({"shared", "shared::cta"});
        d.require("b64");
        return d.set(arrive_when_landed);
    }
    if (d.take("commit_group")) return d.set(nothing);
    if (d.take("wait_group") || d.take("wait_all")) return d.set(wait);
    d.require_one({"ca", "cg"});
    d.require_one({"shared", "shared::cta"});
    d.require("global");
    d.instr.mode =
        d.has("L2::cache_hint") && d.instr.operands.size() == 4;  // then the fourth operand is the policy
    d.take_cache_hints();
    d.expect_operands(3, 5);
    d.set(copy);
}

void decode_createpolicy(Decoder& d) {
    d.require_one({"fractional", "range"});
    while (!d.next_matching("L2::").empty()) {
    }
    d.require("b64");
    d.set(create_policy);
}

}  // namespace emu
