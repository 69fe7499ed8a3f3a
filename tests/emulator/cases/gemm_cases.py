"""A complete FP8 GEMM for SM90 of our own: TMA, mbarriers, a producer warp, wgmma, promotion, two epilogues, multicast."""
from __future__ import annotations

import struct
from pathlib import Path

from cases.wgmma_text import wgmma_function
from harness.case import Case, Pointer, i32, random_e4m3
from harness.cuda_driver import TensorMapSpec

SOURCE = wgmma_function(128, 32, "f32.e4m3.e4m3") + (Path(__file__).parent / "gemm_sm90.inl").read_text()
SHARED_BYTES = 2 * 3 * 16384 + 32768 + 64
SHAPES = ((128, 128, 128), (128, 128, 256), (64, 128, 512), (1, 128, 128), (200, 128, 384), (128, 200, 256), (130, 264, 1024), (77, 72, 208),
          (256, 256, 144), (33, 520, 640), (256, 128, 912), (257, 136, 512))


def gemm_case(name: str, m: int, n: int, k: int, *, bf16: bool = False, cluster: int = 1, bug: str = "", a: bytes | None = None,
              b: bytes | None = None, unit_scales: bool = False) -> Case:
    """The GEMM on these extents; ``bug`` plants a mistake. K needs no multiple of 128, but of 16; N of 8 for bf16."""
    blocks, n_blocks = (k + 127) // 128, (n + 127) // 128
    scale = lambda seed, count: struct.pack(f"<{count}f", *[1.0 if unit_scales else (0.5 + (i * seed % 97) / 64) for i in range(count)])  # noqa: E731
    rows = (m + 128 * cluster - 1) // (128 * cluster) * cluster
    defines = tuple(d for d in (f"CLUSTER={cluster}", "OUT_BF16" if bf16 else "", f"BUG_{bug}" if bug else "") if d)
    return Case(
        name=name, source=SOURCE, defines=defines, shared=SHARED_BYTES, grid=(rows, n_blocks), block=(288,), cluster=(cluster, 1, 1),
        buffers={"a": a or random_e4m3(m, m * k), "b": b or random_e4m3(n, n * k), "d": bytes(m * n * 2), "sfa": scale(31, blocks * m),
                 "sfb": scale(17, blocks * n_blocks), "out": bytes(m * n * 4)},
        params=(TensorMapSpec("a", 0, (k, m), (k,), (128, 128), 3), TensorMapSpec("b", 0, (k, n), (k,), (128, 128 // cluster), 3),
                TensorMapSpec("d", 9, (n, m), (n * 2,), (64, 128), 3) if bf16 else TensorMapSpec("a", 0, (k, m), (k,), (128, 128), 3),
                Pointer("sfa"), Pointer("sfb"), Pointer("out"), i32(m), i32(n), i32(k)),
        outputs=("d",) if bf16 else ("out",))


def cases() -> list[Case]:
    """All shapes with f32 output, and some with bf16 output and with multicast."""
    found = [gemm_case(f"gemm_f32_{m}x{n}x{k}", m, n, k) for m, n, k in SHAPES]
    found += [gemm_case(f"gemm_bf16_{m}x{n}x{k}", m, n, k, bf16=True) for m, n, k in SHAPES[4:9]]
    found += [gemm_case(f"gemm_bf16_cluster2_{m}x{n}x{k}", m, n, k, bf16=True, cluster=2) for m, n, k in SHAPES[4:7]]
    found += [gemm_case("gemm_f32_cluster4", 500, 192, 400, cluster=4)]
    return found
