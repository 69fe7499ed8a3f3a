// wgmma (PTX ISA 9.7.15). Each warp computes its 16 rows of the 64. In synchronous mode at issue; in seeded
// mode at wait_group, so that operands overwritten too early give wrong results.
#include "async/descriptor.h"
#include "async/engine.h"
#include "scheduler/hazards.h"
#include "simt/families.h"
#include "simt/gather.h"
#include "tensor/fused_dot.h"

namespace emu {
namespace {

using T = ScalarType;

struct WgmmaShape {
    int n, k;
    T d_type, a_type, b_type;
    bool a_in_registers;
    Sign a_sign, b_sign;
    Major a_major, b_major;
    const FloatFormat *a_format, *b_format;
    int element_bytes;
    MmaSpec spec;
    size_t scale_operand;  // index of p
};

constexpr int kWarpRows = 16;

// Where register r of lane l lies in the warp's 16 x N part of D.
int fragment_row(int r, int l) {
    return l / 4 + 8 * (r >> 1 & 1);
}
int fragment_column(int r, int l) {
    return 2 * (l % 4) + (r & 1) + 8 * (r >> 2);
}

void fill_tile(MmaTile& tile, const std::vector<uint32_t>& raw, int count, int depth,
               const FloatFormat& format, Sign sign) {
    tile.reset(count, depth, format);
    const int drop = &format == &kTF32 ? 13 : 0;  // tf32 operands: the low 13 bits are ignored
    for (int k = 0; k < depth; ++k)
        for (int i = 0; i < count; ++i) tile.set(k, i, raw[size_t(k * count + i)] >> drop, format, sign);
}

void read_a_registers(Exec& x, const Instr& i, const WgmmaShape& s, std::vector<uint32_t>& raw) {
    raw.resize(size_t(kWarpRows * s.k));
    const int per_register = 4 / s.element_bytes, bits = 8 * s.element_bytes;
    const auto& registers = i.operands[1].elements;
    for (size_t q = 0; q < registers.size(); ++q)
        for (int l = 0; l < kWarpLanes; ++l)
            for (int h = 0; h < per_register; ++h) {
                const int row = l / 4 + 8 * int(q & 1);
                const int column = (l % 4) * per_register + h + int(q >> 1) * 4 * per_register;
                raw[size_t(column * kWarpRows + row)] =
                    uint32_t(low_bits(x.slot(registers[q])[l] >> (bits * h), s.element_bytes));
            }
}

void load_accumulators(Exec& x, const Instr& i, const WgmmaShape& s, std::vector<uint32_t>& d) {
    const auto& registers = i.operands[0].elements;
    const bool is_half = s.d_type == T::kF16;
    for (size_t r = 0; r < registers.size(); ++r)
        for (int l = 0; l < kWarpLanes; ++l) {
            const uint64_t bits = x.slot(registers[r])[l];
            for (int h = 0; h < (is_half ? 2 : 1); ++h) {
                const int index = is_half ? 2 * int(r) + h : int(r);
                d[size_t(fragment_row(index, l) * s.n + fragment_column(index, l))] =
                    is_half ? uint32_t(bits >> 16 * h) & 0xFFFF : uint32_t(bits);
            }
        }
}

void store_accumulators(Exec& x, const Instr& i, const WgmmaShape& s, const std::vector<uint32_t>& d) {
    const auto& registers = i.operands[0].elements;
    auto at = [&](int r, int l) { return d[size_t(fragment_row(r, l) * s.n + fragment_column(r, l))]; };
    for (size_t r = 0; r < registers.size(); ++r)
        for (int l = 0; l < kWarpLanes; ++l)
            x.slot(registers[r])[l] =
                s.d_type == T::kF16 ? at(2 * int(r), l) | at(2 * int(r) + 1, l) << 16 : at(int(r), l);
}

void execute(Exec& x, const WgmmaOp& op, uint32_t group) {
    const Instr& i = *op.instr;
    const auto& s = i.as<WgmmaShape>();
    static thread_local MmaTile a, b;
    static thread_local std::vector<uint32_t> raw, d;
    const Accessor who = x.async_accessor(x.warp.wgmma_actor, group, x.warp.knowledge);
    const ElementLayout layout{8 * s.element_bytes, 8 * s.element_bytes, false};
    if (s.a_in_registers)
        read_a_registers(x, i, s, raw);
    else
        read_tile(x,
                  {&x.cta, decode_sm90_descriptor(op.a_descriptor), s.a_major, layout,
                   x.warp.index % 4 * kWarpRows, kWarpRows, s.k},
                  who, raw);
    fill_tile(a, raw, kWarpRows, s.k, *s.a_format, s.a_sign);
    read_tile(x, {&x.cta, decode_sm90_descriptor(op.b_descriptor), s.b_major, layout, 0, s.n, s.k}, who, raw);
    fill_tile(b, raw, s.n, s.k, *s.b_format, s.b_sign);
    d.assign(size_t(kWarpRows * s.n), 0);
    if (op.accumulates) load_accumulators(x, i, s, d);
    for (int m = 0; m < kWarpRows; ++m) {
        uint32_t* row = &d[size_t(m * s.n)];
        fused_dot_row(a, m, b, op.accumulates ? row : nullptr, row, s.spec);
    }
    store_accumulators(x, i, s, d);
    ++x.launch.stats.mma_instructions;
    x.launch.stats.mma_macs += uint64_t(kWarpRows) * uint64_t(s.n) * uint64_t(s.k);
}

void check_operand_hazards(Exec& x, const Instr& i, const WgmmaShape& s) {
    if (!x.warp.wgmma_fenced) fault("wgmma.mma_async without a wgmma.fence since the start or the last wgmma.wait_group");
    for (int slot : i.operands[0].elements)
        if (x.warp.hazards[size_t(slot)] == uint8_t(Hazard::kTmemLoad))
            fault("a wgmma accumulator is the target of a pending load");
    if (!s.a_in_registers) return;
    for (int slot : i.operands[1].elements)
        if (x.warp.hazards[size_t(slot)] == uint8_t(Hazard::kWgmma))
            fault("wgmma takes A from registers of a wgmma in flight");
}

void mark(Warp& warp, const WgmmaOp& op) {
    for (int slot : op.instr->operands[0].elements) set_hazard(warp, slot, Hazard::kWgmma);
    if (op.instr->as<WgmmaShape>().a_in_registers)
        for (int slot : op.instr->operands[1].elements)
            if (warp.hazards[size_t(slot)] == 0) set_hazard(warp, slot, Hazard::kWgmmaSource);
}

Step mma_async(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask lanes) {
        if (lanes != kAllLanes) fault("wgmma needs all 32 lanes");
        const auto& s = i.as<WgmmaShape>();
        check_operand_hazards(x, i, s);
        WgmmaOp op{&i, 0, 0, false};
        if (!s.a_in_registers) op.a_descriptor = x.uniform(i.operands[1].slot, lanes, "the A descriptor");
        op.b_descriptor = x.uniform(i.operands[2].slot, lanes, "the B descriptor");
        op.accumulates = x.uniform(i.operands[s.scale_operand].slot, lanes, "scale-d") & 1;
        if (!x.launch.options.is_async) execute(x, op, x.warp.wgmma_committed + 1);
        mark(x.warp, op);
        x.warp.wgmma_open.push_back(op);
    });
}

Step fence(Exec& x, const Instr&, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) { x.warp.wgmma_fenced = true; });
}

Step commit(Exec& x, const Instr&, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) {
        x.warp.wgmma_groups.push_back(std::move(x.warp.wgmma_open));
        x.warp.wgmma_open.clear();
        ++x.warp.wgmma_committed;
    });
}

Step wait(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask) {
        const auto allowed = size_t(x.slot(i.d)[0]);
        Warp& warp = x.warp;
        while (warp.wgmma_groups.size() > allowed) {
            const uint32_t group = warp.wgmma_committed - uint32_t(warp.wgmma_groups.size()) + 1;
            if (x.launch.options.is_async)
                for (const WgmmaOp& op : warp.wgmma_groups.front()) execute(x, op, group);
            warp.wgmma_groups.pop_front();
            warp.wgmma_fenced = false;  // registers may be touched from here on
        }
        warp.knowledge.raise(warp.wgmma_actor, warp.wgmma_committed - uint32_t(warp.wgmma_groups.size()));
        clear_hazards(warp, Hazard::kWgmma);
        clear_hazards(warp, Hazard::kWgmmaSource);
        for (const auto& group : warp.wgmma_groups)
            for (const WgmmaOp& op : group) mark(warp, op);
        for (const WgmmaOp& op : warp.wgmma_open) mark(warp, op);
    });
}

const FloatFormat* format_for(T t) {
    switch (t) {
        case T::kE4M3:
            return &kE4M3;
        case T::kE5M2:
            return &kE5M2;
        case T::kF16:
            return &kF16;
        case T::kBF16:
            return &kBF16;
        case T::kTF32:
            return &kTF32;
        default:
            return nullptr;
    }
}

void take_shape(Decoder& d, WgmmaShape& s) {
    const std::string text = d.next_matching("m64n");
    if (std::sscanf(text.c_str(), "m64n%dk%d", &s.n, &s.k) != 2 || s.n < 8 || s.n > 256 || s.n % 8)
        d.refuse("illegal shape");
    s.d_type = d.require_type();
    s.a_type = d.require_type();
    s.b_type = d.take_type();
    if (s.b_type == T::kNone) d.refuse("one operand type is missing");
    s.a_format = format_for(s.a_type);
    s.b_format = format_for(s.b_type);
    if (!s.a_format || !s.b_format) d.refuse("unsupported operand type");
    s.element_bytes = s.a_type == T::kTF32 ? 4 : s.a_type == T::kF16 || s.a_type == T::kBF16 ? 2 : 1;
    if (s.k * s.element_bytes != 32) d.refuse("K must be 32 bytes");
    const bool is_fp8 = s.element_bytes == 1;
    if (s.d_type == T::kF32)
        s.spec = {is_fp8 ? 13 : 25, is_fp8 ? MmaOutput::kE8M13 : MmaOutput::kF32};
    else if (s.d_type == T::kF16)
        s.spec = {is_fp8 ? 13 : 25, MmaOutput::kF16};
    else
        d.refuse("unsupported accumulator type");
}

int immediate(Decoder& d, size_t operand) {
    for (const SlotInit& init : d.kernel.inits)
        if (init.slot == d.operand(operand).slot && init.kind == SlotInit::Kind::kConstant)
            return int(int64_t(init.value));
    d.refuse("an immediate operand is expected");
}

void decode_mma(Decoder& d) {
    WgmmaShape s{};
    take_shape(d, s);
    s.a_in_registers = d.operand(1).kind == Operand::Kind::kVector;
    s.scale_operand = 3;
    d.expect_operands(4, 8);
    const size_t given = d.instr.operands.size();
    s.a_sign = given > 4 && immediate(d, 4) == -1 ? Sign::kNegate : Sign::kKeep;
    s.b_sign = given > 5 && immediate(d, 5) == -1 ? Sign::kNegate : Sign::kKeep;
    const size_t transposes = given > 6 ? 6 : given;
    if (given > 6 && s.element_bytes != 2) d.refuse("transposes need 16-bit operands");
    if (!s.a_in_registers && given > transposes)
        s.a_major = immediate(d, transposes) ? Major::kMn : Major::kK;
    const size_t b_at = s.a_in_registers ? transposes : transposes + 1;
    if (given > b_at) s.b_major = immediate(d, b_at) ? Major::kMn : Major::kK;
    const size_t registers = size_t(s.n / 8 * (s.d_type == T::kF16 ? 2 : 4));
    if (d.operand(0).elements.size() != registers) d.refuse("wrong number of accumulator registers");
    if (s.a_in_registers && d.operand(1).elements.size() != 4) d.refuse("A takes four registers");
    d.destination_is_source();
    d.keep(s);
    d.set(mma_async);
}

void decode_wgmma(Decoder& d) {
    switch (d.require_one({"mma_async", "fence", "commit_group", "wait_group"})) {
        case 0:
            decode_mma(d);
            break;
        case 1:
            d.set(fence);
            break;
        case 2:
            d.set(commit);
            break;
        default:
            d.set(wait);
            d.no_destination();
    }
    d.require("sync");
    d.require("aligned");
}

}  // namespace

FamilyTable wgmma_families() {
    return {{"wgmma", decode_wgmma}};
}

}  // namespace emu
