// cp.async.bulk, cp.reduce.async.bulk (1-D), bulk groups, st.async, red.async (PTX ISA 9.7.9.25).
#include "async/bulk.h"

#include <cstring>

#include "async/cp_async.h"
#include "async/tma.h"
#include "scheduler/barriers.h"
#include "simt/families.h"
#include "simt/sync_words.h"
#include "tensor/formats.h"

namespace emu {
namespace {

using T = ScalarType;

struct BulkCopy {
    enum class Kind : uint8_t { kGlobalToShared, kSharedToGlobal, kSharedToShared };
    Kind kind;
    bool multicast;
    bool reduces;
    Reduction op;
    T type;
};

void check_bulk_size(uint64_t address, uint32_t bytes) {
    if (bytes == 0 || bytes % 16 || address % 16)
        fault("bulk copy: address 0x%llx and size %u must be multiples of 16",
              static_cast<unsigned long long>(address), bytes);
}

void load_bulk(Exec& x, const Instr& i, const BulkCopy& copy, int lane) {
    const uint64_t source = address_of(x, i.operands[1], lane);
    const auto target = to_shared_address(address_of(x, i.operands[0], lane));
    const auto bytes = uint32_t(x.slot(i.operands[2].slot)[lane]);
    const Signal signal = load_signal(x, i.operands[3], lane);
    check_bulk_size(source | target, bytes);
    uint32_t ctas = 1u << (target >> kRankShift);
    if (copy.multicast) ctas = uint16_t(x.slot(i.operands[4].slot)[lane]);
    for (uint32_t rank = 0; rank < 16; ++rank) {
        if (!(ctas >> rank & 1)) continue;
        const uint32_t address = (target & kOffsetMask) | rank << kRankShift;
        Cta* signal_cta = copy.multicast ? nullptr : x.cluster.ctas.at(signal.address >> kRankShift).get();
        Exec issue = x;
        submit_bulk(x, [issue, source, address, bytes, signal, signal_cta,
                        from_shared = copy.kind == BulkCopy::Kind::kSharedToShared,
                        knowledge = x.warp.knowledge]() mutable {
            const SharedPlace place = locate_shared(issue, address, bytes, "bulk load");
            BulkWriter writer{issue, knowledge, signal_cta ? signal_cta : place.cta, signal.offset};
            const uint8_t* data = reinterpret_cast<const uint8_t*>(source);
            if (from_shared) {
                const SharedPlace from =
                    locate_shared(issue, to_shared_address(source), bytes, "bulk copy source");
                const Accessor who =
                    issue.async_accessor(issue.warp.actor, knowledge[issue.warp.actor], knowledge);
                shadow_shared(issue, from, bytes, Use::kRead, who);
                data = from.bytes();
            } else {
                issue.launch.memory->check(source, bytes, "bulk load");
            }
            writer.write(place, data, bytes);
            writer.complete(bytes);
            issue.launch.stats.bulk_load_bytes += bytes;
        });
    }
}

void store_bulk(Exec& x, const Instr& i, const BulkCopy& copy, int lane) {
    const uint64_t target = address_of(x, i.operands[0], lane);
    const auto source = to_shared_address(address_of(x, i.operands[1], lane));
    const auto bytes = uint32_t(x.slot(i.operands[2].slot)[lane]);
    check_bulk_size(target | source, bytes);
    Exec issue = x;
    submit_store(x, [issue, target, source, bytes, copy, who = store_accessor(x, x.warp.knowledge),
                     knowledge = x.warp.knowledge]() mutable {
        who.knowledge = &knowledge;
        const SharedPlace from = locate_shared(issue, source, bytes, "bulk store");
        shadow_shared(issue, from, bytes, Use::kRead, who);
        issue.launch.memory->check(target, bytes, "bulk store");
        Accessor writer = who;
        writer.is_atomic = copy.reduces;
        if (issue.launch.shadow.is_enabled) issue.launch.shadow.write_global(target, bytes, writer);
        auto* memory = reinterpret_cast<uint8_t*>(target);
        if (copy.reduces)
            reduce_bytes(memory, from.bytes(), bytes, copy.op, copy.type);
        else
            std::memcpy(memory, from.bytes(), bytes);
        issue.launch.stats.bulk_store_bytes += bytes;
    });
}

// Without effect; what it asks for must exist all the same.
Step prefetch_bulk(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int lane) {
        const uint64_t source = address_of(x, i.operands[0], lane);
        const auto bytes = uint32_t(x.slot(i.operands[1].slot)[lane]);
        check_bulk_size(source, bytes);
        x.launch.memory->check(source, bytes, "bulk prefetch");
    });
    return Step::kNext;
}

Step bulk_copy(Exec& x, const Instr& i, LaneMask mask) {
    const auto& copy = i.as<BulkCopy>();
    for_lanes(mask, [&](int lane) {
        if (copy.kind == BulkCopy::Kind::kSharedToGlobal)
            store_bulk(x, i, copy, lane);
        else
            load_bulk(x, i, copy, lane);
    });
    return Step::kNext;
}

Step commit_group(Exec& x, const Instr&, LaneMask) {
    x.warp.bulk_groups.push_back(std::move(x.warp.bulk_open));
    x.warp.bulk_open = {};
    x.warp.has_open_bulk = false;
    ++x.warp.bulk_committed;
    return Step::kNext;
}

// Both forms complete the older groups; .read promises less, which a sequential machine cannot show.
Step wait_group(Exec& x, const Instr& i, LaneMask) {
    const auto allowed = size_t(x.slot(i.d)[0]);
    while (x.warp.bulk_groups.size() > allowed) {
        for (auto& operation : x.warp.bulk_groups.front().operations) operation();
        x.warp.bulk_groups.pop_front();
        ++x.launch.progress;
    }
    x.warp.knowledge.raise(x.warp.store_actor, x.warp.bulk_committed - uint32_t(x.warp.bulk_groups.size()));
    return Step::kNext;
}

void decode_bulk_copy(Decoder& d, CopyForm form) {
    const bool reduces = form == CopyForm::kReduce;
    BulkCopy copy{};
    copy.reduces = reduces;
    const bool to_shared =
        d.take_one({"shared::cluster", "shared::cta"}) >= 0 && d.has("mbarrier::complete_tx::bytes");
    if (to_shared) {
        copy.kind = d.take("global") ? BulkCopy::Kind::kGlobalToShared : BulkCopy::Kind::kSharedToShared;
        d.take("shared::cta");
        d.require("mbarrier::complete_tx::bytes");
        copy.multicast = d.take("multicast::cluster");
        if (reduces) d.refuse("reductions into shared memory are not supported");
    } else {
        d.require("global");
        d.require("bulk_group");
        copy.kind = BulkCopy::Kind::kSharedToGlobal;
    }
    d.next_matching("L2::");
    if (reduces) {
        copy.op = take_reduction(d);
        d.take("noftz");
        copy.type = d.require_type();
    }
    d.no_destination();
    d.keep(copy);
    d.set(bulk_copy);
}

Step nothing(Exec&, const Instr&, LaneMask) {
    return Step::kNext;
}

void decode_cp(Decoder& d) {
    d.no_destination();
    const CopyForm form = d.take("reduce") ? CopyForm::kReduce : CopyForm::kPlain;
    d.require("async");
    if (!d.take("bulk")) return decode_cp_async(d);
    if (d.take("commit_group")) return d.set(commit_group);
    if (d.take("wait_group")) {
        d.take("read");
        return d.set(wait_group);
    }
    if (d.take("prefetch")) {
        const bool is_tensor = d.has("tensor");
        for (const char* q :
             {"tensor", "1d", "2d", "3d", "4d", "5d", "L2", "global", "tile", "L2::cache_hint"})
            d.take(q);
        return d.set(is_tensor ? nothing : prefetch_bulk);
    }
    if (d.take("tensor")) return decode_tensor_copy(d, form);
    decode_bulk_copy(d, form);
}

// st.async / red.async: a store to another CTA's shared memory that completes transactions there.
struct RemoteStore {
    int vector;
    T type;
    bool reduces;
    Reduction op;
};

Step store_async(Exec& x, const Instr& i, LaneMask mask) {
    const auto& op = i.as<RemoteStore>();
    const auto bytes = uint32_t(type_bytes(op.type));
    for_lanes(mask, [&](int lane) {
        const auto target = to_shared_address(address_of(x, i.operands[0], lane));
        const Signal signal = load_signal(x, i.operands[2], lane);
        std::vector<uint8_t> data(bytes * size_t(op.vector));
        for (int k = 0; k < op.vector; ++k)
            std::memcpy(
                &data[size_t(k) * bytes],
                &x.slot(op.vector == 1 ? i.operands[1].slot : i.operands[1].elements[size_t(k)])[lane],
                bytes);
        Exec issue = x;
        submit_bulk(x, [issue, target, signal, data, op, knowledge = x.warp.knowledge]() mutable {
            const auto total = uint32_t(data.size());
            const SharedPlace place = locate_shared(issue, target, total, "st.async");
            if (signal.address >> kRankShift != place.cta->rank)
                fault("st.async: data and mbarrier must be in the same CTA");
            if (op.reduces) {
                std::vector<uint8_t> sum(place.bytes(), place.bytes() + total);
                reduce_bytes(sum.data(), data.data(), total, op.op, op.type);
                data = sum;
            }
            BulkWriter writer{issue, knowledge, place.cta, signal.offset};
            writer.write(place, data.data(), total);
            writer.complete(total);
        });
    });
    return Step::kNext;
}

void decode_async_store(Decoder& d, CopyForm form) {
    const bool reduces = form == CopyForm::kReduce;
    RemoteStore op{};
    d.require("async");
    d.take_one({"weak", "relaxed"});
    d.take("cluster");
    d.require("shared::cluster");
    d.require("mbarrier::complete_tx::bytes");
    op.reduces = reduces;
    if (reduces) op.op = take_reduction(d);
    op.vector = d.take_vector();
    op.type = d.require_type();
    d.no_destination();
    d.expect_operands(3, 3);
    d.keep(op);
    d.set(store_async);
}

template <class I>
I reduce_integer(I a, I b, Reduction op) {
    switch (op) {
        case Reduction::kAdd:
            return I(std::make_unsigned_t<I>(a) + std::make_unsigned_t<I>(b));
        case Reduction::kMin:
            return std::min(a, b);
        case Reduction::kMax:
            return std::max(a, b);
        case Reduction::kInc:
            return I(a >= b ? 0 : a + 1);
        case Reduction::kDec:
            return I(a == 0 || a > b ? b : a - 1);
        case Reduction::kAnd:
            return I(a & b);
        case Reduction::kOr:
            return I(a | b);
        default:
            return I(a ^ b);
    }
}

uint64_t reduce_half(uint64_t a, uint64_t b, Reduction op, const FloatFormat& f) {
    const double x = decode_float(uint32_t(a), f), y = decode_float(uint32_t(b), f);
    return encode_float(op == Reduction::kAdd   ? x + y
                        : op == Reduction::kMin ? std::fmin(x, y)
                                                : std::fmax(x, y),
                        f, Rounding::kNearestEven, Overflow::kToInfinity);
}

uint64_t reduce_element(uint64_t a, uint64_t b, Reduction op, T type) {
    switch (type) {
        case T::kF32:
            return to_bits(canonical(from_bits<float>(a) + from_bits<float>(b)));
        case T::kF64:
            return to_bits(from_bits<double>(a) + from_bits<double>(b));
        case T::kF16:
            return reduce_half(a, b, op, kF16);
        case T::kBF16:
            return reduce_half(a, b, op, kBF16);
        case T::kS32:
            return to_bits(reduce_integer(int32_t(a), int32_t(b), op));
        case T::kS64:
            return to_bits(reduce_integer(int64_t(a), int64_t(b), op));
        case T::kU64:
        case T::kB64:
            return reduce_integer(a, b, op);
        default:
            return reduce_integer(uint32_t(a), uint32_t(b), op);
    }
}

}  // namespace

void decode_st_async(Decoder& d) {
    decode_async_store(d, CopyForm::kPlain);
}
void decode_red_async(Decoder& d) {
    decode_async_store(d, CopyForm::kReduce);
}

void submit_store(Exec& x, std::function<void()> operation) {
    if (!x.launch.options.is_async)
        operation();
    else
        x.warp.bulk_open.operations.push_back(std::move(operation));
    x.warp.has_open_bulk = true;
}

Signal load_signal(Exec& x, const Operand& operand, int lane) {
    const uint32_t address = to_shared_address(address_of(x, operand, lane));
    const SharedPlace place = locate_shared(x, address, 8, "mbarrier");
    check_barrier_use(x, *place.cta, find_barrier(*place.cta, place.offset, "bulk copy"), place.offset,
                      BarrierUse::kRemoteOrAsync);
    return {place.offset, address};
}

void BulkWriter::write(const SharedPlace& place, const void* data, uint32_t bytes) {
    const MBarrier& barrier = find_barrier(*signal_cta, signal_offset, "bulk copy");
    const Accessor who = x.async_accessor(barrier.actor, barrier.phase + 1, knowledge);
    shadow_shared(x, place, bytes, Use::kWrite, who);
    std::memcpy(place.bytes(), data, bytes);
}

void BulkWriter::complete(int64_t bytes) {
    complete_tx(*signal_cta, signal_offset, bytes, knowledge);
}

Reduction take_reduction(Decoder& d) {
    return static_cast<Reduction>(d.require_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"}));
}

void reduce_bytes(uint8_t* memory, const uint8_t* value, uint32_t bytes, Reduction op, ScalarType type) {
    const auto size = uint32_t(type_bytes(type));
    for (uint32_t at = 0; at < bytes; at += size) {
        uint64_t a = 0, b = 0;
        std::memcpy(&a, memory + at, size);
        std::memcpy(&b, value + at, size);
        const uint64_t r = reduce_element(a, b, op, type);
        std::memcpy(memory + at, &r, size);
    }
}

Accessor store_accessor(Exec& x, const Clock& knowledge) {
    Accessor who = x.async_accessor(x.warp.store_actor, x.warp.bulk_committed + 1, knowledge);
    who.must_be_initialised = true;
    return who;
}

FamilyTable bulk_families() {
    return {{"cp", decode_cp}, {"createpolicy", decode_createpolicy}};
}

}  // namespace emu
