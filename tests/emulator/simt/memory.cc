// ld, st, prefetch and their qualifiers (PTX ISA 9.7.9). The machine is sequentially consistent; .acquire and
// .release move vector clocks through the word they touch, so flags in memory order what they should.
#include <cstring>

#include "simt/access.h"
#include "simt/families.h"
#include "simt/sync_words.h"

namespace emu {
namespace {

using T = ScalarType;

struct MemoryOp {
    Space space;
    int vector;
    uint32_t bytes;  // per element
    bool sign_extends;
    bool acquires = false, releases = false, is_volatile = false;
};

// Extra wavefronts of a shared access: 32 banks of 4 bytes, one distinct word per bank and wavefront.
void count_bank_conflicts(Exec& x, const MemoryOp& op, const Operand& where, LaneMask mask) {
    const uint32_t total = op.bytes * static_cast<uint32_t>(op.vector);
    const int lanes_per_pass = total <= 4 ? 32 : total == 8 ? 16 : 8;
    ++x.launch.stats.shared_accesses;
    for (int first = 0; first < kWarpLanes; first += lanes_per_pass) {
        uint32_t words[32][8];
        uint8_t count[32] = {};
        uint32_t worst = 1;
        for (int l = first; l < first + lanes_per_pass; ++l) {
            if (!(mask >> l & 1)) continue;
            const uint64_t address = address_of(x, where, l);
            for (uint64_t word = address / 4; word * 4 < address + total; ++word) {
                const uint32_t bank = word % 32;
                bool known = false;
                for (int k = 0; k < count[bank]; ++k) known |= words[bank][k] == uint32_t(word);
                if (!known && count[bank] < 8) words[bank][count[bank]++] = uint32_t(word);
                worst = std::max<uint32_t>(worst, count[bank]);
            }
        }
        x.launch.stats.shared_bank_conflicts += worst - 1;
    }
}

uint64_t load_element(const uint8_t* from, const MemoryOp& op) {
    uint64_t bits = 0;
    std::memcpy(&bits, from, std::min(op.bytes, 8u));
    return bits;
}

Step load(Exec& x, const Instr& i, LaneMask mask) {
    const auto& op = i.as<MemoryOp>();
    const Operand &to = i.operands[0], &from = i.operands[1];
    if (op.space == Space::kShared) count_bank_conflicts(x, op, from, mask);
    const Use use = op.acquires || op.is_volatile ? Use::kAtomic : Use::kRead;
    for_lanes(mask, [&](int l) {
        const uint64_t address = address_of(x, from, l);
        const uint32_t total = op.bytes * uint32_t(op.vector);
        const uint8_t* bytes =
            access(x, l, op.space, address, total, use == Use::kRead ? Use::kRead : Use::kNone);
        if (op.acquires) sync_words(x.cluster).acquire(x.warp, reinterpret_cast<uint64_t>(bytes));
        if (op.bytes == 16) {
            std::memcpy(&x.slot(to.slot)[l], bytes, 8);
            std::memcpy(&x.slot(to.slot + 1)[l], bytes + 8, 8);
            return;
        }
        for (int k = 0; k < op.vector; ++k) {
            uint64_t bits = load_element(bytes + k * op.bytes, op);
            if (op.sign_extends) bits = sign_extend(bits, int(op.bytes));
            x.slot(op.vector == 1 ? to.slot : to.elements[size_t(k)])[l] = bits;
        }
    });
    return Step::kNext;
}

Step store(Exec& x, const Instr& i, LaneMask mask) {
    const auto& op = i.as<MemoryOp>();
    const Operand &to = i.operands[0], &from = i.operands[1];
    if (op.space == Space::kShared) count_bank_conflicts(x, op, to, mask);
    for_lanes(mask, [&](int l) {
        const uint32_t total = op.bytes * uint32_t(op.vector);
        uint8_t* bytes = access(x, l, op.space, address_of(x, to, l), total,
                                op.releases || op.is_volatile ? Use::kAtomic : Use::kWrite);
        if (op.releases) sync_words(x.cluster).release(x.warp, reinterpret_cast<uint64_t>(bytes));
        if (op.bytes == 16) {
            std::memcpy(bytes, &x.slot(from.slot)[l], 8);
            std::memcpy(bytes + 8, &x.slot(from.slot + 1)[l], 8);
            return;
        }
        for (int k = 0; k < op.vector; ++k)
            std::memcpy(bytes + k * op.bytes,
                        &x.slot(op.vector == 1 ? from.slot : from.elements[size_t(k)])[l], op.bytes);
    });
    return Step::kNext;
}

// Semantics and scope; returns the ordering index: 0 weak, 1 relaxed, 2 acquire, 3 release, 4 volatile
void take_ordering(Decoder& d, MemoryOp& op) {
    const int order = d.take_one({"weak", "relaxed", "acquire", "release", "volatile", "mmio"});
    const int scope = d.take_one({"cta", "cluster", "gpu", "sys"});
    op.acquires = order == 2;
    op.releases = order == 3;
    op.is_volatile = order == 1 || order >= 4;
    if ((order >= 1 && scope >= 2) || order >= 4) d.kernel.uses_gpu_scope_sync = true;
}

void decode_ld(Decoder& d) {
    MemoryOp op{};
    take_ordering(d, op);
    d.take("nc");
    op.space = take_space(d);
    d.take_cache_hints();
    d.take("unified");
    op.vector = d.take_vector();
    const T t = d.require_type();
    op.bytes = uint32_t(type_bytes(t));
    op.sign_extends = is_signed(t);
    d.expect_operands(2, 3);
    if (op.vector > 1 && d.operand(0).elements.size() != size_t(op.vector)) d.refuse("vector length");
    d.keep(op);
    d.set(load);
}

void decode_st(Decoder& d) {
    MemoryOp op{};
    if (d.has("async")) return decode_st_async(d);
    if (d.has("bulk")) return d.refuse("st.bulk is not supported");
    take_ordering(d, op);
    op.space = take_space(d);
    d.take_cache_hints();
    op.vector = d.take_vector();
    op.bytes = uint32_t(type_bytes(d.require_type()));
    d.expect_operands(2, 3);
    d.no_destination();
    if (op.vector > 1 && d.operand(1).elements.size() != size_t(op.vector)) d.refuse("vector length");
    d.keep(op);
    d.set(store);
}

Step nothing(Exec&, const Instr&, LaneMask) {
    return Step::kNext;
}

void decode_prefetch(Decoder& d) {
    d.take_one({"global", "local", "param", "const"});
    d.take_one({"L1", "L2", "tensormap"});
    d.next_matching("L2::");
    d.no_destination();
    d.set(nothing);
}

}  // namespace

FamilyTable memory_families() {
    return {{"ld", decode_ld},
            {"ldu", decode_ld},
            {"st", decode_st},
            {"prefetch", decode_prefetch},
            {"prefetchu", decode_prefetch},
            {"discard", decode_prefetch},
            {"applypriority", decode_prefetch}};
}

}  // namespace emu
