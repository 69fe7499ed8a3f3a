// The part of the CUDA driver API that the front exports: types and constants, as the driver API reference
// defines them. Declared here so that the emulator needs no CUDA installation.
#pragma once

#include <cstddef>
#include <cstdint>

#define DG_EMULATOR_API extern "C" __attribute__((visibility("default")))

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUlibrary = struct CUlib_st*;
using CUfunction = struct CUfunc_st*;
using CUkernel = struct CUkern_st*;

constexpr CUresult kSuccess = 0;
constexpr CUresult kInvalidValue = 1;
constexpr CUresult kOutOfMemory = 2;
constexpr CUresult kNotInitialized = 3;
constexpr CUresult kNoDevice = 100;
constexpr CUresult kInvalidDevice = 101;
constexpr CUresult kInvalidContext = 201;
constexpr CUresult kNoBinaryForGpu = 209;
constexpr CUresult kInvalidPtx = 218;
constexpr CUresult kInvalidHandle = 400;
constexpr CUresult kNotFound = 500;
constexpr CUresult kLaunchFailed = 719;
constexpr CUresult kNotSupported = 801;

struct CUlaunchAttribute {
    unsigned int id;
    char pad[4];
    union {
        char bytes[64];
        int flag;
        unsigned int dims[3];
    } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72);

constexpr unsigned kLaunchAttributeCluster = 4;
constexpr unsigned kLaunchAttributeProgrammatic = 6;

struct CUlaunchConfig {
    unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CUstream stream;
    CUlaunchAttribute* attributes;
    unsigned int num_attributes;
};
static_assert(sizeof(CUlaunchConfig) == 56);

struct CUtensorMap {
    alignas(64) uint64_t opaque[16];
};
