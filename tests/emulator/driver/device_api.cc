// cuInit, devices, attributes, contexts.
#include <cstring>

#include "driver/driver.h"

namespace {

using emu::Arch;
using emu::Driver;

int g_context_storage;
CUcontext const kContext = reinterpret_cast<CUcontext>(&g_context_storage);
thread_local std::vector<CUcontext> t_contexts;

bool is_sm100() {
    return Driver::instance().arch == Arch::kSm100a;
}

struct Attribute {
    int id, sm90, sm100;
};
// Numbers of CUdevice_attribute; values of an H200 SXM and a B200.
constexpr Attribute kAttributes[] = {
    {1, 1024, 1024},
    {2, 1024, 1024},
    {3, 1024, 1024},
    {4, 64, 64},
    {5, 2147483647, 2147483647},
    {6, 65535, 65535},
    {7, 65535, 65535},
    {8, 49152, 49152},
    {9, 65536, 65536},
    {10, 32, 32},
    {12, 65536, 65536},
    {13, 1980000, 1965000},
    {16, 132, 148},
    {17, 0, 0},
    {18, 0, 0},
    {19, 1, 1},
    {20, 0, 0},
    {31, 1, 1},
    {32, 1, 1},
    {33, 1, 1},
    {34, 0, 0},
    {36, 3201000, 3996000},
    {37, 6144, 8192},
    {38, 62914560, 132644864},
    {39, 2048, 2048},
    {40, 3, 4},
    {41, 1, 1},
    {50, 0, 0},
    {75, 9, 10},
    {76, 0, 0},
    {78, 1, 1},
    {79, 1, 1},
    {80, 1, 1},
    {81, 233472, 233472},
    {82, 65536, 65536},
    {83, 1, 1},
    {88, 1, 1},
    {89, 1, 1},
    {90, 1, 1},
    {91, 1, 1},
    {95, 1, 1},
    {97, 232448, 232448},
    {99, 1, 1},
    {106, 32, 32},
    {108, 39321600, 82903040},
    {109, 134213632, 134213632},
    {111, 1024, 1024},
    {115, 1, 1},
    {116, 1, 1},
    {120, 1, 1},
    {127, 1, 1},
    {129, 1, 1},
};

}  // namespace

bool emu::has_current_context() {
    return !t_contexts.empty();
}

DG_EMULATOR_API CUresult cuInit(unsigned) {
    Driver::instance();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDriverGetVersion(int* version) {
    *version = 13000;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDeviceGetCount(int* count) {
    *count = 1;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? kSuccess : kInvalidDevice;
}
DG_EMULATOR_API CUresult cuDeviceGetName(char* name, int length, CUdevice) {
    std::snprintf(name, size_t(length), "deep_gemm emulator (%s)", is_sm100() ? "sm_100a" : "sm_90a");
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
    *bytes = size_t{141} << 30;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    return cuDeviceTotalMem_v2(bytes, device);
}
DG_EMULATOR_API CUresult cuDeviceGetUuid_v2(char* uuid, CUdevice) {
    std::memset(uuid, 0xE, 16);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
    for (const Attribute& entry : kAttributes)
        if (entry.id == attribute) {
            *value = is_sm100() ? entry.sm100 : entry.sm90;
            return kSuccess;
        }
    return Driver::instance().fail(
        kInvalidValue, emu::format("device attribute %d is not known to the emulator", attribute));
}
DG_EMULATOR_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
    *context = kContext;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDevicePrimaryCtxRelease(CUdevice) {
    return kSuccess;
}
DG_EMULATOR_API CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
    *flags = 0;
    *active = 1;
    return kSuccess;
}
DG_EMULATOR_API CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = t_contexts.empty() ? nullptr : t_contexts.back();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuCtxSetCurrent(CUcontext context) {
    if (!t_contexts.empty()) t_contexts.pop_back();
    if (context) t_contexts.push_back(context);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    t_contexts.push_back(context);
    return kSuccess;
}
DG_EMULATOR_API CUresult cuCtxPushCurrent(CUcontext context) {
    return cuCtxPushCurrent_v2(context);
}
DG_EMULATOR_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    if (t_contexts.empty()) return kInvalidContext;
    if (context) *context = t_contexts.back();
    t_contexts.pop_back();
    return kSuccess;
}
DG_EMULATOR_API CUresult cuCtxPopCurrent(CUcontext* context) {
    return cuCtxPopCurrent_v2(context);
}
DG_EMULATOR_API CUresult cuCtxGetDevice(CUdevice* device) {
    *device = 0;
    return t_contexts.empty() ? kInvalidContext : kSuccess;
}
DG_EMULATOR_API CUresult cuCtxSynchronize() {
    return kSuccess;
}
