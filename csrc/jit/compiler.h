// One compilation: what goes in, its digest, and NVRTC's work. Knows no cache.
#pragma once

#include <string>
#include <vector>

#include "jit/jit.h"
#include "jit/nvrtc.h"
#include "jit/source_closure.h"

namespace deep_gemm::jit {

// Everything a compilation depends on, and nothing else.
struct Job {
    Source source;
    Target target;
    Closure headers;
    std::vector<std::string> options;
    const Nvrtc* compiler = nullptr;
    std::string digest;
};

// Throws Error if NVRTC or a header is missing, or the target is not supported.
Job make_job(const Source& source, const Target& target);

struct Compiled {
    std::string image;  // cubin or PTX, never empty
    std::string ptx;    // always
    std::string log;    // compiler messages and, for a cubin, ptxas' resource report
};

// Throws Error with the compiler's log, the options and the source. `source_path` is where a copy was kept,
// or empty.
Compiled compile(const Job& job, const std::string& source_path);

// Why `image` cannot be the image of this job (wrong format, no such entry), or empty.
std::string reject_image(const std::string& image, const std::string& entry, ImageKind kind);

// What a log of ptxas says against a kernel: spills, local memory, serialised wgmma; empty if nothing.
std::string resource_complaints(const std::string& log);

}  // namespace deep_gemm::jit
