// Streams and events: everything has completed by the time a call returns. Errors, lookup, and the emulator's
// own functions.
#include <dlfcn.h>

#include <chrono>
#include <cstring>

#include "driver/driver.h"

// house: crossed (names): the driver API names this type
struct CUstream_st {
    int unused;
};
// house: crossed (names): the driver API names this type
struct CUevent_st {
    std::chrono::steady_clock::time_point time;
};

namespace {

using emu::Driver;

struct ErrorName {
    CUresult code;
    const char *name, *text;
};
constexpr ErrorName kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

const ErrorName* find_error(CUresult code) {
    for (const ErrorName& error : kErrors)
        if (error.code == code) return &error;
    return nullptr;
}

void* own_library() {
    static void* handle = [] {
        Dl_info info;
        dladdr(reinterpret_cast<void*>(&find_error), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    return handle;
}

}  // namespace

DG_EMULATOR_API CUresult cuGetErrorName(CUresult code, const char** out) {
    const ErrorName* error = find_error(code);
    *out = error ? error->name : nullptr;
    return error ? kSuccess : kInvalidValue;
}
DG_EMULATOR_API CUresult cuGetErrorString(CUresult code, const char** out) {
    const ErrorName* error = find_error(code);
    *out = error ? error->text : nullptr;
    return error ? kSuccess : kInvalidValue;
}

DG_EMULATOR_API CUresult cuStreamCreate(CUstream* stream, unsigned) {
    *stream = new CUstream_st{0};
    return kSuccess;
}
DG_EMULATOR_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
    return cuStreamCreate(stream, flags);
}
DG_EMULATOR_API CUresult cuStreamDestroy_v2(CUstream stream) {
    delete stream;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuStreamSynchronize(CUstream) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuStreamQuery(CUstream) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuStreamIsCapturing(CUstream, int* status) {
    *status = 0;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
    static thread_local int current = 0;
    std::swap(*mode, current);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventCreate(CUevent* event, unsigned) {
    *event = new CUevent_st{};
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventDestroy_v2(CUevent event) {
    delete event;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventRecord(CUevent event, CUstream) {
    event->time = std::chrono::steady_clock::now();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventSynchronize(CUevent) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventQuery(CUevent) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

// Names without a suffix mean the newest version, as with the real driver.
DG_EMULATOR_API CUresult cuGetProcAddress_v2(const char* name, void** out, int, uint64_t, int* status) {
    *out = nullptr;
    for (const char* suffix : {"_v2", ""}) {
        *out = dlsym(own_library(), (std::string(name) + suffix).c_str());
        if (*out) break;
    }
    if (status) *status = *out ? 0 : 1;
    return *out ? kSuccess : kNotFound;
}
DG_EMULATOR_API CUresult cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}

// --- The emulator's own functions ---

// Makes [address, address + bytes) a known buffer: accesses that start in it must stay in it.
DG_EMULATOR_API int dg_emulator_register(uint64_t address, uint64_t bytes, const char* name) {
    std::lock_guard lock(Driver::instance().mutex);
    Driver::instance().memory.add(address, bytes, name, emu::GlobalMemory::Tail::kUnknown);
    return 0;
}
DG_EMULATOR_API int dg_emulator_unregister(uint64_t address) {
    std::lock_guard lock(Driver::instance().mutex);
    Driver::instance().memory.remove(address);
    return 0;
}
// Keys: arch, seed (empty: synchronous), races, uninitialised, strict, trace, watch. Returns 0, or 1 for an
// unknown key.
DG_EMULATOR_API int dg_emulator_set(const char* key, const char* value) {
    std::lock_guard lock(Driver::instance().mutex);
    return Driver::instance().set(key, value) ? 0 : 1;
}
DG_EMULATOR_API const char* dg_emulator_report() {
    return Driver::instance().report.c_str();
}
DG_EMULATOR_API const char* dg_emulator_statistics() {
    static thread_local std::string text;
    return (text = Driver::instance().stats.to_json()).c_str();
}
DG_EMULATOR_API const char* dg_emulator_timeline() {
    static thread_local std::string text;
    text.clear();
    for (const std::string& line : Driver::instance().stats.timeline) text += line + "\n";
    return text.c_str();
}
