// Thin wrappers of single instructions for the emulator's own test kernels. Independent of the library's headers on
// purpose: a misreading there must not repeat itself here.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 opaque[16]; };

#define DEV __device__ __forceinline__

DEV u32 smem_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
DEV u32 lane_id() { u32 r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
DEV u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEV bool elect_one() {
    u32 p;
    asm volatile("{\n.reg .pred P; .reg .b32 L;\nelect.sync L|P, 0xffffffff;\nselp.u32 %0, 1, 0, P;\n}" : "=r"(p));
    return p != 0;
}

DEV void mbarrier_init(u32 b, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(count) : "memory"); }
DEV void mbarrier_arrive(u32 b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); }
DEV void mbarrier_arrive_remote(u32 b, u32 rank) {
    asm volatile("{\n.reg .b32 R;\nmapa.shared::cluster.u32 R, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [R];\n}" ::"r"(b), "r"(rank) : "memory");
}
DEV void mbarrier_expect(u32 b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}
DEV void mbarrier_wait(u32 b, u32 parity) {
    asm volatile(
        "{\n.reg .pred P;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1;\n@P bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(b), "r"(parity)
        : "memory");
}
DEV u32 mbarrier_test(u32 b, u32 parity) {
    u32 r;
    asm volatile("{\n.reg .pred P;\nmbarrier.test_wait.parity.shared::cta.b64 P, [%1], %2;\nselp.u32 %0, 1, 0, P;\n}" : "=r"(r) : "r"(b), "r"(parity) : "memory");
    return r;
}
DEV void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DEV void named_sync(u32 id, u32 threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

DEV void tma_load_2d(u32 to, const TensorMap* map, int x, int y, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map),
                 "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}
DEV void tma_load_2d_multicast(u32 to, const TensorMap* map, int x, int y, u32 barrier, u16 mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
                 : "memory");
}
DEV void tma_load_3d(u32 to, const TensorMap* map, int x, int y, int z, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(map),
                 "r"(x), "r"(y), "r"(z), "r"(barrier)
                 : "memory");
}
DEV void tma_store_2d(const TensorMap* map, u32 from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
DEV void tma_reduce_add_2d(const TensorMap* map, u32 from, int x, int y) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
DEV void bulk_load(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
DEV void bulk_store(void* to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
DEV void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kLeft> DEV void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLeft) : "memory"); }
template <int kLeft> DEV void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory"); }

DEV void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft> DEV void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory"); }
// Swizzle codes of wgmma descriptors: 0 none, 1 128B, 2 64B, 3 32B.
DEV u64 matrix_descriptor(u32 start, u32 lbo, u32 sbo, u64 swizzle) {
    return u64((start & 0x3FFFF) >> 4) | u64(lbo >> 4) << 16 | u64(sbo >> 4) << 32 | swizzle << 62;
}

// --- Blackwell ---
DEV u64 umma_descriptor(u32 start, u32 lbo, u32 sbo, u64 swizzle) {  // swizzle: 0 none, 2 128B, 4 64B, 6 32B
    return u64((start & 0x3FFFF) >> 4) | u64(lbo >> 4) << 16 | u64(sbo >> 4) << 32 | u64(1) << 46 | swizzle << 61;
}
DEV void tcgen05_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEV void tcgen05_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
DEV void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
DEV void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
DEV void tcgen05_ld_x8(u32* r, u32 address) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(address));
}
