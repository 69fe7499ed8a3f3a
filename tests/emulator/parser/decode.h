// Opcode text -> handler. Each family decodes its own qualifiers and must consume every one of them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "machine/fault.h"
#include "machine/program.h"

namespace emu {

// Fills exec, type, mode, detail, reads and writes of the instruction.
void decode(Instr& instr, Kernel& kernel);

class Decoder {
  public:
    Decoder(Instr& instr, Kernel& kernel);

    Instr& instr;
    Kernel& kernel;

    bool take(std::string_view qualifier);
    // Takes the first qualifier of the list that is present and returns its index, or -1.
    int take_one(std::initializer_list<std::string_view> choices);
    void require(std::string_view qualifier);
    int require_one(std::initializer_list<std::string_view> choices);
    ScalarType take_type();  // the next qualifier that names a type, kNone if there is none
    ScalarType require_type();
    int take_vector();        // .v2 .v4 .v8, otherwise 1
    void take_cache_hints();  // .L1::*, .L2::*, .ca, .nc, ...: no functional meaning
    bool has(std::string_view qualifier) const;
    std::string next_matching(std::string_view prefix);  // takes the first qualifier with this prefix, or ""

    void set(Handler handler) { instr.exec = handler; }
    void no_destination() { destinations_ = 0; }
    void destinations(int count) { destinations_ = count; }
    // The first operand is read and written (wgmma accumulators).
    void destination_is_source() { destination_is_source_ = true; }
    void expect_operands(size_t low, size_t high) const;
    const Operand& operand(size_t i) const { return instr.operands.at(i); }
    [[noreturn]] void refuse(const char* why) const;
    void finish();

    template <class T>
    void keep(T detail) {
        instr.detail = std::make_shared<const T>(std::move(detail));
    }

  private:
    std::vector<std::string> qualifiers_;
    std::vector<bool> taken_;
    int destinations_ = 1;
    bool destination_is_source_ = false;
};

using DecodeFamily = void (*)(Decoder&);
struct FamilyEntry {
    std::string_view head;
    DecodeFamily decode;
};

// Each file of simt/ and async/ offers its table; decode.cc lists them.
using FamilyTable = std::vector<FamilyEntry>;

}  // namespace emu
