"""One tcgen05.mma on operands placed in shared memory by hand: every kind, layout and format in small."""
from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from harness.case import Case, Pointer, i32, u64

WINDOW = 64 * 1024
SPANS = {0: 0, 2: 128, 4: 64, 6: 32}  # swizzle code of a descriptor -> span in bytes

SOURCE = """
extern "C" __global__ void __launch_bounds__(128) kernel_main(const u32* data, const u32* initial, const u32* scales, u32* out, u64 a, u64 b, u32 idesc,
                                                              u32 accumulate) {
    extern __shared__ __align__(1024) u8 window[];
    __shared__ u64 barrier;
    __shared__ u32 base;
    const u32 lanes = threadIdx.x / 32 * 32 << 16;
    for (int i = threadIdx.x; i < WINDOW / 4; i += 128) reinterpret_cast<u32*>(window)[i] = data[i];
    fence_proxy_async();
    if (threadIdx.x == 0) { mbarrier_init(smem_address(&barrier), 1); fence_mbarrier_init(); }
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(smem_address(&base)) : "memory");
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    const u32 d = base, sfa = base + 256, sfb = base + 264;
    for (int column = 0; column < 256; ++column)
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(d + lanes + column), "r"(initial[column * 128 + threadIdx.x]) : "memory");
    for (int column = 0; column < 16; ++column)  // scale words, the same in all four parts
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(sfa + lanes + column), "r"(scales[column * 32 + threadIdx.x % 32]) : "memory");
    tcgen05_wait_st();
    tcgen05_fence_before();
    __syncthreads();
    if (threadIdx.x == 0) {
        tcgen05_fence_after();
        const u64 start = smem_address(window) >> 4;
        asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %6, 0;\\ntcgen05.mma.cta_group::1." FORM " p;\\n}" ::"r"(d), "l"(a + start), "l"(b + start), "r"(idesc),
                     "r"(sfa), "r"(sfb), "r"(accumulate) : "memory");
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem_address(&barrier)) : "memory");
    }
    __syncwarp();
    mbarrier_wait(smem_address(&barrier), 0);
    tcgen05_fence_after();
    for (int column = 0; column < 256; column += 8) {
        u32 r[8];
        tcgen05_ld_x8(r, d + lanes + column);
        tcgen05_wait_ld();
        for (int j = 0; j < 8; ++j) out[(column + j) * 128 + threadIdx.x] = r[j];
    }
    tcgen05_fence_before();
    __syncthreads();
    if (threadIdx.x < 32) {
        tcgen05_fence_after();
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" ::"r"(d) : "memory");
    }
}
"""
PLAIN = "[%0], %1, %2, %3,"
SCALED = "[%0], %1, %2, %3, [%4], [%5],"


@dataclass(frozen=True)
class Placement:
    """An operand in shared memory: rows of packed bytes along the major dimension."""

    start: int
    swizzle: int
    mn_major: bool = False
    lbo: int = 0
    sbo: int = 0

    def descriptor(self) -> int:
        return self.start >> 4 | (self.lbo >> 4) << 16 | (self.sbo >> 4) << 32 | 1 << 46 | self.swizzle << 61

    def chunk_address(self, line: int, chunk: int) -> int:
        """Of 16 bytes: `line` counts rows (K-major) or k (MN-major), `chunk` runs along the contiguous dimension."""
        span = SPANS[self.swizzle]
        if span == 0:
            near, far = (self.lbo, self.sbo) if not self.mn_major else (self.sbo, self.lbo)
            return self.start + chunk * near + line % 8 * 16 + line // 8 * far
        inside = chunk * 16 % span
        outside = chunk * 16 // span * self.lbo
        address = self.start + outside + line // 8 * self.sbo + line % 8 * span + inside
        # 16-byte chunks are exchanged within 128-byte lines: XOR with the number of the line, as far as the span reaches.
        return address ^ (address // 128 % 8 % (span // 16)) * 16

    def write(self, window: bytearray, lines: np.ndarray) -> None:
        """`lines` is a byte matrix whose rows have a whole number of chunks."""
        for line, row in enumerate(lines):
            for chunk in range(len(row) // 16):
                at = self.chunk_address(line, chunk)
                window[at:at + 16] = row[chunk * 16:chunk * 16 + 16].tobytes()


def probe(name: str, form: str, window: bytes, a: Placement, b: Placement, idesc: int, initial: np.ndarray, scales: np.ndarray, accumulate: bool) -> Case:
    """`initial` is D's TMEM image [256 columns][128 lanes] of u32, `scales` 16 columns of 32 words (SFA at 0, SFB at 8)."""
    return Case(name=name, arch="sm100a", source=SOURCE, shared=WINDOW, defines=(f"WINDOW={WINDOW}", f'FORM="{form}"'),
                buffers={"data": window, "initial": initial.astype("<u4").tobytes(), "scales": scales.astype("<u4").tobytes(), "out": bytes(256 * 128 * 4)},
                params=(Pointer("data"), Pointer("initial"), Pointer("scales"), Pointer("out"), u64(a.descriptor()), u64(b.descriptor()),
                        struct.pack("<I", idesc), i32(int(accumulate))), outputs=("out",))
