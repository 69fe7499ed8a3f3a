// State behind the exported functions: settings, memory, modules, the last report.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/abi.h"
#include "machine/state.h"

namespace emu {

struct Function {
    Module* module;
    const Kernel* kernel;
    int max_dynamic_smem = 48 * 1024;
    bool allows_large_clusters = false;
};

struct LoadedModule {
    std::unique_ptr<Module> module;
    std::vector<std::unique_ptr<Function>> functions;
};

struct LaunchRequest {
    Dim3 grid, block, cluster;
    uint32_t shared_bytes = 0;
    void** params = nullptr;
    void** extra = nullptr;
};

bool has_current_context();  // of the calling thread

class Driver {
  public:
    static Driver& instance();

    std::mutex mutex;
    Arch arch = Arch::kSm90a;
    Options options;
    GlobalMemory memory;
    std::string report;  // of the last failure
    Stats stats;         // of the last launch
    uint64_t launches = 0;

    CUresult load(const void* image, LoadedModule** out);
    CUresult unload(LoadedModule* module);
    CUresult launch(Function& function, const LaunchRequest& request);
    CUresult fail(CUresult code, std::string text);  // keeps the text, prints it to stderr
    bool set(const std::string& key, const std::string& value);

  private:
    Driver();
    std::string check_launch(const Function& function, const LaunchRequest& request) const;
    std::vector<std::unique_ptr<LoadedModule>> modules_;
};

}  // namespace emu
