#include "jit/target.h"

#include <algorithm>
#include <iterator>

#include "support/error.h"

namespace deep_gemm::jit {
namespace {

struct TargetRow {
    int major, minor;    // compute capability
    const char* suffix;  // arch-specific targets: wgmma, setmaxnreg, tcgen05 exist only there
    NvrtcVersion since;
};

// CUDA 12.0 release notes: sm_90a. 12.8: sm_100a. 12.9: sm_103a. Tried with NVRTC 12.0, 12.4, 12.8 and 13.0.
constexpr TargetRow kTargets[] = {
    {9, 0, "90a", {12, 0}},
    {10, 0, "100a", {12, 8}},
    {10, 3, "103a", {12, 9}},
};

std::string list_targets() {
    std::string text;
    for (const TargetRow& row : kTargets) {
        text += fmt::format("{}{}.{} (NVRTC >= {}.{})", text.empty() ? "" : ", ", row.major, row.minor,
                            row.since.major, row.since.minor);
    }
    return text;
}

}  // namespace

std::string architecture_option(const Target& target, const NvrtcVersion& nvrtc) {
    const auto* row = std::find_if(std::begin(kTargets), std::end(kTargets), [&](const TargetRow& candidate) {
        return candidate.major == target.major && candidate.minor == target.minor;
    });
    DG_CHECK(row != std::end(kTargets), "compute capability {}.{} is not supported; supported: {}",
             target.major, target.minor, list_targets());
    DG_CHECK(
        nvrtc >= row->since,
        "compute capability {}.{} needs NVRTC {}.{} or newer, found {}.{}; install a newer nvidia-cuda-nvrtc "
        "package or CUDA toolkit, or name a newer library in DG_JIT_NVRTC_LIBRARY",
        target.major, target.minor, row->since.major, row->since.minor, nvrtc.major, nvrtc.minor);
    return fmt::format("{}_{}", target.kind == ImageKind::kCubin ? "sm" : "compute", row->suffix);
}

}  // namespace deep_gemm::jit
