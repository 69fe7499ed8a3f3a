// Driver API by dlopen, per-device state, tensor maps, kernel launch. Knows nothing of plans or sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <deep_gemm/base/types.h>

namespace deep_gemm::launch {

using StreamHandle = void*;  // CUstream

// Facts of one device, read once from the driver.
struct DeviceInfo {
    int index = 0;
    int major = 0, minor = 0;
    int sm_count = 0;
    int smem_per_block = 0;  // opt-in limit, bytes
    int clock_khz = 0;
    std::string name;
};
const DeviceInfo& device_info(int device);  // throws Error when there is no driver or no such device
bool driver_available();  // false, without throwing, when the driver library is missing or has no device
int current_device();     // of this thread's current context, else 0; throws Error when there is no driver

struct DeviceState;

// Makes the device's primary context current on this thread for a scope, if it is not.
class CurrentContext {
  public:
    explicit CurrentContext(int device);
    explicit CurrentContext(const DeviceState& state);
    ~CurrentContext();
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

  private:
    bool pushed_ = false;
};

// A loaded kernel of one device. Immutable after creation, lives for the process.
class Kernel;

struct KernelImage {
    const void* bytes;  // a cubin, or PTX text with a zero byte after its end
    std::size_t size;
    const char* entry;
    int smem_bytes;    // dynamic shared memory it will be launched with
    int cluster_size;  // > 8 asks for the non-portable attribute
};
// Loads on `device` (legal during stream capture: the load runs in relaxed capture mode). Throws Error if the
// image does not load.
std::shared_ptr<const Kernel> load_kernel(int device, const KernelImage& image);

struct LaunchShape {
    uint32_t grid = 1, threads = 1, cluster = 1;
    uint32_t smem_bytes = 0;
    bool programmatic_dependent_launch = false;
};
// One cuLaunchKernelEx with a single by-value argument struct, in the context of the caller (CurrentContext).
void launch(const Kernel& kernel, const LaunchShape& shape, const void* args, StreamHandle stream);

// A tile map with 128-byte swizzle, of one matrix or of groups of them.
struct TileMapSpec {
    const void* data;
    int element_bytes;      // 1 (uint8), 2 (bf16), 4 (f32)
    int device;             // that `data` belongs to
    uint64_t inner, outer;  // extents in elements
    uint64_t outer_stride;  // bytes, a multiple of 16
    uint32_t box_inner, box_outer;
    uint64_t groups = 0;        // matrices, a third dimension; 0: one matrix, two dimensions
    uint64_t group_stride = 0;  // bytes, a multiple of 16
    bool operator==(const TileMapSpec&) const = default;
};
// The one encoder of the library. Maps encoded lately are remembered by all numbers of their specs, so that a steady
// call bothers the driver with none. Needs the device's context to be current. Thread-safe, and waits for nobody.
TensorMap encode_tile_map(const TileMapSpec& spec);

// Rows of device memory, `pitch_bytes` apart.
struct Block2d {
    void* data;
    int64_t pitch_bytes, width_bytes, rows;
};
struct SourceRows {
    const void* data;
    int64_t pitch_bytes;
};
// Asynchronous on `stream`, legal during capture, no kernel of ours; the gaps between rows stay untouched. A
// single row may have any pitch.
void fill_zero_2d(int device, const Block2d& block, StreamHandle stream);
// Copies rows of the same width and count as `to`; the two do not overlap.
void copy_2d(int device, const Block2d& to, const SourceRows& from, StreamHandle stream);

}  // namespace deep_gemm::launch
