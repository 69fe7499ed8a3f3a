#include "driver/driver.h"

#include <cstdlib>
#include <cstring>

#include "parser/parser.h"
#include "scheduler/scheduler.h"

namespace emu {
namespace {

const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::vector<uint8_t> gather_params(const Kernel& kernel, const LaunchRequest& request) {
    std::vector<uint8_t> bytes(kernel.param_bytes);
    if (request.extra) {  // {CU_LAUNCH_PARAM_BUFFER_POINTER (1), p, CU_LAUNCH_PARAM_BUFFER_SIZE (2), &n, END
                          // (0)}
        const void* buffer = nullptr;
        size_t size = 0;
        for (void** at = request.extra; *at; at += 2) {
            if (*at == reinterpret_cast<void*>(1)) buffer = at[1];
            if (*at == reinterpret_cast<void*>(2)) size = *static_cast<size_t*>(at[1]);
        }
        if (buffer) std::memcpy(bytes.data(), buffer, std::min(size, bytes.size()));
        return bytes;
    }
    for (size_t i = 0; i < kernel.params.size(); ++i)
        std::memcpy(bytes.data() + kernel.params[i].offset, request.params[i], kernel.params[i].bytes);
    return bytes;
}

}  // namespace

Driver& Driver::instance() {
    static Driver* driver = new Driver;  // never destroyed: the process may still call at exit
    return *driver;
}

Driver::Driver() {
    if (std::string_view(environment("DG_EMULATE")) == "sm100a") arch = Arch::kSm100a;
    for (const char* key : {"seed", "races", "uninitialised", "strict", "trace", "watch"}) {
        std::string name = "DG_EMULATE_";
        for (const char* c = key; *c; ++c) name += char(std::toupper(*c));
        if (const std::string value = environment(name.c_str()); !value.empty()) set(key, value);
    }
}

bool Driver::set(const std::string& key, const std::string& value) {
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 0);
    if (key == "arch")
        arch = value == "sm100a" ? Arch::kSm100a : Arch::kSm90a;
    else if (key == "seed") {
        options.is_async = !value.empty();
        options.seed = number;
        launches = 0;  // the schedule of a launch follows from the seed and its place behind this call
    } else if (key == "races")
        options.check_races = number != 0;
    else if (key == "uninitialised")
        options.refuse_uninitialised = number != 0;
    else if (key == "strict")
        memory.is_strict = number != 0;
    else if (key == "trace")
        options.trace_barriers = number != 0;
    else if (key == "watch")
        options.watch_address = number;
    else
        return false;
    return true;
}

CUresult Driver::fail(CUresult code, std::string text) {
    report = std::move(text);
    if (!std::getenv("DG_EMULATE_QUIET")) std::fprintf(stderr, "[emulator] %s\n", report.c_str());
    return code;
}

CUresult Driver::load(const void* image, LoadedModule** out) {
    const auto* text = static_cast<const char*>(image);
    if (!text || std::memcmp(text,
                             "\x7f"
                             "ELF",
                             4) == 0)
        return fail(kNoBinaryForGpu, "the emulator loads PTX text only, not a cubin");
    try {
        auto loaded = std::make_unique<LoadedModule>();
        loaded->module = parse_module(text);
        const char* target = arch == Arch::kSm90a ? "sm_90" : "sm_100";
        if (!loaded->module->target.starts_with(target))
            return fail(kNoBinaryForGpu, "the PTX is for " + loaded->module->target +
                                             ", the emulated device is " + target + "a");
        for (const GlobalSymbol& symbol : loaded->module->globals)
            memory.add(reinterpret_cast<uint64_t>(symbol.data.get()), symbol.bytes, symbol.name,
                       GlobalMemory::Tail::kUnknown);
        for (const auto& kernel : loaded->module->kernels) {
            auto function = std::make_unique<Function>();
            function->module = loaded->module.get();
            function->kernel = kernel.get();
            loaded->functions.push_back(std::move(function));
        }
        *out = loaded.get();
        modules_.push_back(std::move(loaded));
        return kSuccess;
    } catch (const Fault& error) {
        return fail(kInvalidPtx, error.what());
    }
}

CUresult Driver::unload(LoadedModule* module) {
    for (auto it = modules_.begin(); it != modules_.end(); ++it) {
        if (it->get() != module) continue;
        for (const GlobalSymbol& symbol : module->module->globals)
            memory.remove(reinterpret_cast<uint64_t>(symbol.data.get()));
        modules_.erase(it);
        return kSuccess;
    }
    return kInvalidHandle;
}

std::string Driver::check_launch(const Function& function, const LaunchRequest& request) const {
    const Kernel& kernel = *function.kernel;
    if (int64_t(request.shared_bytes) > function.max_dynamic_smem)
        return format(
            "%u bytes of dynamic shared memory, but the function's maximum is %d: set the attribute first",
            request.shared_bytes, function.max_dynamic_smem);
    if (request.cluster.count() > 8 && !function.allows_large_clusters)
        return "a cluster of more than 8 CTAs needs the non-portable attribute";
    const uint32_t* required = kernel.required_cluster;
    if (required[0] && (request.cluster.x != required[0] || request.cluster.y != required[1] ||
                        request.cluster.z != required[2]))
        return "the cluster shape differs from .reqnctapercluster";
    if (!kernel.params.empty() && !request.params && !request.extra)
        return "the kernel has parameters, none were given";
    return "";
}

CUresult Driver::launch(Function& function, const LaunchRequest& request) {
    if (std::string problem = check_launch(function, request); !problem.empty())
        return fail(kInvalidValue, "launch of " + function.kernel->name + ": " + problem);
    Launch launch;
    launch.module = function.module;
    launch.kernel = function.kernel;
    launch.arch = arch;
    launch.grid = request.grid;
    launch.block = request.block;
    launch.cluster = request.cluster;
    launch.dynamic_smem = request.shared_bytes;
    // Parameters are 64-byte aligned like tensor maps want it.
    std::vector<uint8_t> storage(function.kernel->param_bytes + 64);
    const std::vector<uint8_t> params = gather_params(*function.kernel, request);
    launch.params = storage.data() + (64 - reinterpret_cast<uint64_t>(storage.data()) % 64) % 64;
    std::copy(params.begin(), params.end(), launch.params);
    launch.options = options;
    launch.options.seed = options.seed * 1000003 + launches++;
    launch.memory = &memory;
    memory.add(reinterpret_cast<uint64_t>(launch.params), params.size(), "kernel parameters",
               GlobalMemory::Tail::kUnknown);
    std::string problem;
    try {
        run_grid(launch);
    } catch (const Fault& error) {
        problem = error.what();
    }
    memory.remove(reinterpret_cast<uint64_t>(launch.params));
    stats = std::move(launch.stats);
    return problem.empty() ? kSuccess : fail(kLaunchFailed, std::move(problem));
}

}  // namespace emu
