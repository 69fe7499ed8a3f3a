// The environment, read once at first use into a struct, by one typed parser that refuses a bad value by
// name.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace deep_gemm {

struct Settings {
    std::string
        cache_dir;  // absolute folder of the kernel cache; empty: neither DG_JIT_CACHE_DIR nor a home is set
    bool jit_debug = false;      // DG_JIT_DEBUG: keep sources, print compiler messages and cache decisions
    bool dump_ptx = false;       // DG_JIT_DUMP_PTX (or _ASM)
    bool dump_sass = false;      // DG_JIT_DUMP_SASS (or _ASM)
    bool ptxas_verbose = false;  // DG_JIT_PTXAS_VERBOSE: print registers, spills
    bool ptxas_check = false;    // DG_JIT_PTXAS_CHECK: refuse kernels with spills or local memory
    bool with_lineinfo = false;  // DG_JIT_WITH_LINEINFO
    bool for_racecheck = false;  // DG_JIT_FOR_RACECHECK: kernels whose order racecheck can follow
    bool print_compiler_command = false;  // DG_JIT_PRINT_COMPILER_COMMAND
    bool print_load_time = false;         // DG_JIT_PRINT_LOAD_TIME
    bool print_configs = false;           // DG_PRINT_CONFIGS
    bool validate = false;                // DG_VALIDATE: look at layouts and factors before grouped calls run; synchronises
    std::chrono::seconds lock_limit{60};  // DG_JIT_LOCK_SECONDS: how long to wait for another process's build
    std::string nvrtc_library;            // DG_JIT_NVRTC_LIBRARY: the only NVRTC tried, a path or a name
    std::string driver_library = "libcuda.so.1";  // DG_DRIVER_LIBRARY: a path or a name for dlopen
    std::string emulate;                          // DG_EMULATE: empty, "sm90a" or "sm100a"
    std::vector<std::string> toolkit_roots;       // CUDA_HOME, CUDA_PATH, /usr/local/cuda
    std::vector<std::string> tool_folders;        // PATH
};

// The settings of this process. Throws Error, at every call, while the environment holds a bad value.
const Settings& settings();

// Reads the environment again. Throws Error on a bad value, and then keeps the settings as they were.
// References from earlier calls of settings() stay valid.
void reload_settings();

}  // namespace deep_gemm
