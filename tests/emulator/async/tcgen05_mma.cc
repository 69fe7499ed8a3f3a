// tcgen05.mma (PTX ISA 9.7.16.10). Layouts D, F, A and B of the accumulator, operand halves of a CTA pair and
// the place of scale factors are settled by third-party kernels known to work on Blackwell; nothing here was
// measured on silicon by us. Refused: .ws, sparsity, i8, scale-input-d, block-scaled M = 128 pairs, A of 4 or
// 6 bits in TMEM.
#include "async/engine.h"
#include "async/instruction_descriptor.h"
#include "async/tmem_access.h"
#include "tensor/fused_dot.h"
#include "tensor/scaled_dot.h"

namespace emu {
namespace {

struct MmaForm {
    MmaKind kind;
    int cta_group;
    int scales_per_row;  // 1X, 2X, 4X; 0 when not block-scaled
    bool a_in_tmem;
    int lane_mask = -1;  // operand index of the disable mask
    size_t accumulate;   // operand index of the predicate
};

// All that is known at issue.
struct MmaIssue {
    Exec x;
    const MmaForm* form;
    MmaInstruction i;
    TmemAddress d, a_tmem, sfa, sfb;
    uint64_t a_descriptor, b_descriptor;
    bool accumulates;
    uint32_t disabled_lanes[8];
    uint32_t time;
    Clock knowledge, view;
};

// Where rows and columns of D lie.
class Layout {
  public:
    Layout(const MmaInstruction& i, int cta_group, TmemAddress d)
        : m_(i.m), n_(i.n), cta_group_(cta_group), d_(d) {}
    int rows_per_cta() const { return m_ / cta_group_; }
    bool halves_columns() const { return cta_group_ == 2 && m_ == 128; }  // layout B
    int columns() const { return halves_columns() ? n_ / 2 : n_; }
    // Lane of row m (of this CTA's rows) for column n.
    uint32_t lane(int m, int n) const {
        if (halves_columns()) return uint32_t(m + 64 * (n / (n_ / 2)));
        if (m_ == 64) return uint32_t(m / 16 * 32 + m % 16) + (d_.lane & 16);  // layout F
        return uint32_t(m);
    }
    uint32_t column(int n) const { return d_.column + uint32_t(n % columns()); }

  private:
    int m_, n_, cta_group_;
    TmemAddress d_;
};

Cta& cta_of(MmaIssue& issue, int q) {
    const uint32_t first = issue.form->cta_group == 2 ? issue.x.cta.rank & ~1u : issue.x.cta.rank;
    return *issue.x.cluster.ctas.at(first + uint32_t(q));
}

struct RawTile {
    std::vector<uint32_t> bits;  // [k][i]
    int count;
};

void read_a_from_tmem(MmaIssue& issue, Cta& cta, int rows, RawTile& tile) {
    const MmaInstruction& i = issue.i;
    const int bits = i.a_layout.container_bits, per_word = 32 / bits;
    if (i.a_layout.element_bits < 8) fault("tcgen05.mma: A of 4 or 6 bits in tensor memory is not supported");
    const auto columns = uint32_t(i.k / per_word);
    check_allocated(cta, issue.a_tmem.column, columns, "tcgen05.mma A");
    shadow_tmem(issue.x, {cta, 0xF, issue.a_tmem.column, columns}, Use::kRead,
                tensor_accessor(issue.x, issue.time, issue.view));
    const Layout layout(i, issue.form->cta_group, {issue.a_tmem.lane, 0});
    for (int k = 0; k < i.k; ++k)
        for (int m = 0; m < rows; ++m) {
            const uint32_t word =
                cta.tmem.word(layout.lane(m, 0), issue.a_tmem.column + uint32_t(k / per_word));
            tile.bits[size_t(k * rows + m)] = uint32_t(low_bits(word >> (bits * (k % per_word)), bits / 8));
        }
}

void read_a(MmaIssue& issue, Cta& cta, int rows, RawTile& tile) {
    const MmaInstruction& i = issue.i;
    tile.count = rows;
    tile.bits.resize(size_t(rows * i.k));
    if (issue.form->a_in_tmem) return read_a_from_tmem(issue, cta, rows, tile);
    const Accessor who = issue.x.async_accessor(issue.x.warp.tensor_actor, issue.time, issue.knowledge);
    read_tile(issue.x,
              {&cta, decode_sm100_descriptor(issue.a_descriptor), i.a_major, i.a_layout, 0, rows, i.k}, who,
              tile.bits);
}

// With a CTA pair, CTA q supplies columns [q N/2, (q + 1) N/2).
void read_b(MmaIssue& issue, RawTile& tile) {
    const MmaInstruction& i = issue.i;
    const int group = issue.form->cta_group, part = i.n / group;
    tile.count = i.n;
    tile.bits.resize(size_t(i.n * i.k));
    const Accessor who = issue.x.async_accessor(issue.x.warp.tensor_actor, issue.time, issue.knowledge);
    std::vector<uint32_t> half;
    for (int q = 0; q < group; ++q) {
        read_tile(issue.x,
                  {&cta_of(issue, q), decode_sm100_descriptor(issue.b_descriptor), i.b_major, i.b_layout, 0,
                   part, i.k},
                  who, half);
        for (int k = 0; k < i.k; ++k)
            std::copy_n(&half[size_t(k * part)], part, &tile.bits[size_t(k * i.n + q * part)]);
    }
}

void fill(MmaTile& tile, const RawTile& raw, int depth, const FloatFormat& format, Sign sign) {
    tile.reset(raw.count, depth, format);
    const int drop = &format == &kTF32 ? 13 : 0;
    for (int k = 0; k < depth; ++k)
        for (int i = 0; i < raw.count; ++i)
            tile.set(k, i, raw.bits[size_t(k * raw.count + i)] >> drop, format, sign);
}

// Where an operand's scale factors are, and whose they are.
struct ScaleSource {
    TmemAddress base;
    int id;
    const char* name;
};

// The scale word of a row: lane row % 32, column base + row / 32, the same in all four parts.
uint32_t scale_word(Cta& cta, const ScaleSource& source, int row) {
    const auto column = source.base.column + uint32_t(row / 32), lane = uint32_t(row % 32);
    const uint32_t word = cta.tmem.word(lane, column);
    for (uint32_t part = 1; part < 4; ++part)
        if (cta.tmem.word(part * 32 + lane, column) != word)
            fault("%s of row %d: the copies in the four 32-lane parts differ (column %u of CTA %u)",
                  source.name, row, column, cta.rank);
    return word;
}

void check_scales(MmaIssue& issue, Cta& cta, const ScaleSource& source, int rows) {
    const auto columns = uint32_t((rows + 31) / 32);
    check_allocated(cta, source.base.column, columns, source.name);
    shadow_tmem(issue.x, {cta, 0xF, source.base.column, columns}, Use::kRead,
                tensor_accessor(issue.x, issue.time, issue.view));
}

void apply_scales(MmaIssue& issue, Cta& cta, const ScaleSource& source, MmaTile& tile) {
    check_scales(issue, cta, source, tile.count);
    for (int row = 0; row < tile.count; ++row)
        tile.scale(row, 0, tile.depth, scale_word(cta, source, row) >> (8 * source.id) & 0xFF);
}

std::vector<Fp4Row> make_rows(MmaIssue& issue, Cta& cta, const ScaleSource& source, const RawTile& raw,
                              Sign sign) {
    check_scales(issue, cta, source, raw.count);
    const int per_row = issue.form->scales_per_row;
    if (per_row == 4 ? source.id != 0 : source.id != 0 && source.id != 2)
        fault("%s: scale factor id %d is illegal here", source.name, source.id);
    std::vector<Fp4Row> rows;
    for (int row = 0; row < raw.count; ++row) {
        const uint32_t word = scale_word(cta, source, row) >> (8 * source.id);
        uint8_t nibbles[kFp4Depth], scales[kFp4Groups];
        for (int k = 0; k < kFp4Depth; ++k) nibbles[k] = uint8_t(raw.bits[size_t(k * raw.count + row)]);
        for (int group = 0; group < kFp4Groups; ++group)
            scales[group] = uint8_t(word >> (8 * (group * per_row / kFp4Groups)));
        rows.push_back(make_fp4_row(nibbles, scales, issue.i.scale_type, sign));
    }
    return rows;
}

// Calls row(m, c, d) with the accumulators of every row of this CTA and stores what it leaves in d.
template <class F>
void for_each_row(MmaIssue& issue, Cta& cta, int q, F row) {
    const MmaInstruction& i = issue.i;
    const Layout layout(i, issue.form->cta_group, issue.d);
    uint32_t c[kMaxMmaN], d[kMaxMmaN];
    for (int m = 0; m < layout.rows_per_cta(); ++m) {
        for (int n = 0; n < i.n; ++n) {
            const uint32_t word = cta.tmem.word(layout.lane(m, n), layout.column(n));
            c[n] = i.d_is_half ? word & 0xFFFF : word;
        }
        row(m, issue.accumulates ? c : nullptr, d);
        for (int n = 0; n < i.n; ++n) {
            const uint32_t lane = layout.lane(m, n);
            if (!(issue.disabled_lanes[size_t(q) * 4 + lane / 32] >> (lane % 32) & 1))
                cta.tmem.word(lane, layout.column(n)) = d[n];
        }
    }
}

void multiply_cta(MmaIssue& issue, int q, const RawTile& b_raw) {
    const MmaInstruction& i = issue.i;
    Cta& cta = cta_of(issue, q);
    const Layout layout(i, issue.form->cta_group, issue.d);
    const auto columns = uint32_t(layout.columns());
    check_allocated(cta, issue.d.column, columns, "tcgen05.mma D");
    const Accessor who = tensor_accessor(issue.x, issue.time, issue.view);
    if (issue.accumulates) shadow_tmem(issue.x, {cta, 0xF, issue.d.column, columns}, Use::kRead, who);
    shadow_tmem(issue.x, {cta, 0xF, issue.d.column, columns}, Use::kWrite, who);
    const ScaleSource sfa{issue.sfa, i.sfa_id, "SFA"}, sfb{issue.sfb, i.sfb_id, "SFB"};
    RawTile a_raw;
    read_a(issue, cta, layout.rows_per_cta(), a_raw);
    if (is_packed_fp4(issue.form->kind)) {
        const auto a = make_rows(issue, cta, sfa, a_raw, i.a_sign),
                   b = make_rows(issue, cta, sfb, b_raw, i.b_sign);
        return for_each_row(issue, cta, q, [&](int m, const uint32_t* c, uint32_t* d) {
            for (int n = 0; n < i.n; ++n) d[n] = fused_fp4_dot(a[size_t(m)], b[size_t(n)], c ? c[n] : 0);
        });
    }
    MmaTile a, b;
    fill(a, a_raw, i.k, *i.a_format, i.a_sign);
    fill(b, b_raw, i.k, *i.b_format, i.b_sign);
    if (is_block_scaled(issue.form->kind)) {
        apply_scales(issue, cta, sfa, a);
        apply_scales(issue, cta, sfb, b);
    }
    const MmaSpec spec{25, i.d_is_half ? MmaOutput::kF16 : MmaOutput::kF32};
    for_each_row(issue, cta, q,
                 [&](int m, const uint32_t* c, uint32_t* d) { fused_dot_row(a, m, b, c, d, spec); });
}

void multiply(MmaIssue& issue) {
    RawTile b;
    read_b(issue, b);
    for (int q = 0; q < issue.form->cta_group; ++q) multiply_cta(issue, q, b);
    Stats& stats = issue.x.launch.stats;
    ++stats.mma_instructions;
    stats.mma_macs += uint64_t(issue.i.m) * uint64_t(issue.i.n) * uint64_t(issue.i.k);
}

void read_lane_mask(Exec& x, const Instr& i, const MmaForm& form, int lane, MmaIssue& issue) {
    std::fill_n(issue.disabled_lanes, 8, 0u);
    if (form.lane_mask < 0) return;
    const auto& words = i.operands[size_t(form.lane_mask)].elements;
    for (size_t w = 0; w < words.size(); ++w) issue.disabled_lanes[w] = uint32_t(x.slot(words[w])[lane]);
}

Step mma(Exec& x, const Instr& i, LaneMask mask) {
    const auto& form = i.as<MmaForm>();
    check_cta_group(x, form.cta_group);
    if (form.cta_group == 2 && x.cta.rank % 2)
        fault("tcgen05.mma.cta_group::2 issued by the odd CTA of a pair is not supported");
    for_lanes(mask, [&](int lane) {
        auto issue = std::make_shared<MmaIssue>(MmaIssue{x,
                                                         &form,
                                                         {},
                                                         {},
                                                         {},
                                                         {},
                                                         {},
                                                         0,
                                                         0,
                                                         false,
                                                         {},
                                                         ++x.warp.tensor_time,
                                                         x.warp.knowledge,
                                                         x.warp.tensor_view});
        issue->i = decode_instruction_descriptor(uint32_t(x.slot(i.operands[3].slot)[lane]), form.kind,
                                                 form.cta_group);
        issue->d = tmem_address(address_of(x, i.operands[0], lane));
        if (issue->d.lane & (issue->i.m == 64 ? 0x6F : 0x7F))
            fault("tcgen05.mma: D must start at lane 0, not %u", issue->d.lane);
        if (form.a_in_tmem)
            issue->a_tmem = tmem_address(address_of(x, i.operands[1], lane));
        else
            issue->a_descriptor = x.slot(i.operands[1].slot)[lane];
        issue->b_descriptor = x.slot(i.operands[2].slot)[lane];
        issue->accumulates = (x.slot(i.operands[form.accumulate].slot)[lane] & 1) !=
                             uint64_t(i.operands[form.accumulate].negated);
        read_lane_mask(x, i, form, lane, *issue);
        if (is_block_scaled(form.kind)) {
            issue->sfa = tmem_address(address_of(x, i.operands[4], lane));
            issue->sfb = tmem_address(address_of(x, i.operands[5], lane));
        }
        submit_tensor(x, [issue] { multiply(*issue); });
    });
    return Step::kNext;
}

int take_scales_per_row(Decoder& d, MmaKind kind) {
    if (!is_block_scaled(kind)) return 0;
    d.require("block_scale");
    const int vector = d.take_one({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
    const int block = d.take_one({"block16", "block32"});
    const int natural = kind == MmaKind::kMxf8f6f4 ? 1 : kind == MmaKind::kMxf4 ? 2 : 4;
    const int found = vector >= 0  ? 1 << vector
                      : block == 0 ? 4
                      : block == 1 ? (kind == MmaKind::kMxf8f6f4 ? 1 : 2)
                                   : natural;
    if (kind != MmaKind::kMxf4nvf4 && found != natural) d.refuse("this scale vector is illegal for the kind");
    if (kind == MmaKind::kMxf4nvf4 && found == 1) d.refuse("this scale vector is illegal for the kind");
    return found;
}

}  // namespace

void decode_tensor_mma(Decoder& d) {
    MmaForm form{};
    if (d.has("ws") || d.has("sp") || d.has("ashift")) d.refuse(".ws, .sp and .ashift are not supported");
    form.cta_group = take_cta_group(d);
    form.kind = static_cast<MmaKind>(d.require_one({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
                                                    "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}));
    if (form.kind == MmaKind::kI8) d.refuse("kind::i8 is not supported");
    form.scales_per_row = take_scales_per_row(d, form.kind);
    while (!d.next_matching("collector::").empty()) {
    }
    form.a_in_tmem = d.operand(1).kind == Operand::Kind::kAddress;
    size_t next = 4;
    if (is_block_scaled(form.kind))
        next = 6;
    else if (d.operand(4).kind == Operand::Kind::kVector) {
        form.lane_mask = int(next++);
        if (d.operand(4).elements.size() != size_t(4 * form.cta_group))
            d.refuse("the lane mask has the wrong length");
    }
    form.accumulate = next;
    d.expect_operands(next + 1, next + 1);  // scale-input-d is not supported
    d.no_destination();
    d.keep(form);
    d.set(mma);
}

}  // namespace emu
