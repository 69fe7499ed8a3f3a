#include "launch/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include "support/error.h"
#include "support/settings.h"

namespace deep_gemm::launch {
namespace {

constexpr int kOldestVersion = 12030;

template <typename Function>
void find(void* library, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    DG_CHECK(function != nullptr,
             "the CUDA driver library has no {}: it is older than CUDA 12.3 (update the NVIDIA driver), or "
             "DG_DRIVER_LIBRARY names one that lacks it",
             symbol);
}

void find_functions(void* library, Driver& d) {
    find(library, "cuInit", d.init);
    find(library, "cuDriverGetVersion", d.driver_version);
    find(library, "cuGetErrorName", d.error_name);
    find(library, "cuGetErrorString", d.error_string);
    find(library, "cuDeviceGetCount", d.device_count);
    find(library, "cuDeviceGet", d.device_get);
    find(library, "cuDeviceGetName", d.device_name);
    find(library, "cuDeviceGetAttribute", d.device_attribute);
    find(library, "cuDevicePrimaryCtxRetain", d.primary_context_retain);
    find(library, "cuCtxGetCurrent", d.context_current);
    find(library, "cuCtxGetDevice", d.context_device);
    find(library, "cuCtxPushCurrent_v2", d.context_push);
    find(library, "cuCtxPopCurrent_v2", d.context_pop);
    find(library, "cuThreadExchangeStreamCaptureMode", d.exchange_capture_mode);
    find(library, "cuLibraryLoadData", d.library_load);
    find(library, "cuLibraryUnload", d.library_unload);
    find(library, "cuLibraryGetKernel", d.library_kernel);
    find(library, "cuKernelGetFunction", d.kernel_function);
    find(library, "cuFuncGetAttribute", d.function_attribute);
    find(library, "cuFuncSetAttribute", d.set_function_attribute);
    find(library, "cuLaunchKernelEx", d.launch_kernel);
    find(library, "cuTensorMapEncodeTiled", d.encode_tiled);
    find(library, "cuMemsetD2D8Async", d.memset_2d);
    find(library, "cuMemcpy2DAsync_v2", d.memcpy_2d);
}

std::string explain(const Driver& d, CUresult result, const char* call, const char* advice) {
    const char* name = nullptr;
    const char* text = nullptr;
    d.error_name(result, &name);
    d.error_string(result, &text);
    return fmt::format("{} failed with {} ({}): {}", call, name != nullptr ? name : std::to_string(result),
                       text != nullptr ? text : "unknown to this driver", advice);
}

void initialise(Driver& d) {
    const CUresult result = d.init(0);
    DG_CHECK(result == CUDA_SUCCESS, "no usable CUDA device: {}",
             explain(d, result, "cuInit",
                     result == CUDA_ERROR_NO_DEVICE ? "check CUDA_VISIBLE_DEVICES, or pass CPU tensors"
                                                    : "check that nvidia-smi works, or pass CPU tensors"));
    CUresult query = d.driver_version(&d.version);
    if (query == CUDA_SUCCESS) query = d.device_count(&d.num_devices);
    DG_CHECK(query == CUDA_SUCCESS, "{}",
             explain(d, query, "cuDeviceGetCount", "check that nvidia-smi works"));
    DG_CHECK(d.version >= kOldestVersion,
             "the NVIDIA driver supports CUDA {}.{}; 12.3 or newer is needed: update it", d.version / 1000,
             d.version % 1000 / 10);
    DG_CHECK(d.num_devices > 0,
             "the CUDA driver sees no device: check CUDA_VISIBLE_DEVICES, or pass CPU tensors");
    d.process = ::getpid();
}

// Never closed: the driver must outlive every handle.
Driver load_driver() {
    Driver d;
    d.library = settings().driver_library;
    void* library = ::dlopen(d.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* reason = ::dlerror();
        throw_error(
            fmt::format("the CUDA driver library {} could not be loaded ({}); install the NVIDIA driver, set "
                        "DG_DRIVER_LIBRARY to another library, or pass CPU tensors",
                        d.library, reason != nullptr ? reason : "no reason given"));
    }
    find_functions(library, d);
    initialise(d);
    return d;
}

}  // namespace

const Driver& driver() {
    // A throwing initialiser is run again at the next call. The object is leaked: see load_driver.
    static const Driver& instance = *new Driver(load_driver());
    return instance;
}

void check_driver(CUresult result, const char* call, const char* advice) {
    if (result == CUDA_SUCCESS) [[likely]]
        return;
    const Driver& d = driver();
    const bool forked = d.process != ::getpid();
    throw_error(
        explain(d, result, call,
                forked ? "CUDA was initialised before this process was forked; start it with the spawn method"
                       : advice));
}

}  // namespace deep_gemm::launch
