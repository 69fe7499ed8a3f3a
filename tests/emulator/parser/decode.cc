#include "parser/decode.h"

#include <unordered_map>

#include "simt/families.h"

namespace emu {
namespace {

const std::unordered_map<std::string_view, DecodeFamily>& families() {
    static const auto table = [] {
        std::unordered_map<std::string_view, DecodeFamily> all;
        for (const FamilyTable& part :
             {integer_families(), bit_families(), float_families(), sign_families(), convert_families(),
              data_families(), memory_families(), control_families(), collective_families(),
              barrier_families(), atomic_families(), matrix_families(), bulk_families(),
              tensor_map_families(), wgmma_families(), tcgen05_families()})
            for (const FamilyEntry& entry : part) all.emplace(entry.head, entry.decode);
        return all;
    }();
    return table;
}

void collect_slots(const Operand& operand, std::vector<int>& slots) {
    if (operand.slot > kSinkSlot) slots.push_back(operand.slot);
    if (operand.is_wide) slots.push_back(operand.slot + 1);
    if (operand.second > kSinkSlot) slots.push_back(operand.second);
    for (int slot : operand.elements)
        if (slot > kSinkSlot) slots.push_back(slot);
}

}  // namespace

Decoder::Decoder(Instr& i, Kernel& k) : instr(i), kernel(k) {
    const std::string& text = i.opcode;
    for (size_t at = text.find('.'); at != std::string::npos;) {
        const size_t end = text.find('.', at + 1);
        qualifiers_.push_back(text.substr(at + 1, end == std::string::npos ? end : end - at - 1));
        at = end;
    }
    taken_.assign(qualifiers_.size(), false);
}

bool Decoder::take(std::string_view qualifier) {
    for (size_t i = 0; i < qualifiers_.size(); ++i)
        if (!taken_[i] && qualifiers_[i] == qualifier) return taken_[i] = true;
    return false;
}

bool Decoder::has(std::string_view qualifier) const {
    for (const std::string& q : qualifiers_)
        if (q == qualifier) return true;
    return false;
}

int Decoder::take_one(std::initializer_list<std::string_view> choices) {
    int index = 0;
    for (std::string_view choice : choices) {
        if (take(choice)) return index;
        ++index;
    }
    return -1;
}

void Decoder::require(std::string_view qualifier) {
    if (!take(qualifier))
        fault("PTX line %d: '%s' lacks .%s", instr.line, instr.opcode.c_str(),
              std::string(qualifier).c_str());
}

int Decoder::require_one(std::initializer_list<std::string_view> choices) {
    const int index = take_one(choices);
    if (index < 0) refuse("an expected qualifier is missing");
    return index;
}

ScalarType Decoder::take_type() {
    for (size_t i = 0; i < qualifiers_.size(); ++i) {
        if (taken_[i]) continue;
        const ScalarType type = parse_type(qualifiers_[i]);
        if (type == ScalarType::kNone) continue;
        taken_[i] = true;
        return type;
    }
    return ScalarType::kNone;
}

ScalarType Decoder::require_type() {
    const ScalarType type = take_type();
    if (type == ScalarType::kNone) refuse("no type");
    return type;
}

int Decoder::take_vector() {
    return take("v2") ? 2 : take("v4") ? 4 : take("v8") ? 8 : 1;
}

void Decoder::take_cache_hints() {
    take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
    for (size_t i = 0; i < qualifiers_.size(); ++i)
        if (qualifiers_[i].starts_with("L1::") || qualifiers_[i].starts_with("L2::")) taken_[i] = true;
}

std::string Decoder::next_matching(std::string_view prefix) {
    for (size_t i = 0; i < qualifiers_.size(); ++i)
        if (!taken_[i] && qualifiers_[i].starts_with(prefix)) {
            taken_[i] = true;
            return qualifiers_[i];
        }
    return "";
}

void Decoder::expect_operands(size_t low, size_t high) const {
    if (instr.operands.size() < low || instr.operands.size() > high) refuse("wrong number of operands");
}

void Decoder::refuse(const char* why) const {
    fault("PTX line %d: cannot decode '%s': %s", instr.line, instr.opcode.c_str(), why);
}

void Decoder::finish() {
    for (size_t i = 0; i < qualifiers_.size(); ++i)
        if (!taken_[i])
            fault("PTX line %d: unknown qualifier .%s in '%s'", instr.line, qualifiers_[i].c_str(),
                  instr.opcode.c_str());
    if (!instr.exec) refuse("no handler");
    for (size_t i = 0; i < instr.operands.size(); ++i) {
        const Operand& operand = instr.operands[i];
        const bool writes = static_cast<int>(i) < destinations_ && operand.kind != Operand::Kind::kAddress;
        if (writes) collect_slots(operand, instr.writes);
        if (!writes || destination_is_source_) collect_slots(operand, instr.reads);
    }
    if (instr.guard >= 0) instr.reads.push_back(instr.guard);
    int* const plain[] = {&instr.d, &instr.a, &instr.b, &instr.c};
    for (size_t i = 0; i < instr.operands.size() && i < 4; ++i) *plain[i] = instr.operands[i].slot;
}

namespace {

// Clock registers are refreshed when a mov reads them; every other special register is constant for a warp.
bool reads_clock(const Instr& instr, const Kernel& kernel) {
    if (!instr.opcode.starts_with("mov.") || instr.operands.size() != 2) return false;
    for (const SlotInit& init : kernel.inits)
        if (init.slot == instr.a && init.kind == SlotInit::Kind::kSpecial)
            return init.value >= uint64_t(SpecialRegister::kClock) &&
                   init.value <= uint64_t(SpecialRegister::kGlobalTimer);
    return false;
}

}  // namespace

void decode(Instr& instr, Kernel& kernel) {
    const std::string_view head = std::string_view(instr.opcode).substr(0, instr.opcode.find('.'));
    const auto family = families().find(head);
    if (family == families().end())
        fault("PTX line %d: unknown opcode '%s'", instr.line, instr.opcode.c_str());
    Decoder decoder(instr, kernel);
    family->second(decoder);
    decoder.finish();
    instr.reads_clock = reads_clock(instr, kernel);
}

}  // namespace emu
