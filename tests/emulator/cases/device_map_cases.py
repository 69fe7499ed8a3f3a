"""Tensor maps that a kernel changes itself: matrices of several pitches, one after another, through one or two places in global memory."""
from __future__ import annotations

import struct

from harness.case import Case, Pointer, random_bytes
from harness.cuda_driver import TensorMapSpec

ROWS, COLUMNS = 24, 64  # of the box
BOX = ROWS * COLUMNS
# Matrices: rows that exist, bytes of a row, pitch; loads: matrix, x, y.
MATRICES = ((24, 64, 64), (30, 100, 112), (7, 48, 48), (24, 256, 1024), (1, 16, 16))
LOADS = ((0, 0, 0), (1, 32, 3), (1, 80, -4), (2, 16, 0), (3, 128, 5), (4, 0, 0), (0, -16, 8))

# BUG_*: planted mistakes, for test_emulator_device_maps.py.
_SOURCE = """
DEV void publish(TensorMap* to, u32 from) {
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%%0], [%%1], 128;" ::"l"(to), "r"(from) : "memory");
}
DEV void acquire(const TensorMap* map) { asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%%0], 128;" ::"l"(map) : "memory"); }
DEV void change(u32 map, const u8* base, u32 width, u32 height, u64 pitch) {
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%%0], %%1;" ::"r"(map), "l"(base) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%%0], 0, %%1;" ::"r"(map), "r"(width) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%%0], 1, %%1;" ::"r"(map), "r"(height) : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%%0], 0, %%1;" ::"r"(map), "l"(pitch) : "memory");
}
extern "C" __global__ void kernel_main(const __grid_constant__ TensorMap pattern, const u8* tensor, const int* loads, TensorMap* slots, u8* out) {
    __shared__ __align__(128) u8 box[%(count)d * %(box)d];
    __shared__ __align__(128) TensorMap map;
    __shared__ u64 barrier;
    const u32 full = smem_address(&barrier), m = smem_address(&map);
    if (threadIdx.x == 0) { mbarrier_init(full, 1); fence_mbarrier_init(); }
    if (threadIdx.x < 16) map.opaque[threadIdx.x] = pattern.opaque[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < %(count)d; ++i) {
        const int* c = loads + i * 6;  // x, y, offset, width, height, pitch
        TensorMap* slot = slots + i %% %(slots)d;
        if (threadIdx.x == BUGGY(CHANGED_ELSEWHERE, 32 * (i %% 2), 0)) change(m, tensor + c[2], c[3], c[4], c[5] + BUGGY(ODD_PITCH, 8, 0));
        BUGGY(READ_TOO_SOON, , __syncwarp());
        if (threadIdx.x < 32) {
            if (BUGGY(NOT_PUBLISHED, 1, 0)) {
                if (threadIdx.x < 16) slot->opaque[threadIdx.x] = map.opaque[threadIdx.x];
            } else {
                publish(slot, m);
                BUGGY(CHANGED_TOO_SOON, if (threadIdx.x == 1) change(m, tensor, c[3], c[4], c[5]), );
            }
            if (BUGGY(NOT_ACQUIRED, i == 0, BUGGY(NOT_PUBLISHED, 0, 1))) acquire(slot);
        }
        __syncwarp();
        if (threadIdx.x == 0) {
            mbarrier_expect(full, %(box)d);
            tma_load_2d(smem_address(box) + i * %(box)d, slot, c[0], c[1], full);
        }
        if (BUGGY(IN_FLIGHT, threadIdx.x == 1000, true)) mbarrier_wait(full, i & 1);
        __syncthreads();
    }
    if (BUGGY(IN_FLIGHT, true, false)) return;
    for (int i = threadIdx.x; i < %(count)d * %(box)d; i += blockDim.x) out[i] = box[i];
}
"""


def starts() -> list[int]:
    """Where each matrix begins in the tensor."""
    found, at = [], 0
    for rows, _, pitch in MATRICES:
        found.append(at)
        at += -(-rows * pitch // 16) * 16
    return [*found, at]


def device_map_case(slots: int = 2, bug: str = "") -> Case:
    """All loads, one after another. The template map has another address, extents and pitch than any."""
    names = ("CHANGED_ELSEWHERE", "READ_TOO_SOON", "CHANGED_TOO_SOON", "ODD_PITCH", "NOT_PUBLISHED", "NOT_ACQUIRED", "IN_FLIGHT")
    define = "#define BUGGY(name, yes, no) BUGGY_##name(yes, no)\n"
    define += "".join(f"#define BUGGY_{name}(yes, no) {'yes' if name == bug else 'no'}\n" for name in names)
    begins = starts()
    flat = [v for m, x, y in LOADS for v in (x, y, begins[m], MATRICES[m][1], MATRICES[m][0], MATRICES[m][2])]
    return Case(name=f"device_maps_{slots}" + (f"_{bug}" if bug else ""), source=define + _SOURCE % {"count": len(LOADS), "box": BOX, "slots": slots}, block=(64,),
                buffers={"tensor": random_bytes(7, begins[-1]), "loads": struct.pack(f"<{len(flat)}i", *flat), "slots": bytes(256), "out": bytes(len(LOADS) * BOX)},
                params=(TensorMapSpec("tensor", 0, (16, 2), (32,), (COLUMNS, ROWS)), Pointer("tensor"), Pointer("loads"), Pointer("slots"), Pointer("out")), outputs=("out",))


def cases() -> list[Case]:
    return [device_map_case(2), device_map_case(1)]
