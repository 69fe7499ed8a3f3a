#include "jit/yields.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "support/error.h"

namespace deep_gemm::jit {
namespace {

constexpr std::string_view kLead = "//! yields: ";
constexpr int kMostApart = 1 << 16;

enum class Opcode : uint16_t { kFmul = 0x220, kFfma = 0x223 };  // all operands registers

// An instruction of SM90: 128 bits, the upper 23 for the scheduler, laid out as on Volta (Jia et al.,
// "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018).
struct Instruction {
    uint64_t low, high;

    uint32_t bits(int first, int count) const {
        const uint64_t word = first < 64 ? low >> first : high >> (first - 64);
        return static_cast<uint32_t>(word & ((uint64_t{1} << count) - 1));
    }
    bool is(Opcode opcode) const { return bits(0, 12) == static_cast<uint32_t>(opcode); }
    // Of those alone that every thread executes.
    bool is_fp32() const { return (is(Opcode::kFmul) || is(Opcode::kFfma)) && bits(12, 4) == kAlways; }
    // A stall of more cycles lasts only if it yields; the assembler sets none of 0 without, either.
    bool may_keep_turn() const { return 0 < bits(105, 4) && bits(105, 4) < 12; }
    // As the assembler does, which marks none for reuse behind a longer stall.
    bool may_mark_reuse() const { return bits(105, 4) <= 2; }
    uint32_t destination() const { return bits(16, 8); }
    uint32_t source(int slot) const { return bits(kSourceBits[slot], 8); }
    int sources() const { return is(Opcode::kFfma) ? 3 : 2; }
    void set_yield(bool yields) { set(109, 1, yields ? 0 : 1); }
    void set_reuse(uint32_t slots) { set(122, 4, slots); }

  private:
    static constexpr uint32_t kAlways = 7;  // predicate PT, not negated
    static constexpr int kSourceBits[3] = {24, 32, 64};

    void set(int first, int count, uint64_t value) {
        const uint64_t mask = ((uint64_t{1} << count) - 1) << (first - 64);
        high = (high & ~mask) | (value << (first - 64) & mask);
    }
};

constexpr uint32_t kZeroRegister = 255;

// Slots of `first` whose register `next` reads in the same slot.
uint32_t shared_slots(const Instruction& first, const Instruction& next) {
    uint32_t slots = 0;
    for (int slot = 0; slot < std::min(first.sources(), next.sources()); ++slot) {
        const uint32_t source = first.source(slot);
        if (source == next.source(slot) && source != first.destination() && source != kZeroRegister)
            slots |= 1u << slot;
    }
    return slots;
}

struct Span {
    uint64_t first = 0, size = 0;
};

// A T at `offset`, if the file has one there.
template <typename T>
std::optional<T> read_at(std::string_view file, uint64_t offset) {
    if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file.data() + offset, sizeof(T));
    return value;
}

// The code of `entry`, or nothing.
Span code_of(std::string_view file, std::string_view entry) {
    const auto header = read_at<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(Elf64_Shdr))
        return {};
    const auto section = [&](uint32_t i) {
        return read_at<Elf64_Shdr>(file, header->e_shoff + uint64_t{i} * sizeof(Elf64_Shdr));
    };
    const auto names = section(header->e_shstrndx);
    if (!names) return {};
    const std::string name = fmt::format(".text.{}", entry) + '\0';
    for (uint32_t i = 0; i < header->e_shnum; ++i) {
        const auto candidate = section(i);
        if (!candidate) return {};
        const uint64_t at = names->sh_offset + candidate->sh_name, offset = candidate->sh_offset;
        if (at > file.size() || file.substr(at, name.size()) != name) continue;
        const bool inside = offset <= file.size() && candidate->sh_size <= file.size() - offset;
        return inside ? Span{offset, candidate->sh_size} : Span{};
    }
    return {};
}

}  // namespace

std::optional<YieldRule> yield_rule_of(std::string_view source) {
    if (!source.starts_with(kLead)) return std::nullopt;
    const std::string_view line = source.substr(0, source.find('\n')), said = line.substr(kLead.size());
    const std::string_view counted = said.substr(0, said.find(' '));
    const std::string_view number = said.substr(std::min(counted.size() + 1, said.size()));
    YieldRule rule{.counts_fmul = counted == "FMUL"};
    const auto read = std::from_chars(number.data(), number.data() + number.size(), rule.every);
    const bool whole = read.ec == std::errc() && read.ptr == number.data() + number.size();
    DG_CHECK((counted == "FMUL" || counted == "FFMA") && whole && 0 < rule.every && rule.every <= kMostApart,
             "source: expected '{}FFMA n' or '{}FMUL n' with n from 1 to {} as its first line, got '{}'",
             kLead, kLead, kMostApart, line);
    return rule;
}

int set_yields(std::string& cubin, std::string_view entry, const YieldRule& rule) {
    const Span code = code_of(cubin, entry);
    int concerned = 0, counted = 0;
    for (uint64_t i = 0; i + sizeof(Instruction) <= code.size; i += sizeof(Instruction)) {
        auto instruction = *read_at<Instruction>(cubin, code.first + i);
        if (!instruction.is_fp32() || !instruction.may_keep_turn()) continue;
        const bool yields = instruction.is(Opcode::kFmul) == rule.counts_fmul && ++counted % rule.every == 0;
        const auto next = i + 2 * sizeof(Instruction) <= code.size
                              ? read_at<Instruction>(cubin, code.first + i + sizeof(Instruction))
                              : std::nullopt;
        instruction.set_yield(yields);
        instruction.set_reuse(!yields && instruction.may_mark_reuse() && next && next->is_fp32()
                                  ? shared_slots(instruction, *next)
                                  : 0);
        std::memcpy(cubin.data() + code.first + i, &instruction, sizeof(Instruction));
        ++concerned;
    }
    return concerned;
}

}  // namespace deep_gemm::jit
