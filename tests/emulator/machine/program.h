// A decoded PTX module. Every operand is a register slot: immediates, special registers and symbol addresses
// live in slots of their own that are filled when a warp starts, so handlers need one way to read them all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/types.h"

namespace emu {

struct Exec;
struct Instr;

enum class Step : uint8_t {
    kNext,    // all lanes of the group go on to the next instruction
    kBranch,  // lanes of the mask go to `target`, the others to the next instruction
    kSplit,   // the handler has set the pc of the lanes of the mask; the others go to the next instruction
};
using Handler = Step (*)(Exec&, const Instr&, LaneMask);

constexpr int kSinkSlot = 0;  // destination `_`

struct Operand {
    enum class Kind : uint8_t { kSlot, kVector, kAddress, kLabel, kName };
    Kind kind = Kind::kSlot;
    bool negated = false;       // !p
    bool is_wide = false;       // b128: two slots
    int slot = -1;              // register, or base of an address
    int second = -1;            // q of p|q
    int64_t offset = 0;         // displacement of an address
    int target = -1;            // instruction index of a label
    std::string name;           // callee or branch table
    std::vector<int> elements;  // slots of {a, b, ...}; in an address: the coordinates
    std::vector<int> extra;     // third component of an address: im2col offsets (refused)
};

struct Instr {
    Handler exec = nullptr;
    int d = -1, a = -1, b = -1, c = -1;  // slots of plain register operands, for the scalar handlers
    int guard = -1;
    bool guard_negated = false;
    bool reads_clock = false;
    ScalarType type = ScalarType::kNone;
    ScalarType source_type = ScalarType::kNone;
    uint32_t mode = 0;  // meaning private to the family
    int target = -1;
    int line = 0;       // in the PTX text
    int location = -1;  // index into Module::locations
    std::string opcode;
    std::vector<Operand> operands;
    std::vector<int> reads, writes;  // slots, for hazard checks
    std::vector<int> table;          // targets of brx.idx
    std::shared_ptr<const void> detail;

    template <class T>
    const T& as() const {
        return *static_cast<const T*>(detail.get());
    }
};

struct SlotInit {
    enum class Kind : uint8_t { kConstant, kShared, kParam, kGlobal, kLocal, kSpecial };
    int slot;
    Kind kind;
    uint64_t value;  // the constant, an offset in the space, or a SpecialRegister
};

enum class SpecialRegister : uint8_t {
    kTidX,
    kTidY,
    kTidZ,
    kNtidX,
    kNtidY,
    kNtidZ,
    kCtaidX,
    kCtaidY,
    kCtaidZ,
    kNctaidX,
    kNctaidY,
    kNctaidZ,
    kLaneId,
    kWarpId,
    kNwarpId,
    kSmId,
    kNsmId,
    kGridId,
    kClusterIdX,
    kClusterIdY,
    kClusterIdZ,
    kNclusterIdX,
    kNclusterIdY,
    kNclusterIdZ,
    kClusterCtaidX,
    kClusterCtaidY,
    kClusterCtaidZ,
    kClusterNctaidX,
    kClusterNctaidY,
    kClusterNctaidZ,
    kClusterCtaRank,
    kClusterNctaRank,
    kLaneMaskEq,
    kLaneMaskLt,
    kLaneMaskLe,
    kLaneMaskGt,
    kLaneMaskGe,
    kClock,
    kClock64,
    kGlobalTimer,
    kDynamicSmemSize,
    kTotalSmemSize,
    kIsExplicitCluster,
};

struct ParamInfo {
    std::string name;
    uint32_t offset;
    uint32_t bytes;
};

struct Kernel {
    std::string name;
    std::vector<ParamInfo> params;
    uint32_t param_bytes = 0;
    std::vector<Instr> code;
    std::vector<SlotInit> inits;
    int num_slots = 1;
    uint32_t static_smem_bytes = 0;  // without the system's kilobyte
    uint32_t dynamic_smem_align = 16;
    uint32_t local_bytes = 0;
    uint32_t max_threads = 1024;
    uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster, zero when absent
    bool uses_gpu_scope_sync = false;          // atomics, acquire or release beyond the cluster
};

struct SourceLocation {
    int file;
    int line;
};

struct GlobalSymbol {
    std::string name;
    uint64_t bytes;
    std::unique_ptr<uint8_t[]> data;
};

struct Module {
    std::string text;  // the PTX, for reports
    std::string target;
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<SourceLocation> locations;
    std::unordered_map<int, std::string> files;
    std::vector<GlobalSymbol> globals;

    const Kernel* find(const std::string& name) const;
    std::string ptx_line(int line) const;                     // trimmed
    std::string describe_location(const Instr& instr) const;  // "kernel.cuh:12", empty without -lineinfo
};

}  // namespace emu
