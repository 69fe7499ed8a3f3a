// Which FP32 instructions of a cubin let other warps issue first. A scheduler stays with a warp until it
// stalls or an instruction of it yields, and a warp that does not yield keeps the tensor core waiting: it
// needs issue slots, too. The assembler decides by rules of its own, which no source changes, so the first
// line of a source may say
//     //! yields: FFMA 6
// that every sixth FFMA yields and no other FFMA or FMUL does; FMUL counts those instead. It concerns
// instructions whose operands are registers alone, which every thread executes, and which stall for 1 to 11
// cycles: longer stalls must yield to last. So these are hints, and results are the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deep_gemm::jit {

struct YieldRule {
    bool counts_fmul = false;  // else FFMA
    int every = 0;
};

// What a source says, if it does. Throws Error for a line that says it wrongly.
std::optional<YieldRule> yield_rule_of(std::string_view source);

// Applies the rule to the code of `entry` in an SM90 cubin; returns how many instructions it concerned, 0 if
// `cubin` is none that this can read, which then stays as it is. Operands that consecutive instructions share
// are marked for reuse, but where one yields.
int set_yields(std::string& cubin, std::string_view entry, const YieldRule& rule);

}  // namespace deep_gemm::jit
