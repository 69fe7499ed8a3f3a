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

void* as_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult copy(void* to, const void* from, size_t bytes) {
    std::memmove(to, from, bytes);
    return CUDA_SUCCESS;
}

template <class T> CUresult fill(CUdeviceptr address, T value, size_t count) {
    std::fill_n(reinterpret_cast<T*>(address), count, value);
    return CUDA_SUCCESS;
}

}  // namespace

DG_EMULATOR_API CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
    std::lock_guard lock(Driver::instance().mutex);
    const size_t total = (bytes + GlobalMemory::kRedZone + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    void* memory = std::aligned_alloc(kAlignment, total);
    if (!memory || bytes == 0) { std::free(memory); return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE; }
    std::memset(memory, kFresh, total);
    *out = reinterpret_cast<CUdeviceptr>(memory);
    Driver::instance().memory.add(*out, bytes, "device allocation", GlobalMemory::Tail::kRedZone);
    return CUDA_SUCCESS;
}
DG_EMULATOR_API CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) { return cuMemAlloc_v2(out, bytes); }
DG_EMULATOR_API CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream) { return cuMemAlloc_v2(out, bytes); }
DG_EMULATOR_API CUresult cuMemFree_v2(CUdeviceptr address) {
    std::lock_guard lock(Driver::instance().mutex);
    Driver::instance().memory.remove(address);
    std::free(as_pointer(address));
    return CUDA_SUCCESS;
}
DG_EMULATOR_API CUresult cuMemFree(CUdeviceptr address) { return cuMemFree_v2(address); }
DG_EMULATOR_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree_v2(address); }
DG_EMULATOR_API CUresult cuMemGetInfo_v2(size_t* available, size_t* total) {
    *available = size_t{120} << 30;
    *total = size_t{141} << 30;
    return CUDA_SUCCESS;
}
DG_EMULATOR_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) { return copy(as_pointer(to), from, bytes); }
DG_EMULATOR_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) { return copy(to, as_pointer(from), bytes); }
DG_EMULATOR_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy(as_pointer(to), as_pointer(from), bytes); }
DG_EMULATOR_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream) { return copy(as_pointer(to), from, bytes); }
DG_EMULATOR_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream) { return copy(to, as_pointer(from), bytes); }
DG_EMULATOR_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    return copy(as_pointer(to), as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy(as_pointer(to), as_pointer(from), bytes); }
DG_EMULATOR_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    return copy(as_pointer(to), as_pointer(from), bytes);
}
DG_EMULATOR_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) { return fill(to, value, count); }
DG_EMULATOR_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) { return fill(to, value, count); }
DG_EMULATOR_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) { return fill(to, value, count); }
DG_EMULATOR_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) { return fill(to, value, count); }
DG_EMULATOR_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) { return fill(to, value, count); }

// CU_POINTER_ATTRIBUTE_MEMORY_TYPE is 2: device; other attributes are zero.
DG_EMULATOR_API CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr) {
    std::memset(data, 0, 4);
    if (attribute == 2) *static_cast<unsigned*>(data) = 2;
    return CUDA_SUCCESS;
}

DG_EMULATOR_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, int type, unsigned rank, void* base, const uint64_t* dims, const uint64_t* strides,
                                                const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int, int fill_kind) {
    const emu::TensorMapRequest request{type, int(rank), interleave, swizzle, fill_kind, reinterpret_cast<uint64_t>(base), dims, strides, box,
                                        element_strides, Driver::instance().arch == emu::Arch::kSm100a};
    if (reinterpret_cast<uint64_t>(map) % 64) return Driver::instance().fail(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: the map is not 64-byte aligned");
    emu::TensorMap record;
    const std::string problem = emu::encode_tensor_map(request, record);
    if (!problem.empty()) return Driver::instance().fail(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: " + problem);
    std::memcpy(map, &record, sizeof record);
    return CUDA_SUCCESS;
}
