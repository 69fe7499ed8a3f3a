// Which FP32 instructions of a cubin let other warps issue first. A scheduler stays with a warp until it
// stalls or an instruction of it yields, and a warp that does not yield keeps the tensor core waiting: it
// needs issue slots, too. The assembler decides by rules of its own, which no source changes, so a source may
// say in a line of its own
//     //! yields: FFMA 6
// that every sixth FFMA yields and no other FFMA or FMUL does. FMUL, or FP32 for both, count the same way.
// Hints alone: results are the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deep_gemm::jit {

struct YieldRule {
    bool counts_fmul = false, counts_ffma = false;
    int every = 0;
};

// What a source says, if it does. Throws Error for a line that says it wrongly.
std::optional<YieldRule> yield_rule_of(std::string_view source);

// Applies the rule to the code of `entry` in an SM90 cubin; returns how many instructions it concerned, 0 if
// `cubin` is none that this can read, which then stays as it is. Operands that consecutive instructions share
// are marked for reuse, but where one yields.
int set_yields(std::string& cubin, std::string_view entry, const YieldRule& rule);

}  // namespace deep_gemm::jit
