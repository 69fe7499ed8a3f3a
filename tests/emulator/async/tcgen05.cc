// tcgen05: allocation, fences, waits, commit (PTX ISA 9.7.16.7, 9.7.16.9 to 9.7.16.12).
#include <bit>
#include <cstring>

#include "async/engine.h"
#include "async/tmem_access.h"
#include "scheduler/barriers.h"
#include "scheduler/hazards.h"
#include "simt/families.h"
#include "simt/gather.h"

namespace emu {
namespace {

bool is_free(const Tmem& tmem, uint32_t first, uint32_t count) {
    if (first + count > Tmem::kColumns) return false;
    for (uint32_t c = first; c < first + count; ++c)
        if (tmem.owner[c]) return false;
    return true;
}

// The lowest fit; in seeded mode any fit, because nobody may depend on the choice. 512 when there is none.
uint32_t find_columns(Exec& x, const std::vector<Cta*>& ctas, uint32_t count) {
    std::vector<uint32_t> fits;
    for (uint32_t first = 0; first < Tmem::kColumns; first += 32) {
        bool fit = true;
        for (Cta* cta : ctas) fit &= is_free(cta->tmem, first, count);
        if (fit) fits.push_back(first);
    }
    if (fits.empty()) return Tmem::kColumns;
    return x.launch.options.is_async ? fits[x.launch.random() % fits.size()] : fits.front();
}

void take_columns(Tmem& tmem, uint32_t first, uint32_t count) {
    tmem.base_of.push_back(first);
    for (uint32_t c = first; c < first + count; ++c) {
        tmem.owner[c] = uint16_t(tmem.base_of.size() - 1);
        for (uint32_t part = 0; part < 4; ++part) tmem.cells[part * Tmem::kColumns + c] = Cell{};
        for (uint32_t lane = 0; lane < Tmem::kLanes; ++lane) tmem.word(lane, c) = Tmem::kPoison;
    }
}

std::vector<Cta*> group_of(Exec& x, int group) {
    if (group == 1) return {&x.cta};
    const uint32_t even = x.cta.rank & ~1u;
    return {x.cluster.ctas.at(even).get(), x.cluster.ctas.at(even + 1).get()};
}

// The base for this CTA, or 512 when it has to wait. With cta_group::2 the first CTA of the pair reserves for
// both.
uint32_t allocate(Exec& x, int group, uint32_t count) {
    Tmem& mine = x.cta.tmem;
    if (!mine.promised.empty()) {
        const uint32_t base = mine.promised.front();
        mine.promised.pop_front();
        return base;
    }
    const std::vector<Cta*> ctas = group_of(x, group);
    for (Cta* cta : ctas) cta->tmem.create();
    const uint32_t base = find_columns(x, ctas, count);
    if (base == Tmem::kColumns) return base;
    for (Cta* cta : ctas) {
        take_columns(cta->tmem, base, count);
        if (cta != &x.cta) cta->tmem.promised.push_back(base);
    }
    return base;
}

void check_count(uint32_t count) {
    if (count < 32 || count > 512 || !std::has_single_bit(count))
        fault("tcgen05.alloc: %u columns; a power of two in 32..512 is needed", count);
}

Step alloc(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask lanes = gather(x, mask, x.warp.live());
    if (lanes == 0) return Step::kSplit;
    const int group = int(i.mode);
    check_cta_group(x, group);
    const auto count = uint32_t(x.uniform(i.a, lanes, "column count"));
    check_count(count);
    if (x.cta.tmem.has_relinquished) fault("tcgen05.alloc after relinquish_alloc_permit");
    const uint32_t base = allocate(x, group, count);
    if (base == Tmem::kColumns) {
        park(x, {Wait::Kind::kTmem, lanes, x.pc});
        return Step::kSplit;
    }
    const int lane = std::countr_zero(lanes);
    uint8_t* to = access(x, lane, Space::kShared, address_of(x, i.operands[0], lane), 4, Use::kWrite);
    std::memcpy(to, &base, 4);
    pass(x, lanes);
    return Step::kSplit;
}

void retry_allocations(Cta& cta) {
    for (Warp& warp : cta.warps)
        std::erase_if(warp.waits, [&](const Wait& wait) {
            if (wait.kind != Wait::Kind::kTmem) return false;
            warp.runnable |= wait.lanes;
            return true;
        });
}

Step dealloc(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask lanes) {
        check_cta_group(x, int(i.mode));
        const TmemAddress at = tmem_address(x.uniform(i.d, lanes, "taddr"));
        const auto count = uint32_t(x.uniform(i.a, lanes, "column count"));
        check_count(count);
        check_allocated(x.cta, at.column, count, "tcgen05.dealloc");
        Tmem& tmem = x.cta.tmem;
        const uint16_t serial = tmem.owner[at.column];
        if (tmem.base_of[serial] != at.column)
            fault("tcgen05.dealloc: column %u is not the base of its allocation", at.column);
        for (uint32_t c = at.column; c < at.column + count; ++c) {
            if (tmem.owner[c] != serial) fault("tcgen05.dealloc: column %u belongs to another allocation", c);
            tmem.owner[c] = 0;
        }
        if (at.column + count < Tmem::kColumns && tmem.owner[at.column + count] == serial)
            fault("tcgen05.dealloc of a part of an allocation");
        ++x.launch.progress;
        for (Cta* cta : group_of(x, int(i.mode))) retry_allocations(*cta);
    });
}

Step relinquish(Exec& x, const Instr&, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) { x.cta.tmem.has_relinquished = true; });
}

Step fence_before(Exec& x, const Instr&, LaneMask) {
    x.warp.knowledge.raise(x.warp.tmem_actor, x.warp.tmem_done);
    return Step::kNext;
}

Step fence_after(Exec& x, const Instr&, LaneMask) {
    x.warp.tensor_view = x.warp.knowledge;
    return Step::kNext;
}

Step wait_load(Exec& x, const Instr&, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) {
        clear_hazards(x.warp, Hazard::kTmemLoad);
        x.warp.tmem_done = x.warp.tmem_time;
    });
}

Step wait_store(Exec& x, const Instr&, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) { x.warp.tmem_done = x.warp.tmem_time; });
}

// mode: cta_group in bits 0..1, bit 2 multicast. Tracks all earlier mma and cp of this thread.
Step commit(Exec& x, const Instr& i, LaneMask mask) {
    check_cta_group(x, int(i.mode & 3));
    for_lanes(mask, [&](int lane) {
        const uint32_t address = to_shared_address(address_of(x, i.operands[0], lane));
        const uint32_t offset = address & kOffsetMask;
        uint32_t ctas = 1u << (address >> kRankShift);
        if (i.mode & 4) ctas = uint16_t(x.slot(i.a)[lane]);
        if (ctas == 0 || ctas >> x.cluster.ctas.size())
            fault("tcgen05.commit: mask 0x%x names a CTA that the cluster does not have", ctas);
        x.warp.knowledge.raise(x.warp.tmem_actor,
                               x.warp.tmem_done);  // commit implies fence::before_thread_sync
        Clock knowledge = x.warp.knowledge;
        knowledge.raise(x.warp.tensor_actor, x.warp.tensor_time);
        x.warp.knowledge.raise(x.warp.actor, x.warp.knowledge[x.warp.actor] + 1);
        Exec issue = x;
        submit_tensor(x, [issue, offset, ctas, knowledge]() mutable {
            for (uint32_t rank = 0; rank < issue.cluster.ctas.size(); ++rank) {
                if (!(ctas >> rank & 1)) continue;
                Cta& cta = *issue.cluster.ctas[rank];
                if (cta.has_exited()) fault("tcgen05.commit signals CTA %u, which has exited", rank);
                MBarrier& barrier = find_barrier(cta, offset, "tcgen05.commit");
                check_barrier_use(issue, cta, barrier, offset, BarrierUse::kRemoteOrAsync);
                barrier.arriving.join(knowledge);
                arrive(cta, offset, 1, "tcgen05.commit");
            }
        });
    });
    return Step::kNext;
}

void decode_commit(Decoder& d) {
    const int group = take_cta_group(d);
    d.require("mbarrier::arrive::one");
    d.take_one({"shared::cluster", "shared::cta"});
    const bool multicast = d.take("multicast::cluster");
    d.require("b64");
    d.instr.mode = uint32_t(group) | uint32_t(multicast) << 2;
    d.expect_operands(multicast ? 2 : 1, multicast ? 2 : 1);
    d.no_destination();
    d.set(commit);
}

void decode_warp_wide(Decoder& d, Handler handler) {
    d.require("sync");
    d.require("aligned");
    d.take_one({"shared::cta", "shared"});
    d.take("b32");
    d.no_destination();
    d.set(handler);
}

void decode_allocation(Decoder& d, Handler handler) {
    d.instr.mode = uint32_t(take_cta_group(d));
    decode_warp_wide(d, handler);
}

void decode_tcgen05(Decoder& d) {
    switch (d.require_one({"alloc", "dealloc", "relinquish_alloc_permit", "fence::before_thread_sync",
                           "fence::after_thread_sync", "wait::ld", "wait::st", "commit", "ld", "st", "cp",
                           "mma"})) {
        case 0:
            return decode_allocation(d, alloc);
        case 1:
            return decode_allocation(d, dealloc);
        case 2:
            return decode_allocation(d, relinquish);
        case 3:
            return d.set(fence_before);
        case 4:
            return d.set(fence_after);
        case 5:
            return decode_warp_wide(d, wait_load);
        case 6:
            return decode_warp_wide(d, wait_store);
        case 7:
            return decode_commit(d);
        case 8:
            return decode_tmem_load(d);
        case 9:
            return decode_tmem_store(d);
        case 10:
            return decode_tmem_copy(d);
        default:
            return decode_tensor_mma(d);
    }
}

}  // namespace

FamilyTable tcgen05_families() {
    return {{"tcgen05", decode_tcgen05}};
}

}  // namespace emu
