// What is kept for each device: facts, and the primary context that the framework's tensors live in.
#pragma once

#include <cuda.h>

#include "launch/driver.h"
#include "launch/launch.h"

namespace deep_gemm::launch {

struct DeviceState {
    CUdevice handle = 0;
    CUcontext context = nullptr;  // the primary one, retained once and never released
    DeviceInfo info;
};

// The state of `device`, made at its first use; afterwards a lock-free read. Throws Error when there is no
// such device.
const DeviceState& device_state(int device);

}  // namespace deep_gemm::launch
