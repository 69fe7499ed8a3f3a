"""tcgen05.mma on a CTA pair: whose shared memory supplies what, and where the accumulators lie (layouts A and B)."""
from __future__ import annotations

import struct

import numpy as np
import pytest

from cases.tcgen05_probe import Placement
from harness.case import Case, Pointer, run_case
from harness.cuda_driver import CudaDriver

WINDOW = 32768
N = 64

SOURCE = """
extern "C" __global__ void __launch_bounds__(128) kernel_main(const u32* data, u32* out, u64 a, u64 b, u32 idesc) {
    extern __shared__ __align__(1024) u8 window[];
    __shared__ u64 barrier;
    __shared__ u32 base;
    const u32 rank = cluster_rank(), part = threadIdx.x / 32 * 32 << 16;
    for (int i = threadIdx.x; i < WINDOW / 4; i += 128) reinterpret_cast<u32*>(window)[i] = data[rank * (WINDOW / 4) + i];
    fence_proxy_async();
    if (threadIdx.x == 0) { mbarrier_init(smem_address(&barrier), 1); fence_mbarrier_init(); }
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(smem_address(&base)) : "memory");
    tcgen05_fence_before();
    __syncthreads();
    cluster_sync();
    tcgen05_fence_after();
    if (rank == 0 && threadIdx.x == 0) {
        const u64 start = smem_address(window) >> 4;
        asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(base), "l"(a + start), "l"(b + start), "r"(idesc) : "memory");
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(smem_address(&barrier)), "h"(u16(3)) : "memory");
    }
    __syncwarp();
    mbarrier_wait(smem_address(&barrier), 0);
    tcgen05_fence_after();
    for (int column = 0; column < COLUMNS; column += 8) {
        u32 r[8];
        tcgen05_ld_x8(r, base + part + column);
        tcgen05_wait_ld();
        for (int j = 0; j < 8; ++j) out[(rank * 64 + column + j) * 128 + threadIdx.x] = r[j];
    }
    tcgen05_fence_before();
    __syncthreads();
    cluster_sync();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 64;" ::"r"(base) : "memory");
}
"""


@pytest.mark.parametrize("seed", ["", "4"])
@pytest.mark.parametrize("m", [128, 256])
def test_operands_and_accumulators_of_a_pair(emulator: CudaDriver, m: int, seed: str) -> None:
    emulator.set("arch", "sm100a")
    emulator.set("seed", seed)
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-4, 5, (rows, 16)).astype(np.float16) for rows in (m, N))
    pa, pb = Placement(0, 2, sbo=1024), Placement(16384, 2, sbo=1024)
    windows = []
    for rank in range(2):  # CTA q holds rows [q M/2, ...) of A and columns [q N/2, ...) of B
        window = bytearray(WINDOW)
        pa.write(window, a[rank * m // 2:(rank + 1) * m // 2].view(np.uint8))
        pb.write(window, b[rank * N // 2:(rank + 1) * N // 2].view(np.uint8))
        windows.append(bytes(window))
    columns = N if m == 256 else N // 2
    case = Case(name="pair", arch="sm100a", source=SOURCE, shared=WINDOW, grid=(2,), cluster=(2, 1, 1), defines=(f"WINDOW={WINDOW}", f"COLUMNS={columns}"),
                buffers={"data": b"".join(windows), "out": bytes(2 * 64 * 128 * 4)},
                params=(Pointer("data"), Pointer("out"), struct.pack("<Q", pa.descriptor()), struct.pack("<Q", pb.descriptor()),
                        struct.pack("<I", 1 << 4 | N // 8 << 17 | m // 16 << 24)), outputs=("out",))
    image = np.frombuffer(run_case(emulator, case)["out"], np.float32).reshape(2, 64, 128)
    row, column = np.meshgrid(np.arange(m), np.arange(N), indexing="ij")
    if m == 256:  # layout A
        found = image[row // 128, column, row % 128]
    else:  # layout B: the two halves of the columns lie in the two halves of the lanes
        found = image[row // 64, column % (N // 2), row % 64 + 64 * (column // (N // 2))]
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.astype(np.float32).T)
