// NVRTC as a table of functions, found at first use by dlopen.
#pragma once

#include <nvrtc.h>

#include <string>
#include <vector>

#include "jit/target.h"

namespace deep_gemm::jit {

struct Nvrtc {
    decltype(&::nvrtcVersion) version_of = nullptr;
    decltype(&::nvrtcGetErrorString) error_string = nullptr;
    decltype(&::nvrtcCreateProgram) create_program = nullptr;
    decltype(&::nvrtcDestroyProgram) destroy_program = nullptr;
    decltype(&::nvrtcCompileProgram) compile_program = nullptr;
    decltype(&::nvrtcGetProgramLogSize) log_size = nullptr;
    decltype(&::nvrtcGetProgramLog) log = nullptr;
    decltype(&::nvrtcGetPTXSize) ptx_size = nullptr;
    decltype(&::nvrtcGetPTX) ptx = nullptr;
    decltype(&::nvrtcGetCUBINSize) cubin_size = nullptr;
    decltype(&::nvrtcGetCUBIN) cubin = nullptr;

    NvrtcVersion version;
    std::string build;  // version and build id of the library file: equal for equal compilers at any path
    std::string path;
};

// What a search for NVRTC did: the library, or the sentence that says why there is none.
struct NvrtcSearch {
    const Nvrtc* library = nullptr;  // lives for the process
    std::string places_tried;        // one place a line
};

// Folders that may hold libnvrtc, in order, tried before toolkits. A changed list is searched again at the
// next use.
void set_nvrtc_search_path(std::vector<std::string> folders);
std::vector<std::string> nvrtc_search_path();

// Order: DG_JIT_NVRTC_LIBRARY alone if set; else the search path, toolkits (CUDA_HOME, CUDA_PATH,
// /usr/local/cuda), the loader's own places. The outcome is kept until reload_nvrtc().
NvrtcSearch find_nvrtc();
void reload_nvrtc();

// The library; throws Error listing the places tried and what to install.
const Nvrtc& nvrtc();

}  // namespace deep_gemm::jit
