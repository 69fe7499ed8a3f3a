#include "simt/access.h"

namespace emu {
namespace {

const char* verb(Use use) {
    return use == Use::kRead ? "load" : use == Use::kWrite ? "store" : "atomic access";
}

uint8_t* access_shared(Exec& x, int lane, uint64_t address, uint32_t bytes, Use use) {
    const SharedPlace place = locate_shared(x, static_cast<uint32_t>(address), bytes, verb(use));
    if (use != Use::kNone) {
        Accessor who = x.accessor(lane);
        who.is_atomic = use == Use::kAtomic;
        shadow_shared(x, place, bytes, use, who);
    }
    if (use != Use::kRead && use != Use::kNone) ++x.launch.progress;
    note_remote_access(x, *place.cta);
    return place.bytes();
}

uint8_t* access_local(Exec& x, int lane, uint64_t address, uint32_t bytes) {
    if (address + bytes > x.launch.kernel->local_bytes)
        fault("local memory access of %u bytes at offset %llu of %u", bytes,
              static_cast<unsigned long long>(address), x.launch.kernel->local_bytes);
    return x.warp.local_memory.data() + static_cast<size_t>(lane) * x.launch.kernel->local_bytes + address;
}

void watch(Exec& x, int lane, uint64_t address, uint32_t bytes) {
    const uint64_t watched = x.launch.options.watch_address;
    if (watched < address || watched >= address + bytes) return;
    x.launch.stats.timeline.push_back(format("writer of 0x%llx: CTA (%u,%u,%u) warp %d lane %d, PTX line %d",
                                             static_cast<unsigned long long>(watched), x.cta.id.x, x.cta.id.y,
                                             x.cta.id.z, x.warp.index, lane, x.instr->line));
}

uint8_t* access_global(Exec& x, int lane, uint64_t address, uint32_t bytes, Use use) {
    x.launch.memory->check(address, bytes, verb(use));
    if (use != Use::kRead) {
        ++x.launch.progress;
        if (x.launch.options.watch_address) watch(x, lane, address, bytes);
    }
    if (x.launch.shadow.is_enabled && use != Use::kNone) {
        Accessor who = x.accessor(lane);
        who.is_atomic = use == Use::kAtomic;
        use == Use::kRead ? x.launch.shadow.read_global(address, bytes, who)
                          : x.launch.shadow.write_global(address, bytes, who);
    }
    return reinterpret_cast<uint8_t*>(address);
}

}  // namespace

uint32_t to_shared_address(uint64_t address) {
    const uint64_t tag = address & kTagMask;
    if (tag != 0 && tag != kSharedTag)
        fault("0x%llx is no shared address", static_cast<unsigned long long>(address));
    return static_cast<uint32_t>(address);
}

SharedPlace locate_shared(Exec& x, uint32_t address, uint32_t bytes, const char* what) {
    const uint32_t rank = address >> kRankShift, offset = address & kOffsetMask;
    if (rank >= x.cluster.ctas.size())
        fault("%s at shared address 0x%x: CTA rank %u, but the cluster has %zu CTAs", what, address, rank,
              x.cluster.ctas.size());
    Cta& cta = *x.cluster.ctas[rank];
    if (offset < kSystemSmemBytes || offset + bytes > cta.smem.size())
        fault("%s of %u bytes at shared address 0x%x is out of bounds: the CTA's window is [0x400, 0x%zx)",
              what, bytes, address, cta.smem.size());
    if (&cta != &x.cta && cta.has_exited())
        fault("%s at shared address 0x%x: CTA %u of the cluster has exited", what, address, rank);
    return {&cta, offset};
}

void shadow_shared(Exec& x, const SharedPlace& place, uint32_t bytes, Use use, const Accessor& who) {
    Shadow& shadow = x.launch.shadow;
    if (!shadow.is_enabled) return;
    const Shadow::Place where{"shared memory", place.cta->rank, 0};
    shadow.fence_counts = &x.cluster.fence_counts;
    if (use == Use::kRead)
        shadow.read(place.cta->cells.data(), place.offset, bytes, who, where);
    else
        shadow.write(place.cta->cells.data(), place.offset, bytes, who, where);
}

uint8_t* access(Exec& x, int lane, Space space, uint64_t address, uint32_t bytes, Use use) {
    const uint32_t alignment = bytes & -bytes;
    if (address & (std::min(alignment, 32u) - 1))
        fault("misaligned %s: %u bytes at 0x%llx (lane %d)", verb(use), bytes,
              static_cast<unsigned long long>(address), lane);
    switch (space) {
        case Space::kShared:
            return access_shared(x, lane, address, bytes, use);
        case Space::kLocal:
            return access_local(x, lane, address, bytes);
        case Space::kParam:  // kernel parameters are host bytes; call parameters live in local memory
            if (address < x.launch.kernel->local_bytes) return access_local(x, lane, address, bytes);
            if (use != Use::kRead) fault("store to a kernel parameter");
            return reinterpret_cast<uint8_t*>(address);
        case Space::kGlobal:
            return access_global(x, lane, address, bytes, use);
        case Space::kGeneric:
            break;
    }
    const uint64_t tag = address & kTagMask;
    if (tag == kSharedTag) return access_shared(x, lane, static_cast<uint32_t>(address), bytes, use);
    if (tag == kLocalTag) return access_local(x, lane, static_cast<uint32_t>(address), bytes);
    return access_global(x, lane, address, bytes, use);
}

Space take_space(Decoder& d) {
    switch (d.take_one({"global", "shared::cta", "shared::cluster", "shared", "local", "param", "const",
                        "param::entry", "param::func"})) {
        case 0:
        case 6:
            return Space::kGlobal;
        case 1:
        case 2:
        case 3:
            return Space::kShared;
        case 4:
            return Space::kLocal;
        case 5:
        case 7:
        case 8:
            return Space::kParam;
        default:
            return Space::kGeneric;
    }
}

}  // namespace emu
