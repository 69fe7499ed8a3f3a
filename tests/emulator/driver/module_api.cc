// Modules, libraries, functions, launches.
#include "driver/driver.h"

namespace {

using emu::Driver;
using emu::Function;
using emu::LoadedModule;

Function& as_function(void* handle) {
    return *static_cast<Function*>(handle);
}

CUresult load(void** out, const void* image) {
    std::lock_guard lock(Driver::instance().mutex);
    LoadedModule* module = nullptr;
    const CUresult result = Driver::instance().load(image, &module);
    *out = module;
    return result;
}

CUresult unload(void* handle) {
    std::lock_guard lock(Driver::instance().mutex);
    return Driver::instance().unload(static_cast<LoadedModule*>(handle));
}

CUresult find(void** out, void* handle, const char* name) {
    for (auto& function : static_cast<LoadedModule*>(handle)->functions)
        if (function->kernel->name == name) {
            *out = function.get();
            return kSuccess;
        }
    return kNotFound;
}

// Numbers of CUfunction_attribute.
enum FunctionAttribute {
    kMaxThreads = 0,
    kSharedBytes = 1,
    kLocalBytes = 3,
    kNumRegisters = 4,
    kPtxVersion = 5,
    kBinaryVersion = 6,
    kMaxDynamicShared = 8,
    kCarveout = 9,
    kNonPortableCluster = 14
};

CUresult set_attribute(Function& function, int attribute, int value) {
    if (attribute == kMaxDynamicShared) {
        if (value < 0 || value + int(function.kernel->static_smem_bytes) > 227 * 1024)
            return Driver::instance().fail(
                kInvalidValue, emu::format("%d bytes of dynamic shared memory exceed 227 KiB", value));
        function.max_dynamic_smem = value;
    } else if (attribute == kNonPortableCluster) {
        function.allows_large_clusters = value != 0;
    } else if (attribute != kCarveout) {
        return kInvalidValue;
    }
    return kSuccess;
}

CUresult read_attribute(int* value, int attribute, const Function& function) {
    switch (attribute) {
        case kMaxThreads:
            *value = int(function.kernel->max_threads);
            return kSuccess;
        case kSharedBytes:
            *value = int(function.kernel->static_smem_bytes);
            return kSuccess;
        case kLocalBytes:
            *value = 0;
            return kSuccess;
        case kNumRegisters:
            *value = 168;
            return kSuccess;
        case kPtxVersion:
        case kBinaryVersion:
            *value = Driver::instance().arch == emu::Arch::kSm90a ? 90 : 100;
            return kSuccess;
        case kMaxDynamicShared:
            *value = function.max_dynamic_smem;
            return kSuccess;
        case kNonPortableCluster:
            *value = function.allows_large_clusters;
            return kSuccess;
        default:
            return kInvalidValue;
    }
}

}  // namespace

DG_EMULATOR_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return load(reinterpret_cast<void**>(module), image);
}
DG_EMULATOR_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, int*, void**) {
    return load(reinterpret_cast<void**>(module), image);
}
DG_EMULATOR_API CUresult cuModuleUnload(CUmodule module) {
    return unload(module);
}
DG_EMULATOR_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    return find(reinterpret_cast<void**>(function), module, name);
}
DG_EMULATOR_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, int*, void**, unsigned, int*,
                                           void**, unsigned) {
    return load(reinterpret_cast<void**>(library), code);
}
DG_EMULATOR_API CUresult cuLibraryUnload(CUlibrary library) {
    return unload(library);
}
DG_EMULATOR_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    return find(reinterpret_cast<void**>(kernel), library, name);
}
DG_EMULATOR_API CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
    *count = unsigned(reinterpret_cast<LoadedModule*>(library)->functions.size());
    return kSuccess;
}
DG_EMULATOR_API CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
    const auto& functions = reinterpret_cast<LoadedModule*>(library)->functions;
    for (unsigned i = 0; i < count && i < functions.size(); ++i)
        kernels[i] = reinterpret_cast<CUkernel>(functions[i].get());
    return kSuccess;
}
DG_EMULATOR_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuKernelGetName(const char** name, CUkernel kernel) {
    *name = as_function(kernel).kernel->name.c_str();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuFuncGetName(const char** name, CUfunction function) {
    *name = as_function(function).kernel->name.c_str();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    return set_attribute(as_function(function), attribute, value);
}
DG_EMULATOR_API CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
    return read_attribute(value, attribute, as_function(function));
}
DG_EMULATOR_API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice) {
    return set_attribute(as_function(kernel), attribute, value);
}
DG_EMULATOR_API CUresult cuKernelGetAttribute(int* value, int attribute, CUkernel kernel, CUdevice) {
    return read_attribute(value, attribute, as_function(kernel));
}
DG_EMULATOR_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                                          void** extra) {
    std::lock_guard lock(Driver::instance().mutex);
    if (!emu::has_current_context())
        return Driver::instance().fail(kInvalidContext,
                                       "cuLaunchKernelEx: this thread has no current context");
    emu::LaunchRequest request;
    request.grid = {config->grid_x, config->grid_y, config->grid_z};
    request.block = {config->block_x, config->block_y, config->block_z};
    request.shared_bytes = config->shared_bytes;
    request.params = params;
    request.extra = extra;
    for (unsigned i = 0; i < config->num_attributes; ++i)
        if (config->attributes[i].id == kLaunchAttributeCluster) {
            const unsigned* dims = config->attributes[i].value.dims;
            request.cluster = {dims[0], dims[1], dims[2]};
        }
    return Driver::instance().launch(as_function(function), request);
}
DG_EMULATOR_API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                        unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                                        CUstream stream, void** params, void** extra) {
    const CUlaunchConfig config{gx, gy, gz, bx, by, bz, shared_bytes, stream, nullptr, 0};
    return cuLaunchKernelEx(&config, function, params, extra);
}
DG_EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
    *blocks = 1;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
    *clusters = 64;
    return kSuccess;
}
