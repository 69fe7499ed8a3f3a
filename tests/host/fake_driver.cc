// A CUDA driver for tests of the launcher: no GPU, but strict about contexts, attributes and capture, and
// with a log. It declares the driver's ABI by itself, so that it also checks what the library believes of it.
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

enum : int {
    kSuccess = 0,
    kInvalidValue = 1,
    kNotInitialised = 3,
    kNoDevice = 100,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kInvalidContext = 201,
    kNotFound = 500,
    kCaptureUnsupported = 900,
    kInvalidClusterSize = 912,
};
constexpr int kRelaxed = 2;
constexpr int kMaxDevices = 8;

struct Context {
    int device;
};
struct Kernel {
    std::string entry;
};
struct Function {
    Context* context;
    std::string entry;
    int smem_limit = 48 * 1024;
    bool large_clusters = false;
};
struct Failure {
    std::string call;
    int code, times;
};

std::mutex lock;
std::string log_text;
std::vector<Failure> failures;
Context contexts[kMaxDevices];
bool initialised = false;
std::atomic<bool> load_waits{false}, load_entered{false}, load_released{false};
thread_local std::vector<Context*> stack;
thread_local int capture_mode = 0;
thread_local bool capturing = false;

int num_devices() {
    const char* text = std::getenv("FAKE_DEVICES");
    return text != nullptr ? std::atoi(text) : 1;
}

__attribute__((format(printf, 1, 2))) void note(const char* format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const std::lock_guard guard(lock);
    log_text += line;
    log_text += '\n';
}

int planned_failure(const char* call) {
    const std::lock_guard guard(lock);
    if (!initialised) return kNotInitialised;
    for (Failure& failure : failures)
        if (failure.call == call && failure.times > 0) {
            --failure.times;
            return failure.code;
        }
    return kSuccess;
}

Context* current() {
    return stack.empty() ? nullptr : stack.back();
}

bool load_forbidden() {
    return capturing && capture_mode != kRelaxed;
}

struct LaunchAttribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        uint32_t cluster[3];
        int pdl;
    } value;
};
struct LaunchConfig {
    unsigned grid[3], block[3], smem_bytes;
    void* stream;
    LaunchAttribute* attributes;
    unsigned num_attributes;
};
struct Copy2d {
    std::size_t src_x, src_y;
    int src_type;
    const void* src_host;
    uint64_t src_device;
    void* src_array;
    std::size_t src_pitch, dst_x, dst_y;
    int dst_type;
    void* dst_host;
    uint64_t dst_device;
    void* dst_array;
    std::size_t dst_pitch, width, height;
};

}  // namespace

extern "C" {

// For the tests.
const char* fake_log() {
    return log_text.c_str();
}
void fake_clear() {
    log_text.clear();
}
void fake_fail(const char* call, int code, int times) {
    failures.push_back({call, code, times});
}
// The next load waits until another thread calls fake_release_load; without one it fails after 20 s.
void fake_hold_load() {
    load_waits = true;
}
void fake_release_load() {
    load_released = true;
}
int fake_load_entered() {
    return load_entered;
}
void fake_capture(int on) {
    capturing = on != 0;
}
int fake_capture_mode() {
    return capture_mode;
}
int fake_stack_depth() {
    return static_cast<int>(stack.size());
}
void fake_set_current(int device) {
    stack.clear();
    if (device >= 0) stack.push_back(&contexts[device]);
}

// The driver.
int cuInit(unsigned) {
    note("cuInit");
    if (std::getenv("FAKE_INIT_ERROR") != nullptr) return std::atoi(std::getenv("FAKE_INIT_ERROR"));
    if (num_devices() == 0) return kNoDevice;
    for (int i = 0; i < kMaxDevices; ++i) contexts[i].device = i;
    initialised = true;
    return kSuccess;
}
int cuDriverGetVersion(int* version) {
    *version = std::getenv("FAKE_VERSION") != nullptr ? std::atoi(std::getenv("FAKE_VERSION")) : 12030;
    return kSuccess;
}
int cuGetErrorName(int code, const char** name) {
    static thread_local char text[32];
    std::snprintf(text, sizeof text, "CUDA_ERROR_%d", code);
    *name = text;
    return kSuccess;
}
int cuGetErrorString(int, const char** text) {
    *text = "as planned";
    return kSuccess;
}
int cuDeviceGetCount(int* count) {
    *count = num_devices();
    return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
    if (const int code = planned_failure("cuDeviceGet")) return code;
    *device = ordinal;
    return ordinal < num_devices() ? kSuccess : kInvalidDevice;
}
int cuDeviceGetName(char* name, int size, int device) {
    std::snprintf(name, size, "Fake %d", device);
    return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    if (const int code = planned_failure("cuDeviceGetAttribute")) return code;
    switch (attribute) {
        case 75:
            *value = 9;
            break;
        case 76:
            *value = 0;
            break;
        case 16:
            *value = 132 - 18 * device;
            break;  // devices differ
        case 97:
            *value = 232448;
            break;
        case 13:
            *value = 1980000;
            break;
        default:
            return kInvalidValue;
    }
    return kSuccess;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
    if (const int code = planned_failure("cuDevicePrimaryCtxRetain")) return code;
    note("cuDevicePrimaryCtxRetain device=%d", device);
    *context = &contexts[device];
    return kSuccess;
}
int cuCtxGetCurrent(Context** context) {
    if (const int code = planned_failure("cuCtxGetCurrent")) return code;
    *context = current();
    return kSuccess;
}
int cuCtxGetDevice(int* device) {
    if (current() == nullptr) return kInvalidContext;
    *device = current()->device;
    return kSuccess;
}
int cuCtxPushCurrent_v2(Context* context) {
    note("cuCtxPushCurrent device=%d", context->device);
    stack.push_back(context);
    return kSuccess;
}
int cuCtxPopCurrent_v2(Context** context) {
    note("cuCtxPopCurrent");
    if (stack.empty()) return kInvalidContext;
    *context = stack.back();
    stack.pop_back();
    return kSuccess;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
    std::swap(*mode, capture_mode);
    return kSuccess;
}
int cuLibraryLoadData(void** library, const void* image, int* options, void** values, unsigned count, int*,
                      void**, unsigned) {
    if (const int code = planned_failure("cuLibraryLoadData")) return code;
    if (load_forbidden()) return kCaptureUnsupported;
    load_entered = true;
    for (int i = 0; load_waits && !load_released; ++i) {
        if (i == 2000) return kNotFound;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (std::memcmp(image, "\177ELF", 4) != 0) {
        for (unsigned i = 0; i < count; ++i)
            if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), "not an ELF file");
        return kInvalidImage;
    }
    note("cuLibraryLoadData device=%d", current() != nullptr ? current()->device : -1);
    *library = new int;
    return kSuccess;
}
int cuLibraryUnload(void* library) {
    note("cuLibraryUnload");
    delete static_cast<int*>(library);
    return kSuccess;
}
int cuLibraryGetKernel(Kernel** kernel, void*, const char* entry) {
    if (const int code = planned_failure("cuLibraryGetKernel")) return code;
    *kernel = new Kernel{entry};
    return kSuccess;
}
int cuKernelGetFunction(Function** function, Kernel* kernel) {
    if (const int code = planned_failure("cuKernelGetFunction")) return code;
    if (current() == nullptr) return kInvalidContext;
    if (load_forbidden()) return kCaptureUnsupported;
    *function = new Function{current(), kernel->entry};
    return kSuccess;
}
int cuFuncGetAttribute(int* value, int, Function*) {
    if (const int code = planned_failure("cuFuncGetAttribute")) return code;
    if (load_forbidden()) return kCaptureUnsupported;
    note("cuFuncGetAttribute");
    *value = 168;
    return kSuccess;
}
int cuFuncSetAttribute(Function* function, int attribute, int value) {
    if (const int code = planned_failure("cuFuncSetAttribute")) return code;
    if (function->context != current()) return kInvalidContext;
    note("cuFuncSetAttribute attribute=%d value=%d", attribute, value);
    if (attribute == 8)
        function->smem_limit = value;
    else if (attribute == 14)
        function->large_clusters = value != 0;
    else
        return kInvalidValue;
    return kSuccess;
}
int cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** parameters, void** extra) {
    if (const int code = planned_failure("cuLaunchKernelEx")) return code;
    if (function->context != current() || extra != nullptr || parameters[0] == nullptr)
        return kInvalidContext;
    unsigned cluster = 1;
    int pdl = 0;
    for (unsigned i = 0; i < config->num_attributes; ++i) {
        if (config->attributes[i].id == 4)
            cluster = config->attributes[i].value.cluster[0];
        else if (config->attributes[i].id == 6)
            pdl = config->attributes[i].value.pdl;
        else
            return kInvalidValue;
    }
    if (config->grid[0] % cluster != 0 || (cluster > 8 && !function->large_clusters))
        return kInvalidClusterSize;
    if (config->smem_bytes > static_cast<unsigned>(function->smem_limit)) return kInvalidValue;
    note(
        "cuLaunchKernelEx device=%d entry=%s grid=%u,%u,%u block=%u,%u,%u smem=%u stream=%p cluster=%u "
        "pdl=%d",
        function->context->device, function->entry.c_str(), config->grid[0], config->grid[1], config->grid[2],
        config->block[0], config->block[1], config->block[2], config->smem_bytes, config->stream, cluster,
        pdl);
    return kSuccess;
}
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* data, const uint64_t* extents,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps,
                           int interleave, int swizzle, int promotion, int fill) {
    if (const int code = planned_failure("cuTensorMapEncodeTiled")) return code;
    if (current() == nullptr) return kInvalidContext;
    const unsigned bytes = type == 0 ? 1 : type == 9 ? 2 : type == 7 ? 4 : 0;
    const bool valid = reinterpret_cast<uintptr_t>(map) % 64 == 0 && bytes != 0 && rank == 2 &&
                       reinterpret_cast<uintptr_t>(data) % 16 == 0 && strides[0] % 16 == 0 &&
                       extents[0] > 0 && extents[1] > 0 && box[0] > 0 && box[0] * bytes <= 128 &&
                       box[1] > 0 && box[1] <= 256 && steps[0] == 1 && steps[1] == 1 && interleave == 0 &&
                       swizzle == 3 && promotion == 3 && fill == 0;
    if (!valid) return kInvalidValue;
    note("cuTensorMapEncodeTiled data=%p bytes=%u extents=%llu,%llu stride=%llu box=%u,%u", data, bytes,
         static_cast<unsigned long long>(extents[0]), static_cast<unsigned long long>(extents[1]),
         static_cast<unsigned long long>(strides[0]), box[0], box[1]);
    std::memset(map, 0, 128);
    return kSuccess;
}
int cuMemsetD2D8Async(uint64_t data, std::size_t pitch, unsigned char value, std::size_t width,
                      std::size_t height, void* stream) {
    if (const int code = planned_failure("cuMemsetD2D8Async")) return code;
    if (current() == nullptr || pitch < width) return kInvalidValue;
    note("cuMemsetD2D8Async device=%d data=%#llx pitch=%zu value=%d width=%zu height=%zu stream=%p",
         current()->device, static_cast<unsigned long long>(data), pitch, value, width, height, stream);
    return kSuccess;
}
int cuMemcpy2DAsync_v2(const Copy2d* copy, void* stream) {
    if (const int code = planned_failure("cuMemcpy2DAsync")) return code;
    if (current() == nullptr || copy->src_type != 2 || copy->dst_type != 2 || copy->src_pitch < copy->width ||
        copy->dst_pitch < copy->width)
        return kInvalidValue;
    note("cuMemcpy2DAsync device=%d from=%#llx pitch=%zu to=%#llx pitch=%zu width=%zu height=%zu stream=%p",
         current()->device, static_cast<unsigned long long>(copy->src_device), copy->src_pitch,
         static_cast<unsigned long long>(copy->dst_device), copy->dst_pitch, copy->width, copy->height,
         stream);
    return kSuccess;
}

}  // extern "C"
