// Memory: host pointers are device pointers. What is allocated here is poisoned and carries a red zone.
#include <cstdlib>
#include <cstring>
#include <new>

#include "async/tensor_map.h"
#include "driver/driver.h"

namespace {

using emu::Driver;
using emu::GlobalMemory;

constexpr size_t kAlignment = 4096;
constexpr int kFresh = 0xA5;

void* as_pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}

CUresult copy(void* to, const void* from, size_t bytes) {
    std::memmove(to, from, bytes);
    return kSuccess;
}

template <class T>
CUresult fill(CUdeviceptr address, T value, size_t count) {
    std::fill_n(reinterpret_cast<T*>(address), count, value);
    return kSuccess;
}

}  // namespace

DG_EMULATOR_API CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
    std::lock_guard lock(Driver::instance().mutex);
    const size_t total =
        (bytes + GlobalMemory::kRedZone + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    void* memory = std::aligned_alloc(kAlignment, total);
    if (!memory || bytes == 0) {
        std::free(memory);
        return bytes ? kOutOfMemory : kInvalidValue;
    }
    std::memset(memory, kFresh, total);
    *out = reinterpret_cast<CUdeviceptr>(memory);
    Driver::instance().memory.add(*out, bytes, "device allocation", GlobalMemory::Tail::kRedZone);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
    return cuMemAlloc_v2(out, bytes);
}
DG_EMULATOR_API CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream) {
    return cuMemAlloc_v2(out, bytes);
}
DG_EMULATOR_API CUresult cuMemFree_v2(CUdeviceptr address) {
    std::lock_guard lock(Driver::instance().mutex);
    Driver::instance().memory.remove(address);
    std::free(as_pointer(address));
    return kSuccess;
}
DG_EMULATOR_API CUresult cuMemFree(CUdeviceptr address) {
    return cuMemFree_v2(address);
}
DG_EMULATOR_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
    return cuMemFree_v2(address);
}
DG_EMULATOR_API CUresult cuMemGetInfo_v2(size_t* available, size_t* total) {
    *available = size_t{120} << 30;
    *total = size_t{141} << 30;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    return copy(as_pointer(to), from, bytes);
}
DG_EMULATOR_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    return copy(to, as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy(as_pointer(to), as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
    return copy(as_pointer(to), from, bytes);
}
DG_EMULATOR_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream) {
    return copy(to, as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    return copy(as_pointer(to), as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy(as_pointer(to), as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    return copy(as_pointer(to), as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fill(to, value, count);
}
DG_EMULATOR_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fill(to, value, count);
}
DG_EMULATOR_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    return fill(to, value, count);
}
DG_EMULATOR_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
    return fill(to, value, count);
}
DG_EMULATOR_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
    return fill(to, value, count);
}

// CU_POINTER_ATTRIBUTE_MEMORY_TYPE is 2: device; other attributes are zero.
DG_EMULATOR_API CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr) {
    std::memset(data, 0, 4);
    if (attribute == 2) *static_cast<unsigned*>(data) = 2;
    return kSuccess;
}

DG_EMULATOR_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, int type, unsigned rank, void* base,
                                                const uint64_t* dims, const uint64_t* strides,
                                                const uint32_t* box, const uint32_t* element_strides,
                                                int interleave, int swizzle, int, int fill_kind) {
    const emu::TensorMapRequest request{type,
                                        int(rank),
                                        interleave,
                                        swizzle,
                                        fill_kind,
                                        reinterpret_cast<uint64_t>(base),
                                        dims,
                                        strides,
                                        box,
                                        element_strides,
                                        Driver::instance().arch == emu::Arch::kSm100a};
    if (!emu::has_current_context())
        return Driver::instance().fail(kInvalidContext,
                                       "cuTensorMapEncodeTiled: this thread has no current context");
    if (reinterpret_cast<uint64_t>(map) % 64)
        return Driver::instance().fail(kInvalidValue,
                                       "cuTensorMapEncodeTiled: the map is not 64-byte aligned");
    emu::TensorMap record;
    const std::string problem = emu::encode_tensor_map(request, record);
    if (!problem.empty()) return Driver::instance().fail(kInvalidValue, "cuTensorMapEncodeTiled: " + problem);
    std::memcpy(map, &record, sizeof record);
    return kSuccess;
}

// CUDA_MEMCPY2D_v2. Memory types: 1 host, 2 device, 4 unified; arrays (3) do not exist here.
struct Copy2d {
    size_t source_x, source_y;
    int source_type;
    const void* source_host;
    CUdeviceptr source_device;
    void* source_array;
    size_t source_pitch, target_x, target_y;
    int target_type;
    void* target_host;
    CUdeviceptr target_device;
    void* target_array;
    size_t target_pitch, width, height;
};
DG_EMULATOR_API CUresult cuMemcpy2D_v2(const Copy2d* c) {
    if (c->source_type == 3 || c->target_type == 3) return kNotSupported;
    const auto* from =
        static_cast<const uint8_t*>(c->source_type == 1 ? c->source_host : as_pointer(c->source_device));
    auto* to = static_cast<uint8_t*>(c->target_type == 1 ? c->target_host : as_pointer(c->target_device));
    for (size_t row = 0; row < c->height; ++row)
        std::memmove(to + (c->target_y + row) * c->target_pitch + c->target_x,
                     from + (c->source_y + row) * c->source_pitch + c->source_x, c->width);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuMemcpy2DAsync_v2(const Copy2d* c, CUstream) {
    return cuMemcpy2D_v2(c);
}
DG_EMULATOR_API CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                         size_t height) {
    for (size_t row = 0; row < height; ++row) std::memset(as_pointer(to + row * pitch), value, width);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                           size_t height, CUstream) {
    return cuMemsetD2D8_v2(to, pitch, value, width, height);
}
