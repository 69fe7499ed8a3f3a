// Tensor maps that the device makes: a map in shared memory is changed field by field, then published in global memory.
#pragma once

#include <deep_gemm/ptx/address.cuh>

namespace deep_gemm::ptx {

// PTX ISA: st.shared. Generic proxy, as the changes below and the reading side of publish_tensor_map are.
DG_DEVICE void store_shared_u64(SmemAddr address, uint64_t value) {
    asm volatile("st.shared.b64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}

// PTX ISA: tensormap.replace. PTX 8.3, sm_90a. Changes a 128-byte map in shared memory by ordinary writes; other lanes that
// read it synchronise first.
DG_DEVICE void replace_global_address(SmemAddr map, const void* address) {
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map), "l"(address)
                 : "memory");
}

// Elements along dimension kDimension.
template <int kDimension>
DG_DEVICE void replace_global_dim(SmemAddr map, uint32_t elements) {
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(map), "n"(kDimension),
                 "r"(elements)
                 : "memory");
}

// Bytes between elements along dimension kDimension + 1. (Compilers before CUDA 12.5 took sixteenths of them.)
template <int kDimension>
DG_DEVICE void replace_global_stride(SmemAddr map, uint64_t bytes) {
    static_assert(__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5),
                  "GEMMs grouped along K need the NVRTC of CUDA 12.5 or newer");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;" ::"r"(map), "n"(kDimension),
                 "l"(bytes)
                 : "memory");
}

// PTX ISA: tensormap.cp_fenceproxy. PTX 8.3, sm_90. All lanes of a warp copy a map to global memory, both 128-byte aligned, and
// release it to the tensormap proxy of the GPU. Nothing may be using the old one. Who uses the new one acquires it first.
DG_DEVICE void publish_tensor_map(TensorMap* destination, SmemAddr map) {
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
                     destination),
                 "r"(map)
                 : "memory");
}

// PTX ISA: fence.proxy.tensormap::generic.acquire. PTX 8.3, sm_90. This thread's copies through `map` from here on see what was
// published. The empty bulk group keeps the assembler from moving a copy above the fence.
DG_DEVICE void acquire_tensor_map(const TensorMap* map) {
    asm volatile(
        "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;\n\t"
        "cp.async.bulk.commit_group;\n\t"
        "cp.async.bulk.wait_group.read 0;" ::"l"(map)
        : "memory");
}

}  // namespace deep_gemm::ptx
