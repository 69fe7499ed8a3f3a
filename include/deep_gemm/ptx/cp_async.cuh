// Asynchronous copies: bulk tensor copies by the TMA unit, and 4-byte copies for layouts that TMA cannot address.
#pragma once

#include <deep_gemm/ptx/address.cuh>

namespace deep_gemm::ptx {

// PTX ISA: prefetch.tensormap. PTX 8.0, sm_90. A hint: fetches the descriptor ahead of its first use.
DG_DEVICE void prefetch_tensor_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// PTX ISA: cp.async.bulk.prefetch.L2. PTX 8.0, sm_90. A hint: brings bytes into L2; address and size are multiples of 16.
DG_DEVICE void prefetch_l2(const void* source, uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
}

// PTX ISA: cp.async.bulk.tensor, global to shared::cluster. PTX 8.0, sm_90. Async proxy; completes `barrier`'s
// transaction bytes (out-of-bounds elements read as zero and count). `inner`, `outer` in elements. Without a cache hint: under
// one, even that of the default priority, L2 merges fewer requests of neighbouring SMs (measured on an H200: loads alone of
// 4096 x 4096 x 7168 in 128x128 tiles take 156 us without, 175 with).
DG_DEVICE void tma_load_2d(const TensorMap& map, SmemAddr destination, SmemAddr barrier, int32_t inner, int32_t outer) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            destination),
        "l"(&map), "r"(inner), "r"(outer), "r"(barrier)
        : "memory");
}

// The same with `.multicast::cluster`: data and completion go to the same offsets in every CTA of `cta_mask`.
DG_DEVICE void tma_load_2d_multicast(const TensorMap& map, SmemAddr destination, SmemAddr barrier, int32_t inner,
                                     int32_t outer, uint16_t cta_mask) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
        "l"(&map), "r"(inner), "r"(outer), "r"(barrier), "h"(cta_mask)
        : "memory");
}

// PTX ISA: cp.async.bulk, global to shared::cluster. PTX 8.0, sm_90. Both addresses and `bytes`, which are not 0, are multiples of
// 16. Async proxy; completes `barrier`'s transaction bytes.
DG_DEVICE void bulk_load(SmemAddr destination, const void* source, uint32_t bytes, SmemAddr barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination),
                 "l"(source), "r"(bytes), "r"(barrier)
                 : "memory");
}

// PTX ISA: cp.async.bulk.tensor, shared::cta to global. PTX 8.0, sm_90. Reads shared memory through the async proxy
// (fence_proxy_async_shared first); out-of-bounds elements are not written. Joins the thread's open bulk group.
DG_DEVICE void tma_store_2d(const TensorMap& map, SmemAddr source, int32_t inner, int32_t outer) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(inner),
                 "r"(outer), "r"(source)
                 : "memory");
}

// PTX ISA: cp.async.bulk.tensor, as above, in three dimensions. PTX 8.0, sm_90: columns, rows, groups.
DG_DEVICE void tma_load_3d(const TensorMap& map, SmemAddr destination, SmemAddr barrier, int32_t inner, int32_t outer,
                           int32_t group) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
            destination),
        "l"(&map), "r"(inner), "r"(outer), "r"(group), "r"(barrier)
        : "memory");
}

DG_DEVICE void tma_load_3d_multicast(const TensorMap& map, SmemAddr destination, SmemAddr barrier, int32_t inner,
                                     int32_t outer, int32_t group, uint16_t cta_mask) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(destination),
        "l"(&map), "r"(inner), "r"(outer), "r"(group), "r"(barrier), "h"(cta_mask)
        : "memory");
}

// PTX ISA: cp.async.bulk.tensor, shared::cta to global. PTX 8.0, sm_90. Fences as for two dimensions.
DG_DEVICE void tma_store_3d(const TensorMap& map, SmemAddr source, int32_t inner, int32_t outer, int32_t group) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                 "r"(inner), "r"(outer), "r"(group), "r"(source)
                 : "memory");
}

// PTX ISA: cp.reduce.async.bulk.tensor, shared::cta to global. PTX 8.0, sm_90. As the stores, but adds to what is there, in the
// type of the map; each element once, in any order.
DG_DEVICE void tma_add_2d(const TensorMap& map, SmemAddr source, int32_t inner, int32_t outer) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(inner), "r"(outer), "r"(source)
                 : "memory");
}

DG_DEVICE void tma_add_3d(const TensorMap& map, SmemAddr source, int32_t inner, int32_t outer, int32_t group) {
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                 "r"(inner), "r"(outer), "r"(group), "r"(source)
                 : "memory");
}

// PTX ISA: cp.async.bulk.prefetch.tensor. PTX 8.0, sm_90. A hint: brings a box into L2; nothing tells when.
DG_DEVICE void tma_prefetch_2d(const TensorMap& map, int32_t inner, int32_t outer) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&map), "r"(inner), "r"(outer) : "memory");
}

// PTX ISA: cp.async.bulk.prefetch.tensor, as above, in three dimensions. PTX 8.0, sm_90.
DG_DEVICE void tma_prefetch_3d(const TensorMap& map, int32_t inner, int32_t outer, int32_t group) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(&map), "r"(inner), "r"(outer),
                 "r"(group)
                 : "memory");
}

// PTX ISA: cp.async.bulk.commit_group / wait_group. PTX 8.0, sm_90. Per thread.
DG_DEVICE void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the sources of all but the newest `kPending` groups may be overwritten.
template <int kPending>
DG_DEVICE void bulk_wait_group_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Waits until the writes of all but the newest `kPending` groups have been made.
template <int kPending>
DG_DEVICE void bulk_wait_group() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// PTX ISA: cp.async. PTX 7.0, sm_80. Sixteen bytes, both ends aligned, of which `source_bytes` are read and the rest
// written as zeros; generic proxy; completion by mbarrier_arrive_on_cp_async.
DG_DEVICE void cp_async_16(SmemAddr destination, const void* source, uint32_t source_bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(source_bytes)
                 : "memory");
}

// The same for four bytes.
DG_DEVICE void cp_async_4(SmemAddr destination, const void* source) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(destination), "l"(source) : "memory");
}

// Four bytes of zeros, completed as a copy is; `source` is any address that could be copied, and is not read.
DG_DEVICE void cp_async_zero_4(SmemAddr destination, const void* source) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 0;" ::"r"(destination), "l"(source) : "memory");
}

}  // namespace deep_gemm::ptx
