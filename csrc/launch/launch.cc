#include "launch/launch.h"

#include <algorithm>
#include <array>

#include "launch/kernel.h"
#include "support/error.h"

namespace deep_gemm::launch {
namespace {

constexpr const char* kLaunchAdvice =
    "an earlier kernel of this process may have failed; run again with CUDA_LAUNCH_BLOCKING=1 to find it";

CUdeviceptr address(const void* data) {
    return reinterpret_cast<CUdeviceptr>(data);
}

// The driver wants a pitch of at least the width, also where a single row makes it meaningless.
std::size_t usable_pitch(int64_t pitch, const Block2d& block) {
    return static_cast<std::size_t>(block.rows == 1 ? block.width_bytes : pitch);
}

}  // namespace

void launch(const Kernel& kernel, const LaunchShape& shape, const void* args, StreamHandle stream) {
    std::array<CUlaunchAttribute, 2> attributes;
    unsigned count = 0;
    if (shape.cluster > 1) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[count].value.clusterDim = {shape.cluster, 1, 1};
        ++count;
    }
    if (shape.programmatic_dependent_launch) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[count].value.programmaticStreamSerializationAllowed = 1;
        ++count;
    }
    const CUlaunchConfig config = {.gridDimX = shape.grid,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = shape.threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = shape.smem_bytes,
                                   .hStream = static_cast<CUstream>(stream),
                                   .attrs = attributes.data(),
                                   .numAttrs = count};
    void* parameters[] = {const_cast<void*>(args)};
    const CUresult result = driver().launch_kernel(&config, kernel.function(), parameters, nullptr);
    if (result != CUDA_SUCCESS) [[unlikely]]
        check_driver(
            result, "cuLaunchKernelEx",
            fmt::format("kernel {}, grid {}, {} threads, cluster {}, {} bytes of shared memory on {}; {}",
                        kernel.entry(), shape.grid, shape.threads, shape.cluster, shape.smem_bytes,
                        kernel.device().info.name, kLaunchAdvice)
                .c_str());
}

void fill_zero_2d(int device, const Block2d& block, StreamHandle stream) {
    if (block.rows == 0 || block.width_bytes == 0) return;
    const CurrentContext context(device);
    check_driver(driver().memset_2d(address(block.data), usable_pitch(block.pitch_bytes, block), 0,
                                    static_cast<std::size_t>(block.width_bytes),
                                    static_cast<std::size_t>(block.rows), static_cast<CUstream>(stream)),
                 "cuMemsetD2D8Async", kLaunchAdvice);
}

void copy_2d(int device, const Block2d& to, const SourceRows& from, StreamHandle stream) {
    if (to.rows == 0 || to.width_bytes == 0) return;
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address(from.data);
    copy.srcPitch = usable_pitch(from.pitch_bytes, to);
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address(to.data);
    copy.dstPitch = usable_pitch(to.pitch_bytes, to);
    copy.WidthInBytes = static_cast<std::size_t>(to.width_bytes);
    copy.Height = static_cast<std::size_t>(to.rows);
    const CurrentContext context(device);
    check_driver(driver().memcpy_2d(&copy, static_cast<CUstream>(stream)), "cuMemcpy2DAsync", kLaunchAdvice);
}

}  // namespace deep_gemm::launch
