// Warp collectives (PTX ISA 9.7.9.6 shfl, 9.7.13 vote, match, redux, elect, activemask).
#include "simt/families.h"
#include "simt/gather.h"

namespace emu {
namespace {

using T = ScalarType;

LaneMask members_of(Exec& x, int slot, LaneMask mask) {
    const auto members = static_cast<LaneMask>(x.uniform(slot, mask, "membermask"));
    if ((members & mask) != mask)
        fault("lanes 0x%08x execute a .sync instruction with membermask 0x%08x", mask, members);
    return members;
}

enum Shuffle : uint32_t { kUp, kDown, kBfly, kIdx };

int shuffle_source(uint32_t kind, int lane, uint32_t b, uint32_t c, bool& in_range) {
    const int segment = int(c >> 8 & 31), clamp = int(c & 31);
    const int high = (lane & segment) | (clamp & ~segment & 31);
    const int low = lane & segment, delta = int(b & 31);
    const int source = kind == kUp     ? lane - delta
                       : kind == kDown ? lane + delta
                       : kind == kBfly ? lane ^ delta
                                       : low | (delta & ~segment & 31);
    in_range = kind == kUp ? source >= high : source <= high;
    return in_range ? source : lane;
}

Step shuffle(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask members = members_of(x, i.operands[4].slot, mask);
    return collective(x, mask, members, [&](LaneMask lanes) {
        uint64_t values[kWarpLanes];
        const uint64_t* a = x.slot(i.a);
        std::copy(a, a + kWarpLanes, values);
        for_lanes(lanes, [&](int l) {
            bool in_range;
            const int source =
                shuffle_source(i.mode, l, uint32_t(x.slot(i.b)[l]), uint32_t(x.slot(i.c)[l]), in_range);
            if (!(lanes >> source & 1))
                fault("shfl: lane %d reads lane %d, which does not take part", l, source);
            x.slot(i.d)[l] = uint32_t(values[source]);
            if (i.operands[0].second >= 0) x.slot(i.operands[0].second)[l] = in_range;
        });
    });
}
void decode_shfl(Decoder& d) {
    d.require("sync");
    d.instr.mode = uint32_t(d.require_one({"up", "down", "bfly", "idx"}));
    d.require("b32");
    d.expect_operands(5, 5);
    d.set(shuffle);
}

enum Vote : uint32_t { kAll, kAny, kUni, kBallot };
Step vote(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask members = members_of(x, i.b, mask);
    return collective(x, mask, members, [&](LaneMask lanes) {
        LaneMask ballot = 0;
        for_lanes(lanes,
                  [&](int l) { ballot |= LaneMask((x.slot(i.a)[l] & 1) ^ i.operands[1].negated) << l; });
        const uint64_t result[] = {ballot == lanes, ballot != 0, ballot == lanes || ballot == 0, ballot};
        for_lanes(lanes, [&](int l) { x.slot(i.d)[l] = result[i.mode]; });
    });
}
void decode_vote(Decoder& d) {
    d.require("sync");
    d.instr.mode = uint32_t(d.require_one({"all", "any", "uni", "ballot"}));
    d.require_type();
    d.set(vote);
}

Step match(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask members = members_of(x, i.b, mask);
    return collective(x, mask, members, [&](LaneMask lanes) {
        for_lanes(lanes, [&](int l) {
            LaneMask same = 0;
            for_lanes(lanes, [&](int k) { same |= LaneMask(x.slot(i.a)[k] == x.slot(i.a)[l]) << k; });
            const bool all = same == lanes;
            x.slot(i.d)[l] = i.mode == 0 ? same : all ? lanes : 0;
            if (i.operands[0].second >= 0) x.slot(i.operands[0].second)[l] = all;
        });
    });
}
void decode_match(Decoder& d) {
    d.instr.mode = uint32_t(d.require_one({"any", "all"}));
    d.require("sync");
    d.require_type();
    d.set(match);
}

enum Redux : uint32_t { kAdd, kMin, kMax, kAnd, kOr, kXor };
uint32_t reduce(uint32_t op, T type, uint32_t a, uint32_t b) {
    const bool is_signed_type = type == T::kS32;
    switch (op) {
        case kAdd:
            return a + b;
        case kMin:
            return is_signed_type ? uint32_t(std::min(int32_t(a), int32_t(b))) : std::min(a, b);
        case kMax:
            return is_signed_type ? uint32_t(std::max(int32_t(a), int32_t(b))) : std::max(a, b);
        case kAnd:
            return a & b;
        case kOr:
            return a | b;
        default:
            return a ^ b;
    }
}
Step redux(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask members = members_of(x, i.b, mask);
    return collective(x, mask, members, [&](LaneMask lanes) {
        auto result = uint32_t(x.slot(i.a)[std::countr_zero(lanes)]);
        for_lanes(lanes & (lanes - 1),
                  [&](int l) { result = reduce(i.mode, i.type, result, uint32_t(x.slot(i.a)[l])); });
        for_lanes(lanes, [&](int l) { x.slot(i.d)[l] = result; });
    });
}
void decode_redux(Decoder& d) {
    d.require("sync");
    d.instr.mode = uint32_t(d.require_one({"add", "min", "max", "and", "or", "xor"}));
    d.instr.type = d.require_type();
    if (is_float(d.instr.type)) d.refuse("float redux is not supported");
    d.set(redux);
}

// The leader is the lowest lane of the membermask (measured on H200).
Step elect(Exec& x, const Instr& i, LaneMask mask) {
    const LaneMask members = members_of(x, i.a, mask);
    return collective(x, mask, members, [&](LaneMask lanes) {
        const int leader = std::countr_zero(lanes & members);
        for_lanes(lanes, [&](int l) {
            x.slot(i.d)[l] = uint64_t(leader);
            x.slot(i.operands[0].second)[l] = l == leader;
        });
    });
}
void decode_elect(Decoder& d) {
    d.require("sync");
    d.set(elect);
}

Step active_mask(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) { x.slot(i.d)[l] = mask; });
    return Step::kNext;
}
void decode_activemask(Decoder& d) {
    d.require("b32");
    d.set(active_mask);
}

}  // namespace

FamilyTable collective_families() {
    return {{"shfl", decode_shfl},   {"vote", decode_vote},   {"match", decode_match},
            {"redux", decode_redux}, {"elect", decode_elect}, {"activemask", decode_activemask}};
}

}  // namespace emu
