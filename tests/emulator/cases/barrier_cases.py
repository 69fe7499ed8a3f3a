"""mbarrier phases, named barriers, clusters, atomics, matrix moves: what the machine does between warps."""
from __future__ import annotations

import struct

from harness.case import Case, Pointer, random_bytes

_MBARRIER = """
extern "C" __global__ void kernel_main(u32* out) {
    __shared__ u64 barriers[2];
    const u32 b = smem_address(&barriers[0]), c = smem_address(&barriers[1]);
    if (threadIdx.x == 0) { mbarrier_init(b, 128); mbarrier_init(c, 3); fence_mbarrier_init(); }
    __syncthreads();
    u32 seen = mbarrier_test(b, 0) | mbarrier_test(b, 1) << 1;
    __syncthreads();
    mbarrier_arrive(b);
    mbarrier_wait(b, 0);
    seen |= mbarrier_test(b, 0) << 2 | mbarrier_test(b, 1) << 3;
    __syncthreads();
    mbarrier_arrive(b);
    mbarrier_wait(b, 1);
    seen |= mbarrier_test(b, 1) << 4;
    if (threadIdx.x == 5) {
        u32 before = mbarrier_test(c, 0);
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(c) : "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" ::"r"(c) : "memory");
        u32 middle = mbarrier_test(c, 0);
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(c) : "memory");
        out[128] = before | middle << 1 | mbarrier_test(c, 0) << 2;
    }
    out[threadIdx.x] = seen;
}
"""

_NAMED = """
extern "C" __global__ void kernel_main(u32* out) {
    __shared__ u32 value;
    const u32 warp = threadIdx.x / 32;
    if (warp == 0) {
        if (threadIdx.x == 0) value = 41;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        named_sync(2, 96);
        out[threadIdx.x] = value;
    } else if (warp == 1) {
        named_sync(1, 64);
        if (threadIdx.x == 32) value += 1;
        named_sync(2, 96);
        out[threadIdx.x] = value;
    } else {
        named_sync(2, 96);
        out[threadIdx.x] = value + warp;
    }
}
"""

_CLUSTER = """
extern "C" __global__ void kernel_main(u32* out) {
    __shared__ u32 cell[128];
    __shared__ u64 barrier;
    const u32 rank = cluster_rank(), full = smem_address(&barrier);
    if (threadIdx.x == 0) { mbarrier_init(full, 4); fence_mbarrier_init(); }
    cell[threadIdx.x] = rank * 1000 + threadIdx.x;
    cluster_sync();
    u32 remote, value, ids[6];
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(smem_address(&cell[threadIdx.x])), "r"((rank + threadIdx.x) % 4));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote) : "memory");
    if (threadIdx.x < 4) mbarrier_arrive_remote(full, threadIdx.x);
    mbarrier_wait(full, 0);
    asm volatile("mov.u32 %0, %%cluster_ctaid.x; mov.u32 %1, %%cluster_ctaid.y; mov.u32 %2, %%clusterid.x; mov.u32 %3, %%clusterid.y; mov.u32 %4, %%cluster_nctaid.x; "
                 "mov.u32 %5, %%cluster_nctarank;" : "=r"(ids[0]), "=r"(ids[1]), "=r"(ids[2]), "=r"(ids[3]), "=r"(ids[4]), "=r"(ids[5]));
    u32* mine = out + (blockIdx.x + blockIdx.y * gridDim.x) * 512;
    mine[threadIdx.x] = value;
    mine[128 + threadIdx.x] = remote;
    if (threadIdx.x < 6) mine[256 + threadIdx.x] = ids[threadIdx.x];
    if (threadIdx.x == 0) mine[300] = rank;
    cluster_sync();
}
"""

_ATOMICS = """
extern "C" __global__ void kernel_main(u32* out, float* sums) {
    __shared__ u32 cells[8];
    if (threadIdx.x < 8) cells[threadIdx.x] = threadIdx.x == 3 ? 0xFFFFFFFF : 0;
    __syncthreads();
    atomicAdd(&cells[0], threadIdx.x);
    atomicMax(&cells[1], threadIdx.x * 7919 % 101);
    atomicOr(&cells[2], 1u << threadIdx.x % 32);
    atomicAnd(&cells[3], ~(1u << threadIdx.x % 5));
    atomicInc(&cells[4], 9);
    atomicCAS(&cells[5], 0, 7);
    atomicXor(&cells[6], threadIdx.x);
    asm volatile("red.relaxed.cta.shared::cta.add.u32 [%0], 2;" ::"r"(smem_address(&cells[7])) : "memory");
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = cells[threadIdx.x];
    atomicAdd(&sums[threadIdx.x % 4], 0.25f * (float)(threadIdx.x % 8));
    asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(sums + 4), "f"(0.5f) : "memory");
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(sums + 8), "r"(0x3F803F80) : "memory");
}
"""

_MATRIX = """
extern "C" __global__ void kernel_main(const u32* data, u32* out) {
    __shared__ __align__(128) u32 tile[256], back[4][256];
    const u32 l = threadIdx.x;
    for (int i = l; i < 256; i += 32) { tile[i] = data[i]; for (int k = 0; k < 4; ++k) back[k][i] = 0; }
    __syncwarp();
    u32 r[4];
    const u32 from = smem_address(tile) + (l * 7 % 32) * 32;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
    for (int k = 0; k < 4; ++k) out[k * 32 + l] = r[k];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
    for (int k = 0; k < 4; ++k) out[(4 + k) * 32 + l] = r[k];
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem_address(back[0]) + l * 16), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem_address(back[1]) + l * 32), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(smem_address(back[2]) + l * 32), "r"(r[0]), "r"(r[1]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(smem_address(back[3]) + l * 32), "r"(r[0]) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; ++k)
        for (int i = l; i < 256; i += 32) out[256 + k * 256 + i] = back[k][i];
}
"""


def cases() -> list[Case]:
    """All barrier, cluster, atomic and matrix-move cases."""
    out = lambda size: {"out": bytes(size)}  # noqa: E731
    return [
        Case(keeps_all=True, name="mbarrier_phases", source=_MBARRIER, buffers=out(129 * 4), params=(Pointer("out"),), outputs=("out",)),
        Case(keeps_all=True, name="named_barriers", source=_NAMED, block=(96,), buffers=out(96 * 4), params=(Pointer("out"),), outputs=("out",)),
        Case(keeps_all=True, name="cluster_addresses", source=_CLUSTER, grid=(4, 4), cluster=(2, 2, 1), buffers=out(16 * 2048), params=(Pointer("out"),), outputs=("out",)),
        Case(keeps_all=True, name="atomics", source=_ATOMICS, buffers={"out": bytes(32), "sums": struct.pack("<12f", *[1.0] * 8, *[0.0] * 4)},
             params=(Pointer("out"), Pointer("sums")), outputs=("out", "sums")),
        Case(keeps_all=True, name="matrix_moves", source=_MATRIX, block=(32,), buffers={"data": random_bytes(31, 1024), "out": bytes(5120)},
             params=(Pointer("data"), Pointer("out")), outputs=("out",)),
    ]
