#include "launch/kernel.h"

#include <array>
#include <cstdint>

#include "support/error.h"

namespace deep_gemm::launch {
namespace {

constexpr int kPortableClusterSize = 8;

// Loading allocates and may synchronise, which a capture in the default mode forbids to its thread; the mode
// is the thread's own, so other threads' captures are not touched.
class RelaxedCapture {
  public:
    RelaxedCapture() {
        check_driver(driver().exchange_capture_mode(&mode_), "cuThreadExchangeStreamCaptureMode",
                     "check earlier CUDA errors of this process");
    }
    ~RelaxedCapture() { driver().exchange_capture_mode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// Unloads unless loading went through to the end.
class LibraryGuard {
  public:
    explicit LibraryGuard(CUlibrary library) : library_(library) {}
    ~LibraryGuard() {
        if (library_ != nullptr) driver().library_unload(library_);
    }
    LibraryGuard(const LibraryGuard&) = delete;
    LibraryGuard& operator=(const LibraryGuard&) = delete;
    void keep() { library_ = nullptr; }

  private:
    CUlibrary library_;
};

CUlibrary load_library(const KernelImage& image) {
    std::array<char, 4096> log{};
    std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(log.size()))};
    CUlibrary library = nullptr;
    const CUresult result = driver().library_load(&library, image.bytes, options.data(), values.data(),
                                                  static_cast<unsigned>(options.size()), nullptr, nullptr, 0);
    log.back() = '\0';
    const std::string advice =
        fmt::format("the image of kernel {} ({} bytes) does not load here{}{}", image.entry, image.size,
                    log[0] != '\0' ? "; the driver says: " : "", log.data());
    check_driver(result, "cuLibraryLoadData", advice.c_str());
    return library;
}

void set_attributes(CUfunction function, const KernelImage& image, const DeviceInfo& device) {
    const Driver& d = driver();
    DG_CHECK(image.smem_bytes <= device.smem_per_block,
             "kernel {} asks for {} bytes of shared memory; {} has {} per block", image.entry,
             image.smem_bytes, device.name, device.smem_per_block);
    check_driver(
        d.set_function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, image.smem_bytes),
        "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)",
        "the plan asks for more than the kernel may use");
    if (image.cluster_size > kPortableClusterSize)
        check_driver(
            d.set_function_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
            "cuFuncSetAttribute(NON_PORTABLE_CLUSTER_SIZE_ALLOWED)", "use clusters of at most 8 blocks");
    // Lazy loading would put the upload off until the first launch, which may be captured: reading a register
    // count ends it.
    int registers = 0;
    check_driver(d.function_attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function), "cuFuncGetAttribute",
                 "the kernel could not be uploaded; check free device memory (nvidia-smi)");
}

}  // namespace

std::shared_ptr<const Kernel> load_kernel(int device, const KernelImage& image) {
    const Driver& d = driver();
    const DeviceState& state = device_state(device);
    const RelaxedCapture relaxed;
    const CurrentContext context(state);
    const CUlibrary library = load_library(image);
    LibraryGuard guard(library);
    CUkernel kernel = nullptr;
    check_driver(d.library_kernel(&kernel, library, image.entry), "cuLibraryGetKernel",
                 fmt::format("the image holds no kernel {}", image.entry).c_str());
    CUfunction function = nullptr;
    check_driver(d.kernel_function(&function, kernel), "cuKernelGetFunction",
                 fmt::format("kernel {} does not load on {}", image.entry, state.info.name).c_str());
    set_attributes(function, image, state.info);
    auto loaded = std::make_shared<const Kernel>(state, function, image.entry);
    guard.keep();
    return loaded;
}

}  // namespace deep_gemm::launch
