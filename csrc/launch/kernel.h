// A kernel of one device, loaded and with its attributes set.
#pragma once

#include <cuda.h>

#include <string>

#include "launch/device.h"
#include "launch/launch.h"

namespace deep_gemm::launch {

class Kernel {
  public:
    Kernel(const DeviceState& device, CUfunction function, std::string entry)
        : device_(device), function_(function), entry_(std::move(entry)) {}

    const DeviceState& device() const { return device_; }
    CUfunction function() const { return function_; }
    const std::string& entry() const { return entry_; }

  private:
    const DeviceState& device_;
    CUfunction function_;  // its library is never unloaded
    std::string entry_;
};

}  // namespace deep_gemm::launch
