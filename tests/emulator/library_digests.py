#!/usr/bin/env python3
"""Digests of what the library's FP8 GEMMs write, bit for bit the same on an H200 and on the emulator.

    python tests/emulator/library_digests.py --device cuda --file tests/emulator/golden/h200_library.json   on an H200
    DG_EMULATE=sm90a DG_DRIVER_LIBRARY=$(python tests/emulator/build.py) \\
        python tests/emulator/library_digests.py --device cpu                                               anywhere

Operands are the same bytes everywhere. Prints JSON, or writes it to --file.
"""
from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

import deep_gemm  # noqa: E402
from harness.case import digest, random_e4m3  # noqa: E402

# m, n, k, float32 result with C, factors of B per row
CALLS = (
    (128, 128, 128, False, False), (1, 128, 256, False, False), (64, 256, 512, False, False), (200, 136, 384, False, False),
    (129, 264, 144, False, False), (256, 128, 1024, False, False), (300, 392, 640, False, False), (17, 512, 400, False, False),
    (4, 2112, 512, False, False), (512, 576, 384, False, False), (77, 72, 208, True, False), (150, 200, 256, True, False),
    (333, 136, 272, True, False), (200, 136, 384, True, True), (129, 264, 144, True, True), (1, 64, 128, False, True),
)


def fp8(seed: int, rows: int, columns: int) -> torch.Tensor:
    data = torch.frombuffer(bytearray(random_e4m3(seed, rows * columns)), dtype=torch.uint8)
    return data.view(torch.float8_e4m3fn).view(rows, columns)


def factors(seed: int, rows: int, columns: int) -> torch.Tensor:
    values = [0.25 + (i * seed % 113) / 64 for i in range(rows * columns)]
    return torch.frombuffer(bytearray(struct.pack(f"<{len(values)}f", *values)), dtype=torch.float32).view(rows, columns)


def run(device: str, m: int, n: int, k: int, with_c: bool, per_row: bool) -> str:
    """SHA-256 of D."""
    blocks = (k + 127) // 128
    a, b = fp8(m + 1, m, k), fp8(n + 2, n, k)
    sfa, sfb = factors(29, m, blocks), factors(43, n if per_row else (n + 127) // 128, blocks)
    d = torch.zeros(m, n, dtype=torch.float32 if with_c else torch.bfloat16)
    c = factors(7, m, n) if with_c else None
    a, b, sfa, sfb, d, c = (t if t is None else t.to(device) for t in (a, b, sfa, sfb, d, c))
    deep_gemm.fp8_gemm_nt((a, sfa), (b, sfb), d, c, recipe=(1, 1, 128) if per_row else None)
    return digest(d.cpu().view(torch.uint8).numpy().tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--file", type=Path)
    arguments = parser.parse_args()
    found = {"x".join(map(str, call[:3])) + ("_c" if call[3] else "") + ("_per_row" if call[4] else ""): run(arguments.device, *call) for call in CALLS}
    text = json.dumps(found, indent=1) + "\n"
    if arguments.file:
        arguments.file.parent.mkdir(parents=True, exist_ok=True)
        arguments.file.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
