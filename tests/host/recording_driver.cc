// A stand-in for the CUDA driver library: two devices without a GPU. Loads whatever it is given, fills and
// copies host memory, and writes down every launch, so that tests read what a kernel would have been handed.
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <deep_gemm/kernels/fp8_gemm/interface.h>

namespace {

constexpr int kDevices = 2;
constexpr int kSms[kDevices] = {132, 78};

// What encode writes into a map, instead of the hardware's secret format.
struct ReadableMap {
    uint64_t address, inner, outer, outer_stride, groups, group_stride;  // groups 0: two dimensions
    uint32_t box_inner, box_outer, element_bytes, swizzle;
};
static_assert(sizeof(ReadableMap) <= sizeof(CUtensorMap));

struct LoadedFunction {
    int device;
    int smem_bytes;
};

struct Record {
    int launches = 0, loads = 0, fills = 0, copies = 0, loads_to_fail = 0;
    std::string last_launch = "null", image_head;
};
Record record;
std::mutex record_lock;
thread_local std::vector<CUcontext> contexts;  // of this thread, the last is current

CUcontext context_of(int device) {
    return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device + 1));
}
CUcontext current_context() {
    return contexts.empty() ? nullptr : contexts.back();
}
int current_device() {
    return static_cast<int>(reinterpret_cast<uintptr_t>(current_context())) - 1;
}

int bytes_of(CUtensorMapDataType type) {
    if (type == CU_TENSOR_MAP_DATA_TYPE_UINT8) return 1;
    return type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ? 2 : 4;
}

// A JSON object, field by field.
class Json {
  public:
    template <typename Number>
    Json& number(std::string_view name, Number value) {
        return raw(name, std::to_string(value));
    }
    Json& raw(std::string_view name, std::string_view value) {
        text_ += (text_.empty() ? "\"" : ", \"") + std::string(name) + "\": " + std::string(value);
        return *this;
    }
    std::string text() const { return "{" + text_ + "}"; }

  private:
    std::string text_;
};

std::string text_of(const deep_gemm::TensorMap& map) {
    ReadableMap m;
    std::memcpy(&m, &map, sizeof m);
    return Json()
        .number("address", m.address)
        .number("inner", m.inner)
        .number("outer", m.outer)
        .number("stride", m.outer_stride)
        .number("groups", m.groups)
        .number("group_stride", m.group_stride)
        .number("box_inner", m.box_inner)
        .number("box_outer", m.box_outer)
        .number("bytes", m.element_bytes)
        .number("swizzle", m.swizzle)
        .text();
}

std::string text_of(const deep_gemm::ScaleArgs& s) {
    return Json()
        .number("address", reinterpret_cast<uintptr_t>(s.data))
        .number("stride_mn", s.stride_mn)
        .number("stride_k", s.stride_k)
        .number("stride_g", s.stride_g)
        .text();
}

std::string text_of(const CUlaunchConfig& config, const deep_gemm::Fp8GemmArgs& args) {
    unsigned cluster = 1, pdl = 0;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) cluster = attribute.value.clusterDim.x;
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            pdl = attribute.value.programmaticStreamSerializationAllowed;
    }
    Json json;
    json.number("device", current_device())
        .number("grid", config.gridDimX)
        .number("threads", config.blockDimX);
    json.number("smem_bytes", config.sharedMemBytes).number("cluster", cluster).number("pdl", pdl);
    json.number("stream", reinterpret_cast<uintptr_t>(config.hStream));
    json.raw("a", text_of(args.a)).raw("b", text_of(args.b)).raw("d", text_of(args.d));
    json.raw("sfa", text_of(args.sfa)).raw("sfb", text_of(args.sfb));
    json.number("c", reinterpret_cast<uintptr_t>(args.c)).number("c_stride", args.c_stride_m);
    json.number("slice_rows", args.a_slices.rows).number("slices", args.a_slices.count);
    json.raw("raster", Json()
                           .number("group", args.raster.group)
                           .raw("bands_along_n", args.raster.bands_along_n ? "true" : "false")
                           .text());
    json.number("layout", reinterpret_cast<uintptr_t>(args.groups.layout)).number("groups", args.groups.count);
    json.number("alignment", args.groups.alignment).number("stored_alignment", args.groups.stored_alignment);
    json.raw("output", Json()
                           .number("address", reinterpret_cast<uintptr_t>(args.output.data))
                           .number("stride_m", args.output.stride_m)
                           .number("stride_g", args.output.stride_g)
                           .text());
    return json.number("m", args.m).number("n", args.n).number("k", args.k).text();
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuInit(unsigned) {
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDriverGetVersion(int* version) {
    return *version = 13000, CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult, const char** text) {
    return *text = "AN_ERROR", CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult, const char** text) {
    return *text = "made up", CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetCount(int* count) {
    return *count = kDevices, CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int index) {
    return *device = index, CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice) {
    return std::strncpy(name, "recording", static_cast<std::size_t>(size)), CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            *value = 9;
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            *value = 0;
            break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = kSms[device];
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            *value = 232448;
            break;
        default:
            *value = 1;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    return *context = context_of(device), CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
    return *context = current_context(), CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
    if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    return *device = current_device(), CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
    return contexts.push_back(context), CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
    *context = current_context();
    return contexts.pop_back(), CUDA_SUCCESS;
}
CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) {
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                                   CUlibraryOption*, void**, unsigned) {
    const std::lock_guard lock(record_lock);
    if (record.loads_to_fail > 0) return --record.loads_to_fail, CUDA_ERROR_INVALID_IMAGE;
    ++record.loads;
    record.image_head.assign(static_cast<const char*>(code), 4);
    *library = reinterpret_cast<CUlibrary>(new LoadedFunction{current_device(), 0});
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLibraryUnload(CUlibrary) {
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char*) {
    return *kernel = reinterpret_cast<CUkernel>(library), CUDA_SUCCESS;
}
CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    return *function = reinterpret_cast<CUfunction>(kernel), CUDA_SUCCESS;
}
CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) {
    return *value = 168, CUDA_SUCCESS;
}
CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        reinterpret_cast<LoadedFunction*>(function)->smem_bytes = value;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                        const cuuint64_t* extents, const cuuint64_t* strides,
                                        const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                        CUtensorMapFloatOOBfill) {
    if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    const auto base = reinterpret_cast<uintptr_t>(address);
    const bool valid = base % 16 == 0 && strides[0] % 16 == 0 && extents[0] > 0 && extents[1] > 0 &&
                       box[0] <= 256 && box[1] <= 256 && box[1] > 0 && box[0] * bytes_of(type) <= 128;
    const bool grouped = rank == 3;
    if (!valid || rank < 2 || rank > 3) return CUDA_ERROR_INVALID_VALUE;
    if (grouped && (strides[1] == 0 || strides[1] % 16 != 0 || extents[2] == 0 || box[2] != 1)) return CUDA_ERROR_INVALID_VALUE;
    const ReadableMap readable{base,
                               extents[0],
                               extents[1],
                               strides[0],
                               grouped ? extents[2] : 0,
                               grouped ? strides[1] : 0,
                               box[0],
                               box[1],
                               static_cast<uint32_t>(bytes_of(type)),
                               static_cast<uint32_t>(swizzle)};
    std::memcpy(map, &readable, sizeof readable);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                  void**) {
    const auto* loaded = reinterpret_cast<LoadedFunction*>(function);
    if (loaded->device != current_device() || static_cast<int>(config->sharedMemBytes) > loaded->smem_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(record_lock);
    ++record.launches;
    record.last_launch = text_of(*config, *static_cast<const deep_gemm::Fp8GemmArgs*>(parameters[0]));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                   size_t rows, CUstream) {
    ++record.fills;
    for (size_t i = 0; i < rows; ++i) std::memset(reinterpret_cast<char*>(to) + i * pitch, value, width);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream) {
    ++record.copies;
    if (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < c->Height; ++i)
        std::memcpy(reinterpret_cast<char*>(c->dstDevice) + i * c->dstPitch,
                    reinterpret_cast<const char*>(c->srcDevice) + i * c->srcPitch, c->WidthInBytes);
    return CUDA_SUCCESS;
}

// For tests: everything so far as JSON.
const char* recorded() {
    static std::string text;
    const std::lock_guard lock(record_lock);
    Json json;
    json.number("launches", record.launches).number("loads", record.loads).number("fills", record.fills);
    json.number("copies", record.copies)
        .raw("is_elf", record.image_head ==
                               "\x7f"
                               "ELF"
                           ? "true"
                           : "false");
    text = json.raw("last", record.last_launch).text();
    return text.c_str();
}
void fail_loads(int count) {
    record.loads_to_fail = count;
}

}  // extern "C"
