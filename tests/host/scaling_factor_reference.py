"""Scaling factors to test with, and what packing must give, in plain Python."""

from __future__ import annotations

import math

import torch


def powers(*shape: int, seed: int = 0) -> torch.Tensor:
    """FP32 powers of two in 2^-126 … 2^127."""
    exponents = torch.randint(-126, 128, shape, generator=torch.Generator().manual_seed(seed))
    return torch.ldexp(torch.ones(shape, dtype=torch.float64), exponents).float()


def python_code(value: float) -> int:
    """UE8M0 code of one value, by frexp."""
    if value == 0:
        return 0
    if math.isnan(value) or math.isinf(value) or value < 0:
        return 255
    mantissa, exponent = math.frexp(value)
    return exponent - 1 + 127 if mantissa == 0.5 and exponent - 1 >= -127 else 255


def python_words(rows: list[list[float]]) -> list[list[int]]:
    """Packed words of each row, four codes a word, as int32."""
    words = []
    for row in rows:
        codes = [python_code(value) for value in row]
        codes += [0] * (-len(codes) % 4)
        quads = [bytes(codes[i : i + 4]) for i in range(0, len(codes), 4)]
        words.append([int.from_bytes(quad, "little", signed=True) for quad in quads])
    return words


def same_storage(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.data_ptr() == y.data_ptr() and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def stride_forms(sf: torch.Tensor) -> dict[str, torch.Tensor]:
    """One FP32 matrix ``[(G,) MN, S]`` in the ways callers keep it."""
    mn, columns = sf.shape[-2:]
    pitch = (mn + 3) // 4 * 4
    wide = torch.full((*sf.shape[:-1], columns + 3), math.nan)
    wide[..., 1 : 1 + columns] = sf
    aligned = torch.full((*sf.shape[:-2], columns, pitch), math.nan)
    aligned[..., :mn] = sf.transpose(-1, -2)
    return {
        "row-major": sf.contiguous(),
        "MN-major": sf.transpose(-1, -2).contiguous().transpose(-1, -2),
        "aligned": aligned.transpose(-1, -2)[..., :mn, :],
        "slice": wide[..., 1 : 1 + columns],
    }
