// The CUDA driver's functions, found at run time in a library whose name a setting gives.
#pragma once

#include <cuda.h>

#include <string>

namespace deep_gemm::launch {

// Every entry exists in drivers from CUDA 12.3 on; the types are those of the header for the symbols' fixed
// versions.
struct Driver {
    decltype(&::cuInit) init = nullptr;
    decltype(&::cuDriverGetVersion) driver_version = nullptr;
    decltype(&::cuGetErrorName) error_name = nullptr;
    decltype(&::cuGetErrorString) error_string = nullptr;
    decltype(&::cuDeviceGetCount) device_count = nullptr;
    decltype(&::cuDeviceGet) device_get = nullptr;
    decltype(&::cuDeviceGetName) device_name = nullptr;
    decltype(&::cuDeviceGetAttribute) device_attribute = nullptr;
    decltype(&::cuDevicePrimaryCtxRetain) primary_context_retain = nullptr;
    decltype(&::cuCtxGetCurrent) context_current = nullptr;
    decltype(&::cuCtxGetDevice) context_device = nullptr;
    decltype(&::cuCtxPushCurrent) context_push = nullptr;
    decltype(&::cuCtxPopCurrent) context_pop = nullptr;
    decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode = nullptr;
    decltype(&::cuLibraryLoadData) library_load = nullptr;
    decltype(&::cuLibraryUnload) library_unload = nullptr;
    decltype(&::cuLibraryGetKernel) library_kernel = nullptr;
    decltype(&::cuKernelGetFunction) kernel_function = nullptr;
    decltype(&::cuFuncGetAttribute) function_attribute = nullptr;
    decltype(&::cuFuncSetAttribute) set_function_attribute = nullptr;
    decltype(&::cuLaunchKernelEx) launch_kernel = nullptr;
    decltype(&::cuTensorMapEncodeTiled) encode_tiled = nullptr;
    decltype(&::cuMemsetD2D8Async) memset_2d = nullptr;
    decltype(&::cuMemcpy2DAsync) memcpy_2d = nullptr;

    std::string library;  // the name it was loaded by
    int version = 0;      // 1000 * major + 10 * minor
    int num_devices = 0;
    int process = 0;  // the pid that initialised it: a forked child cannot use it
};

// Loads and initialises the driver at the first call. Throws Error, again at every call, when the library is
// missing, too old, or finds no device.
const Driver& driver();

// Throws Error naming the driver call, its error, and `advice` (a clause that says what to do), unless
// `result` is success.
void check_driver(CUresult result, const char* call, const char* advice);

}  // namespace deep_gemm::launch
