// TMA tiled copies (PTX ISA 9.7.9.25.5). Facts measured on H200: the pitch is the swizzle span, out-of-range
// elements are zero (with NaN fill: 0x7FF7 in every 16 bits) and count in complete_tx, the XOR uses the
// absolute address, the inner coordinate must be a multiple of 16 bytes. Loads clip per element; stores and
// reductions clip the inner dimension in units of 16 bytes, and a negative coordinate of theirs is an illegal
// instruction. Not verified on silicon: sub-byte types, gather4, .cta_group::2.
#include "async/tma.h"

#include <cstring>

#include "async/bulk.h"
#include "async/tensor_map.h"
#include "async/tensor_map_ops.h"
#include "scheduler/barriers.h"

namespace emu {
namespace {

constexpr int64_t kLoadUnit = 1, kStoreUnit = 16;
constexpr uint32_t kFillNan = 0x7FF77FF7;  // whatever the type

struct TensorCopy {
    int rank;
    bool to_shared, multicast, pair_signal, reduces, gather;
    Reduction op;
};

enum class BoxForm : uint8_t { kTile, kGather4 };

struct Coordinates {
    int64_t at[5] = {};
    BoxForm form = BoxForm::kTile;
};

TensorMap read_map(Exec& x, uint64_t address) {
    TensorMap map;
    if (address % 64)
        fault("the tensor map at 0x%llx is not 64-byte aligned", static_cast<unsigned long long>(address));
    if ((address & kTagMask) == kSharedTag)
        std::memcpy(static_cast<void*>(&map), locate_shared(x, uint32_t(address), 128, "tensor map").bytes(),
                    128);
    else if ((address & kTagMask) == kLocalTag)
        fault("a tensor map in local memory");
    else
        std::memcpy(static_cast<void*>(&map), reinterpret_cast<const void*>(address), 128);
    if (map.magic != TensorMap::kMagic)
        fault("there is no tensor map at 0x%llx", static_cast<unsigned long long>(address));
    return map;
}

bool is_global(uint64_t address) {
    return (address & kTagMask) != kSharedTag && (address & kTagMask) != kLocalTag;
}

// One box row: where it is in global memory and which of its bytes exist.
struct Row {
    uint64_t address;      // of the first existing byte
    uint32_t first, last;  // existing bytes of the row, [first, last)
};

class BoxWalk {
  public:
    // The inner dimension is taken to end at a multiple of `unit` bytes.
    BoxWalk(const TensorMap& map, const Coordinates& start, int64_t unit)
        : map_(map), start_(start), unit_(unit), gathers_(start.form == BoxForm::kGather4) {}

    uint32_t rows() const { return gathers_ ? 4 : map_.rows(); }

    Row row(uint32_t index) const {
        int64_t offset = 0;
        bool exists = true;
        for (int d = 1; d < map_.rank; ++d) {
            const int64_t at = gathers_ ? start_.at[1 + index] : start_.at[d] + index % map_.box[d];
            if (!gathers_) index /= map_.box[d];
            exists &= at >= 0 && at < int64_t(map_.dim(d));
            offset += at * int64_t(map_.strides[d - 1]);
        }
        const int64_t bits = map_.element_bits(), bytes = map_.row_data_bytes();
        const int64_t start = start_.at[0] * bits / 8;
        const int64_t end = (int64_t(map_.dim(0)) * bits / 8 + unit_ - 1) / unit_ * unit_;
        const int64_t first = std::clamp<int64_t>(-start, 0, bytes),
                      last = std::clamp<int64_t>(end - start, first, bytes);
        if (!exists || first >= last) return {0, 0, 0};
        return {map_.base + uint64_t(offset + start + first), uint32_t(first), uint32_t(last)};
    }

  private:
    const TensorMap& map_;
    Coordinates start_;
    int64_t unit_;
    bool gathers_;
};

void check_copy(const TensorMap& map, const Coordinates& c, uint32_t address, int rank) {
    if (map.rank != rank) fault("TMA: a %dd instruction with a tensor map of rank %d", rank, map.rank);
    if (address % 128) fault("TMA: the shared address 0x%x is not 128-byte aligned", address);
    if (c.at[0] * map.element_bits() % 128)
        fault("TMA: the inner coordinate %lld is no multiple of 16 bytes", static_cast<long long>(c.at[0]));
    if (map.is_padded() && c.at[0] % 128)
        fault("TMA: the inner coordinate %lld is no multiple of 128", static_cast<long long>(c.at[0]));
    if (c.form == BoxForm::kGather4 && (map.rank != 2 || map.box[1] != 1))
        fault("TMA gather4/scatter4 needs a rank-2 map with box {x, 1}");
}

void check_store(const TensorMap& map, const Coordinates& c) {
    for (int d = 0; d < map.rank; ++d)
        if (c.at[d] < 0)
            fault("TMA store: coordinate %d is %lld; negative ones are illegal in stores and reductions", d,
                  static_cast<long long>(c.at[d]));
    if (map.is_padded()) fault("TMA stores of padded sub-byte types are not supported");
}

void fill_nan(std::vector<uint8_t>& row) {
    for (size_t i = 0; i + 3 < row.size(); i += 4) std::memcpy(&row[i], &kFillNan, 4);
}

void load_row(BulkWriter& writer, const TensorMap& map, const Row& row, std::vector<uint8_t>& data,
              uint32_t target) {
    std::fill(data.begin(), data.end(), 0);
    if (map.fills_nan) fill_nan(data);
    if (row.first < row.last) {
        writer.x.launch.memory->check(row.address, row.last - row.first, "TMA load");
        if (writer.x.launch.shadow.is_enabled) {
            const Accessor who = writer.x.async_accessor(kNoActor, 0, writer.knowledge);
            writer.x.launch.shadow.observe_global(row.address, row.last - row.first, who);
        }
        std::memcpy(&data[row.first], reinterpret_cast<const void*>(row.address), row.last - row.first);
    }
    const uint32_t chunk = map.type == MapType::kU4Align16 ? 8 : map.type == MapType::kU6Align16 ? 12 : 16;
    for (uint32_t at = 0, smem = 0; at < data.size(); at += chunk, smem += 16)
        writer.write(locate_shared(writer.x, swizzled(target + smem, map.swizzle), 16, "TMA load"), &data[at],
                     chunk);
}

void load_box(BulkWriter& writer, const TensorMap& map, const Coordinates& start, uint32_t target) {
    const BoxWalk walk(map, start, kLoadUnit);
    std::vector<uint8_t> data(map.row_data_bytes());
    for (uint32_t r = 0; r < walk.rows(); ++r)
        load_row(writer, map, walk.row(r), data, target + r * map.pitch());
    const int64_t bytes = int64_t(walk.rows()) * map.row_data_bytes();
    writer.x.launch.stats.bulk_load_bytes += uint64_t(bytes);
    writer.complete(bytes);
}

Coordinates read_coordinates(Exec& x, const Operand& operand, int lane, const TensorCopy& copy) {
    Coordinates c;
    c.form = copy.gather ? BoxForm::kGather4 : BoxForm::kTile;
    if (operand.elements.size() > 5) fault("TMA: more than five coordinates");
    for (size_t d = 0; d < operand.elements.size(); ++d) c.at[d] = int32_t(x.slot(operand.elements[d])[lane]);
    return c;
}

// Which CTA's barrier is signalled for data that goes to CTA `rank`. With .cta_group::2 it is the CTA of the
// same pair that bit 24 of the barrier's address selects (settled by third-party kernels).
Cta* signal_of(Exec& x, const TensorCopy& copy, uint32_t rank, uint32_t barrier_address) {
    if (copy.pair_signal) return x.cluster.ctas.at((rank & ~1u) | (barrier_address >> kRankShift & 1)).get();
    if (copy.multicast) return x.cluster.ctas.at(rank).get();
    return x.cluster.ctas.at(barrier_address >> kRankShift).get();
}

void issue_load(Exec& x, const Instr& i, const TensorCopy& copy, int lane) {
    const auto target = to_shared_address(address_of(x, i.operands[0], lane));
    const uint64_t map_address = address_of(x, i.operands[1], lane);
    const TensorMap map = read_map(x, map_address);
    const Coordinates start = read_coordinates(x, i.operands[1], lane, copy);
    const Signal signal = load_signal(x, i.operands[2], lane);
    check_copy(map, start, target, copy.rank);
    uint32_t ctas = 1u << (target >> kRankShift);
    if (copy.multicast) ctas = uint16_t(x.slot(i.operands[3].slot)[lane]);
    if (ctas >> x.cluster.ctas.size())
        fault("TMA multicast mask 0x%x names a CTA that the cluster does not have", ctas);
    if (!copy.multicast && !copy.pair_signal && signal.address >> kRankShift != target >> kRankShift)
        fault("TMA: data goes to CTA %u but the mbarrier is in CTA %u", target >> kRankShift,
              signal.address >> kRankShift);
    for (uint32_t rank = 0; rank < x.cluster.ctas.size(); ++rank) {
        if (!(ctas >> rank & 1)) continue;
        Cta* signal_cta = signal_of(x, copy, rank, signal.address);
        check_barrier_use(x, *signal_cta, find_barrier(*signal_cta, signal.offset, "TMA load"), signal.offset,
                          BarrierUse::kRemoteOrAsync);
        const MBarrier& barrier = find_barrier(*signal_cta, signal.offset, "TMA load");
        if (is_global(map_address))
            check_map_use(x, map_address, lane, x.async_accessor(barrier.actor, barrier.phase + 1, x.warp.knowledge));
        BulkWriter writer{x, x.warp.knowledge, signal_cta, signal.offset};
        const uint32_t address = (target & kOffsetMask) | rank << kRankShift;
        submit_bulk(x, [writer, map, start, address]() mutable { load_box(writer, map, start, address); });
    }
}

ScalarType reduction_type(const TensorMap& map) {
    switch (map.type) {
        case MapType::kF32:
        case MapType::kF32Ftz:
            return ScalarType::kF32;
        case MapType::kF64:
            return ScalarType::kF64;
        case MapType::kF16:
            return ScalarType::kF16;
        case MapType::kBF16:
            return ScalarType::kBF16;
        case MapType::kS32:
            return ScalarType::kS32;
        case MapType::kU32:
            return ScalarType::kU32;
        case MapType::kS64:
            return ScalarType::kS64;
        case MapType::kU64:
            return ScalarType::kU64;
        default:
            fault("TMA reduction: unsupported element type %d", int(map.type));
    }
}

void store_row(Exec& x, const TensorMap& map, const TensorCopy& copy, const Row& row, uint32_t source,
               const Accessor& who) {
    std::vector<uint8_t> data(map.row_data_bytes());
    for (uint32_t at = 0; at < data.size(); at += 16) {
        const SharedPlace place = locate_shared(x, swizzled(source + at, map.swizzle), 16, "TMA store");
        if (at < row.last && at + 16 > row.first) shadow_shared(x, place, 16, Use::kRead, who);
        std::memcpy(&data[at], place.bytes(), 16);
    }
    if (row.first >= row.last) return;
    const uint32_t bytes = row.last - row.first;
    x.launch.memory->check(row.address, bytes, "TMA store");
    Accessor writer = who;
    writer.is_atomic = copy.reduces;
    if (x.launch.shadow.is_enabled) x.launch.shadow.write_global(row.address, bytes, writer);
    if (x.launch.options.watch_address - row.address < bytes)
        x.launch.stats.timeline.push_back(
            format("writer of the watched address: TMA store at PTX line %d", x.instr->line));
    auto* memory = reinterpret_cast<uint8_t*>(row.address);
    if (copy.reduces)
        reduce_bytes(memory, &data[row.first], bytes, copy.op, reduction_type(map));
    else
        std::memcpy(memory, &data[row.first], bytes);
}

void issue_store(Exec& x, const Instr& i, const TensorCopy& copy, int lane) {
    const uint64_t map_address = address_of(x, i.operands[0], lane);
    const TensorMap map = read_map(x, map_address);
    if (is_global(map_address)) check_map_use(x, map_address, lane, store_accessor(x, x.warp.knowledge));
    const Coordinates start = read_coordinates(x, i.operands[0], lane, copy);
    const auto source = to_shared_address(address_of(x, i.operands[1], lane));
    check_copy(map, start, source, copy.rank);
    check_store(map, start);
    Exec issue = x;
    submit_store(x, [issue, map, start, source, copy, who = store_accessor(x, x.warp.knowledge),
                     knowledge = x.warp.knowledge]() mutable {
        who.knowledge = &knowledge;
        const BoxWalk walk(map, start, kStoreUnit);
        for (uint32_t r = 0; r < walk.rows(); ++r)
            store_row(issue, map, copy, walk.row(r), source + r * map.pitch(), who);
        issue.launch.stats.bulk_store_bytes += uint64_t(walk.rows()) * map.row_data_bytes();
        ++issue.launch.progress;
    });
}

Step tensor_copy(Exec& x, const Instr& i, LaneMask mask) {
    const auto& copy = i.as<TensorCopy>();
    for_lanes(mask, [&](int lane) {
        copy.to_shared ? issue_load(x, i, copy, lane) : issue_store(x, i, copy, lane);
    });
    return Step::kNext;
}

}  // namespace

void decode_tensor_copy(Decoder& d, CopyForm form) {
    const bool reduces = form == CopyForm::kReduce;
    TensorCopy copy{};
    copy.rank = d.require_one({"1d", "2d", "3d", "4d", "5d"}) + 1;
    copy.reduces = reduces;
    if (reduces) copy.op = take_reduction(d);
    copy.to_shared = d.has("mbarrier::complete_tx::bytes");
    d.require("global");
    d.require_one({"shared::cluster", "shared::cta"});
    copy.gather = d.take_one({"tile::gather4", "tile::scatter4"}) >= 0;
    d.take("tile");
    if (copy.to_shared) {
        d.require("mbarrier::complete_tx::bytes");
        copy.multicast = d.take("multicast::cluster");
        copy.pair_signal = d.take("cta_group::2");
        d.take("cta_group::1");
        d.expect_operands(copy.multicast ? 4 : 3, 5);
    } else {
        d.require("bulk_group");
        d.expect_operands(2, 3);
    }
    d.take("L2::cache_hint");
    d.no_destination();
    d.keep(copy);
    d.set(tensor_copy);
}

}  // namespace emu
