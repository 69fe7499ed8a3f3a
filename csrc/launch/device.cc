#include "launch/device.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "support/error.h"

namespace deep_gemm::launch {
namespace {

constexpr int kMaxDevices = 128;
constinit std::array<std::atomic<const DeviceState*>, kMaxDevices> states{};
constinit std::mutex creation;

int attribute_of(CUdevice device, CUdevice_attribute attribute) {
    int value = 0;
    check_driver(driver().device_attribute(&value, attribute, device), "cuDeviceGetAttribute",
                 "check that nvidia-smi works");
    return value;
}

DeviceInfo read_info(int index, CUdevice device) {
    DeviceInfo info;
    info.index = index;
    info.major = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info.minor = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info.sm_count = attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info.smem_per_block = attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info.clock_khz = attribute_of(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    char name[256] = "";
    check_driver(driver().device_name(name, sizeof name, device), "cuDeviceGetName",
                 "check that nvidia-smi works");
    info.name = name;
    return info;
}

// Whether or not a context exists already: frameworks use the primary one, and retaining makes it if need be.
const DeviceState& make_state(int device) {
    const Driver& d = driver();
    DG_CHECK(device >= 0 && device < d.num_devices && device < kMaxDevices,
             "there is no CUDA device {}: the driver sees {} (check CUDA_VISIBLE_DEVICES)", device,
             d.num_devices);
    const std::lock_guard lock(creation);
    if (const DeviceState* made = states[device].load(std::memory_order_acquire)) return *made;
    auto state = std::make_unique<DeviceState>();
    check_driver(d.device_get(&state->handle, device), "cuDeviceGet", "check CUDA_VISIBLE_DEVICES");
    state->info = read_info(device, state->handle);
    check_driver(d.primary_context_retain(&state->context, state->handle), "cuDevicePrimaryCtxRetain",
                 "check that the device is healthy and has free memory (nvidia-smi)");
    states[device].store(state.get(), std::memory_order_release);
    return *state.release();  // kept for the process
}

}  // namespace

const DeviceState& device_state(int device) {
    if (device >= 0 && device < kMaxDevices) [[likely]]
        if (const DeviceState* state = states[device].load(std::memory_order_acquire)) [[likely]]
            return *state;
    return make_state(device);
}

const DeviceInfo& device_info(int device) {
    return device_state(device).info;
}

bool driver_available() {
    try {
        driver();
        return true;
    } catch (const Error&) {
        return false;
    }
}

int current_device() {
    CUdevice device = 0;
    // Without a current context the framework has not chosen yet: it will start with device 0.
    return driver().context_device(&device) == CUDA_SUCCESS ? static_cast<int>(device) : 0;
}

CurrentContext::CurrentContext(int device) : CurrentContext(device_state(device)) {}

CurrentContext::CurrentContext(const DeviceState& state) {
    CUcontext current = nullptr;
    const Driver& d = driver();
    check_driver(d.context_current(&current), "cuCtxGetCurrent", "check earlier CUDA errors of this process");
    if (current == state.context) [[likely]]
        return;
    check_driver(d.context_push(state.context), "cuCtxPushCurrent",
                 "check earlier CUDA errors of this process");
    pushed_ = true;
}

CurrentContext::~CurrentContext() {
    CUcontext popped = nullptr;
    if (pushed_) driver().context_pop(&popped);
}

}  // namespace deep_gemm::launch
