// Control flow and hints (PTX ISA 9.7.12, 9.7.14 setmaxnreg, griddepcontrol, nanosleep).
#include "scheduler/barriers.h"
#include "simt/families.h"
#include "simt/gather.h"

namespace emu {
namespace {

Step nothing(Exec&, const Instr&, LaneMask) {
    return Step::kNext;
}
Step branch(Exec&, const Instr&, LaneMask) {
    return Step::kBranch;
}

Step branch_indexed(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int l) {
        const auto index = uint32_t(x.slot(i.d)[l]);
        if (index >= i.table.size())
            fault("brx.idx: index %u, but the table has %zu targets", index, i.table.size());
        x.warp.pc[size_t(l)] = uint32_t(i.table[index]);
    });
    return Step::kSplit;
}

Step leave(Exec& x, const Instr&, LaneMask mask) {
    exit_lanes(x, mask);
    return Step::kSplit;
}

Step trap(Exec&, const Instr& i, LaneMask) {
    fault("%s was executed", i.opcode.c_str());
}

Step call_assert(Exec&, const Instr&, LaneMask) {
    fault("a device assertion failed");
}

void decode_bra(Decoder& d) {
    d.take("uni");
    d.no_destination();
    d.expect_operands(1, 1);
    if (d.operand(0).kind != Operand::Kind::kLabel) d.refuse("the target is no label");
    d.instr.target = d.operand(0).target;
    d.set(branch);
}
void decode_brx(Decoder& d) {
    d.require("idx");
    d.take("uni");
    d.no_destination();
    if (d.instr.table.empty()) d.refuse("no branch table");
    d.set(branch_indexed);
}
void decode_exit(Decoder& d) {
    d.take("uni");
    d.set(leave);
}
void decode_trap(Decoder& d) {
    d.set(trap);
}
void decode_call(Decoder& d) {
    d.take("uni");
    d.no_destination();
    std::string callee;
    for (const Operand& operand : d.instr.operands)
        if (operand.kind == Operand::Kind::kName) callee = operand.name;
    if (callee == "__assertfail") return d.set(call_assert);
    if (callee == "vprintf") return d.set(nothing);
    d.refuse("only vprintf and __assertfail can be called");
}
void decode_nanosleep(Decoder& d) {
    d.require_type();
    d.no_destination();
    d.set(nothing);
}

Step set_max_registers(Exec& x, const Instr& i, LaneMask mask) {
    const uint64_t count = x.slot(i.d)[0];
    if (count < 24 || count > 256 || count % 8)
        fault("setmaxnreg: %llu is no multiple of 8 in 24..256", static_cast<unsigned long long>(count));
    return aligned(x, mask, [](LaneMask) {});
}
void decode_setmaxnreg(Decoder& d) {
    d.require_one({"inc", "dec"});
    d.require("sync");
    d.require("aligned");
    d.require("u32");
    d.no_destination();
    d.set(set_max_registers);
}
void decode_griddepcontrol(Decoder& d) {
    d.require_one({"wait", "launch_dependents"});
    d.set(nothing);
}
void decode_pmevent(Decoder& d) {
    d.take("mask");
    d.no_destination();
    d.set(nothing);
}

}  // namespace

FamilyTable control_families() {
    return {{"bra", decode_bra},
            {"brx", decode_brx},
            {"ret", decode_exit},
            {"exit", decode_exit},
            {"trap", decode_trap},
            {"brkpt", decode_trap},
            {"call", decode_call},
            {"nanosleep", decode_nanosleep},
            {"setmaxnreg", decode_setmaxnreg},
            {"griddepcontrol", decode_griddepcontrol},
            {"pmevent", decode_pmevent}};
}

}  // namespace emu
