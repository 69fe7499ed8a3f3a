"""Quantisation to E4M3 and UE8M0 in NumPy and plain Python, and matrices to try it on."""

from __future__ import annotations

import math

import numpy as np
import torch


def e4m3_values() -> list[float]:
    """The values of codes 0 … 126, from the format's definition: bias 7, 3 bits of mantissa, 127 is NaN."""
    values = []
    for code in range(127):
        exponent, mantissa = code >> 3, code & 7
        values.append(mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10))
    return values


E4M3_VALUES = np.array(e4m3_values())


def numpy_e4m3(x: np.ndarray) -> np.ndarray:
    """Codes of FP32 values that round to at most 448: the nearest value, at a tie the even code."""
    magnitude = np.abs(x.astype(np.float64))
    upper = np.searchsorted(E4M3_VALUES, magnitude).clip(1, 126)
    below, above = magnitude - E4M3_VALUES[upper - 1], E4M3_VALUES[upper] - magnitude
    takes_lower = (below < above) | ((below == above) & ((upper - 1) % 2 == 0))
    code = np.where(takes_lower, upper - 1, upper)
    code = np.where(np.isnan(x), 127, code)
    return (code | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


def numpy_ue8m0(value: np.float32) -> np.float32:
    """The least power of two at or above a positive normal value, by frexp."""
    mantissa, exponent = math.frexp(float(value))
    exponent = exponent - 1 if mantissa == 0.5 else exponent
    return np.float32(math.ldexp(1.0, min(max(exponent, -126), 127)))


def numpy_scale(block: np.ndarray, largest: float, use_ue8m0: bool) -> np.float32:
    amax = np.max(np.abs(block), initial=np.float32(0))
    scale = np.maximum(amax, np.float32(1e-4)) / np.float32(largest)
    return numpy_ue8m0(scale) if use_ue8m0 else scale


def numpy_block_cast(
    x: np.ndarray, rows: int, columns: int, use_ue8m0: bool
) -> tuple[np.ndarray, np.ndarray]:
    """E4M3 codes and scales of an FP32 matrix, block by block."""
    num_m, num_n = -(-x.shape[0] // rows), -(-x.shape[1] // columns)
    codes, scales = np.zeros(x.shape, np.uint8), np.zeros((num_m, num_n), np.float32)
    for i in range(num_m):
        for j in range(num_n):
            area = np.s_[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
            scales[i, j] = numpy_scale(x[area], 448.0, use_ue8m0)
            codes[area] = numpy_e4m3(x[area] * (np.float32(1) / scales[i, j]))
    return codes, scales


def hard_matrix(num_rows: int, num_columns: int, seed: int = 0) -> torch.Tensor:
    """FP32 of widely differing sizes, with rows of zeros, of 1e-30 and of minus zeros."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_rows, num_columns, generator=generator)
    x = x * torch.exp(torch.randn(num_rows, 1, generator=generator) * 12)
    for row, value in ((0, 0.0), (1, 1e-30), (2, -0.0), (3, 3e38)):
        if row < num_rows:
            x[row] = value
    return x


def codes_of(data: torch.Tensor) -> np.ndarray:
    return data.view(torch.uint8).numpy()
