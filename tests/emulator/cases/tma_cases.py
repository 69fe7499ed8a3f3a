"""TMA boxes with every swizzle, negative and out-of-range coordinates; stores, reductions, multicast, bulk copies."""
from __future__ import annotations

import random
import struct

from harness.case import Case, Pointer, i32, random_bytes
from harness.cuda_driver import TensorMapSpec

WINDOW = 32 * 1024
U8, U16, U32, F16, F32, BF16 = 0, 1, 2, 6, 7, 9

_FILL = """
DEV void fill(u8* window, u32 value) {
    for (int i = threadIdx.x; i < %d / 4; i += blockDim.x) reinterpret_cast<u32*>(window)[i] = value;
    fence_proxy_async();
    __syncthreads();
}
DEV void dump(const u8* window, u32* out) {
    for (int i = threadIdx.x; i < %d / 4; i += blockDim.x) out[i] = reinterpret_cast<const u32*>(window)[i];
}
""" % (WINDOW, WINDOW)

_LOAD = _FILL + """
extern "C" __global__ void kernel_main(const __grid_constant__ TensorMap map, const int* where, u32* out, int bytes) {
    extern __shared__ __align__(1024) u8 window[];
    __shared__ u64 barrier;
    const u32 full = smem_address(&barrier);
    if (threadIdx.x == 0) { mbarrier_init(full, 1); fence_mbarrier_init(); }
    fill(window, 0xCDCDCDCD);
    const int* c = where + 4 * blockIdx.x;
    if (threadIdx.x == 0) {
        mbarrier_expect(full, bytes);
        LOAD(smem_address(window) + c[3], &map);
    }
    mbarrier_wait(full, 0);
    dump(window, out + blockIdx.x * (%d / 4));
}
""" % WINDOW


def _load_case(name: str, spec: TensorMapSpec, bytes_each: int, places: list[tuple[int, int, int, int]], element: int) -> Case:
    total = 1
    for stride, dim in zip((element, *spec.strides), spec.dims):
        total = max(total, stride * dim)
    call = "tma_load_2d(to, map, c[0], c[1], full)" if len(spec.dims) == 2 else "tma_load_3d(to, map, c[0], c[1], c[2], full)"
    flat = [value for place in places for value in place]
    return Case(name=name, source=f"#define LOAD(to, map) {call}\n" + _LOAD, shared=WINDOW, grid=(len(places),),
                buffers={"tensor": random_bytes(len(name), total), "where": struct.pack(f"<{len(flat)}i", *flat), "out": bytes(len(places) * WINDOW)},
                params=(spec, Pointer("where"), Pointer("out"), i32(bytes_each)), outputs=("out",))


def _loads() -> list[Case]:
    rng, found = random.Random(3), []
    for swizzle, inner in ((0, 48), (0, 256), (1, 32), (2, 64), (2, 32), (3, 128), (3, 64), (3, 16)):
        spec = TensorMapSpec("tensor", U8, (300, 50), (304,), (inner, 24), swizzle)
        places = [(rng.randrange(-4, 20) * 16, rng.randrange(-20, 60), 0, rng.randrange(0, 100) * 128) for _ in range(6)]
        found.append(_load_case(f"tma_load_u8_s{swizzle}_b{inner}", spec, inner * 24, places, 1))
    for dtype, size, label in ((F32, 4, "f32"), (BF16, 2, "bf16"), (F16, 2, "f16")):
        box = 128 // size
        spec = TensorMapSpec("tensor", dtype, (130, 40), (130 * size + (-130 * size) % 16,), (box, 8), 3, nan_fill=label != "f32")
        places = [(-box // 2, -3, 0, 0), (96, 36, 0, 1024), (128, 0, 0, 128), (0, 50, 0, 640)]
        found.append(_load_case(f"tma_load_{label}", spec, 1024, places, size))
    spec = TensorMapSpec("tensor", F32, (29, 40), (128,), (32, 8), 3, nan_fill=True)
    found.append(_load_case("tma_load_f32_nan", spec, 1024, [(-16, -3, 0, 0), (0, 36, 0, 1024)], 4))
    spec = TensorMapSpec("tensor", U8, (64, 9, 5), (64, 64 * 9), (32, 4, 3), 1)
    places = [(0, 0, 0, 0), (32, 7, 3, 1024), (-16, -2, -1, 256), (48, 8, 4, 384)]
    found.append(_load_case("tma_load_3d", spec, 32 * 12, places, 1))
    return found


_STORE = _FILL + """
extern "C" __global__ void kernel_main(const __grid_constant__ TensorMap map, const u32* data, const int* where, int count) {
    extern __shared__ __align__(1024) u8 window[];
    for (int i = threadIdx.x; i < %d / 4; i += blockDim.x) reinterpret_cast<u32*>(window)[i] = data[i];
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < count; ++i) {
            STORE(&map, smem_address(window) + where[4 * i + 3], where[4 * i], where[4 * i + 1]);
            bulk_commit();
            bulk_wait<0>();
        }
}
""" % WINDOW


def store_case(name: str, spec: TensorMapSpec, data: bytes, where: list[tuple[int, int, int, int]], start: bytes, operation: str = "store") -> Case:
    """Stores boxes of the window, each at (inner, outer, -, offset in the window), into a tensor that holds `start`."""
    flat = [value for place in where for value in place]
    return Case(name=name, source=f"#define STORE tma_{operation}_2d\n" + _STORE, shared=WINDOW,
                buffers={"tensor": start, "data": data, "where": struct.pack(f"<{len(flat)}i", *flat)},
                params=(spec, Pointer("data"), Pointer("where"), i32(len(where))), outputs=("tensor",))


def _stores() -> list[Case]:
    """Boxes within and over the far edges; before the near ones they are illegal."""
    found = []
    for swizzle, inner in ((0, 64), (1, 32), (2, 64), (3, 128)):
        spec = TensorMapSpec("tensor", U8, (200, 30), (208,), (inner, 16), swizzle)
        where = [(0, 0, 0, 0), (160, 20, 0, 4096), (16, 5, 0, 128), (96, 28, 0, 1024 + 256), (208, 3, 0, 0), (0, 30, 0, 0)]
        found.append(store_case(f"tma_store_s{swizzle}", spec, random_bytes(swizzle, WINDOW), where, bytes(208 * 30)))
    # The last 16 bytes of a row are written whole, however few of them it has.
    for dtype, size, label, swizzle, tails in ((U8, 1, "u8", 3, (1, 15, 17)), (U8, 1, "u8", 0, (5,)), (BF16, 2, "bf16", 3, (2, 10, 30)), (F32, 4, "f32", 3, (4, 12))):
        span = 128 if swizzle else 64
        for tail in tails:
            spec = TensorMapSpec("tensor", dtype, ((span + tail) // size, 9), (256,), (span // size, 8), swizzle)
            where = [(0, 0, 0, 0), (span // size, 4, 0, 1024)]
            found.append(store_case(f"tma_store_tail_{label}_s{swizzle}_{tail}", spec, random_bytes(tail, WINDOW), where, b"\xee" * (256 * 9)))
    for dtype, size, label in ((F32, 4, "f32"), (U32, 4, "u32"), (BF16, 2, "bf16"), (F16, 2, "f16")):
        count = 40 * 64 // size
        data = struct.pack(f"<{WINDOW // 4}f", *[(i % 251 - 125) * 0.37 for i in range(WINDOW // 4)]) if label == "f32" else random_bytes(9, WINDOW)
        if size == 2:
            data = struct.pack(f"<{WINDOW // 2}H", *[w & 0x87FF | 0x3800 for w in struct.unpack(f"<{WINDOW // 2}H", data)])
        spec = TensorMapSpec("tensor", dtype, (60 // size, 40), (64,), (32 // size, 20), 1)
        where = [(0, 0, 0, 0), (32 // size, 25, 0, 0), (0, 10, 0, 2048), (32 // size, 7, 0, 1024)]
        start = struct.pack("<f", 1.5) * (count * size // 4) if label == "f32" else bytes(count * size)
        found.append(store_case(f"tma_reduce_add_{label}", spec, data, where, start, "reduce_add"))
    return found


_MULTICAST = _FILL + """
extern "C" __global__ void kernel_main(const __grid_constant__ TensorMap map, u32* out) {
    extern __shared__ __align__(1024) u8 window[];
    __shared__ u64 barrier;
    const u32 full = smem_address(&barrier), rank = cluster_rank();
    if (threadIdx.x == 0) { mbarrier_init(full, 1); fence_mbarrier_init(); }
    fill(window, 0xCDCDCDCD);
    if (threadIdx.x == 0) mbarrier_expect(full, MULTICAST_BYTES);
    cluster_sync();
    if (threadIdx.x == 0) {
        if (rank == 0) tma_load_2d_multicast(smem_address(window), &map, 0, 0, full, 0xD);
        if (rank == 1) tma_load_2d_multicast(smem_address(window) + 2048, &map, 64, 3, full, 0x2);
        if (rank == 3) tma_load_2d_multicast(smem_address(window) + 4096, &map, 32, 10, full, 0xD);
    }
    mbarrier_wait(full, 0);
    dump(window, out + (blockIdx.x + gridDim.x * blockIdx.y) * (WINDOW_BYTES / 4));
    cluster_sync();
}
"""

_BULK = _FILL + """
extern "C" __global__ void kernel_main(const u8* data, u8* out, u32* dump_to) {
    extern __shared__ __align__(1024) u8 window[];
    __shared__ u64 barrier;
    const u32 full = smem_address(&barrier);
    if (threadIdx.x == 0) { mbarrier_init(full, 1); fence_mbarrier_init(); }
    fill(window, 0xCDCDCDCD);
    if (threadIdx.x == 0) {
        mbarrier_expect(full, 48 + 4096 + 16);
        bulk_load(smem_address(window) + 16, data + 32, 48, full);
        bulk_load(smem_address(window) + 8192, data + 1024, 4096, full);
        bulk_load(smem_address(window) + 2048, data + 16, 16, full);
    }
    mbarrier_wait(full, 0);
    dump(window, dump_to);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out + 16, smem_address(window), 64);
        bulk_store(out + 4096, smem_address(window) + 8192, 1024);
        bulk_commit();
        bulk_wait<0>();
    }
}
"""

# A ring over a cluster of four: every CTA writes into its neighbour's window with st.async and a bulk copy.
_REMOTE = _FILL + """
extern "C" __global__ void kernel_main(u32* out) {
    extern __shared__ __align__(1024) u8 window[];
    __shared__ u64 barrier;
    const u32 full = smem_address(&barrier), rank = cluster_rank(), next = (rank + 1) % 4;
    if (threadIdx.x == 0) { mbarrier_init(full, 1); fence_mbarrier_init(); }
    fill(window, 0x01010101 * (rank + 1));
    cluster_sync();
    if (threadIdx.x == 0) mbarrier_expect(full, 128 * 4 + 256);
    u32 to, remote_full;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(smem_address(window) + 1024 + 4 * threadIdx.x), "r"(next));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_full) : "r"(full), "r"(next));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), "r"(rank * 1000 + threadIdx.x), "r"(remote_full) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(smem_address(window) + 4096), "r"(next));
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(smem_address(window)), "r"(256), "r"(remote_full) : "memory");
    }
    mbarrier_wait(full, 0);
    dump(window, out + blockIdx.x * (WINDOW_BYTES / 4));
    out[gridDim.x * (WINDOW_BYTES / 4) + blockIdx.x * 128 + threadIdx.x] = to & 0xFF000000;
    cluster_sync();
}
"""


def cases() -> list[Case]:
    """All TMA and bulk cases."""
    spec = TensorMapSpec("tensor", U8, (128, 32), (128,), (64, 16), 2)
    multicast = Case(name="tma_multicast", source=_MULTICAST, shared=WINDOW, grid=(2, 4), cluster=(2, 2, 1),
                     defines=(f"WINDOW_BYTES={WINDOW}", "MULTICAST_BYTES=(cluster_rank()==1?1024:2048)"),
                     buffers={"tensor": random_bytes(5, 128 * 32), "out": bytes(8 * WINDOW)}, params=(spec, Pointer("out")), outputs=("out",))
    bulk = Case(name="bulk_copies", source=_BULK, shared=WINDOW, buffers={"data": random_bytes(6, 8192), "out": bytes(8192), "window": bytes(WINDOW)},
                params=(Pointer("data"), Pointer("out"), Pointer("window")), outputs=("out", "window"))
    remote = Case(name="cluster_remote_stores", source=_REMOTE, shared=WINDOW, grid=(4,), cluster=(4, 1, 1), defines=(f"WINDOW_BYTES={WINDOW}",),
                  buffers={"out": bytes(4 * WINDOW + 4 * 512)}, params=(Pointer("out"),), outputs=("out",))
    return [*_loads(), *_stores(), multicast, bulk, remote]
