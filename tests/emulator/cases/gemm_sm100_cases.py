"""A block-scaled FP8 GEMM for SM100 of our own, on one CTA and on a CTA pair."""
from __future__ import annotations

import random
import struct
from pathlib import Path

from harness.case import Case, Pointer, i32, random_e4m3
from harness.cuda_driver import TensorMapSpec

SOURCE = (Path(__file__).parent / "gemm_sm100.inl").read_text()
SHAPES = ((128, 128, 128), (128, 128, 512), (200, 136, 384), (1, 128, 256), (256, 200, 144), (300, 264, 400))


def gemm_case(name: str, m: int, n: int, k: int, *, group: int = 1, bug: str = "", a: bytes | None = None, b: bytes | None = None) -> Case:
    """The GEMM on these extents; ``bug`` plants a mistake. Scales are 2^-3..2^3."""
    blocks, m_pad, n_pad = (k + 127) // 128, (m + 255) // 256 * 256, (n + 127) // 128 * 128
    rng = random.Random(m * 7 + n * 3 + k)
    scales = lambda count: bytes(rng.randrange(124, 131) for _ in range(count))  # noqa: E731
    b_rows = 128 // group
    shared = 3 * (128 * 128 + b_rows * 128 + 2 * 1024) + 256
    return Case(
        name=name, arch="sm100a", source=SOURCE, defines=tuple(d for d in (f"GROUP={group}", f"BUG_{bug}" if bug else "") if d),
        shared=shared, grid=((m + 128 * group - 1) // (128 * group) * group, n_pad // 128), block=(256,), cluster=(group, 1, 1),
        buffers={"a": a or random_e4m3(m, m * k), "b": b or random_e4m3(n, n * k), "sfa": scales(blocks * m_pad * 4), "sfb": scales(blocks * n_pad * 4),
                 "out": bytes(m * n * 4)},
        params=(TensorMapSpec("a", 0, (k, m), (k,), (128, 128), 3), TensorMapSpec("b", 0, (k, n), (k,), (128, b_rows), 3), Pointer("sfa"), Pointer("sfb"),
                Pointer("out"), i32(m), i32(n), i32(k)),
        outputs=("out",))


def cases() -> list[Case]:
    """All shapes on one CTA and on a pair."""
    return [gemm_case(f"sm100_gemm_{group}cta_{m}x{n}x{k}", m, n, k, group=group) for group in (1, 2) for m, n, k in SHAPES]
