// Which compiler targets exist, from which NVRTC on: one table.
#pragma once

#include <compare>
#include <string>

#include "jit/jit.h"

namespace deep_gemm::jit {

struct NvrtcVersion {
    int major = 0, minor = 0;
    auto operator<=>(const NvrtcVersion&) const = default;
};

// "sm_90a" for a cubin, "compute_90a" for PTX. Throws Error naming what is supported for an unknown compute
// capability, or the version needed when this NVRTC is older than the target.
std::string architecture_option(const Target& target, const NvrtcVersion& nvrtc);

}  // namespace deep_gemm::jit
