"""Casts to and from E2M1 against plain Python, to the byte."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from deep_gemm.utils import (
    cast_back_from_fp4,
    ceil_div,
    per_token_cast_to_fp4,
    transpose_packed_fp4,
    unpack_ue8m0_from_int,
)
from quantisation_reference import codes_of, hard_matrix, numpy_scale

FP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def python_fp4_code(value: np.float32) -> int:
    """Nearest magnitude, ties towards zero; zero without sign."""
    magnitude = abs(float(value))
    code = min(range(8), key=lambda candidate: (abs(FP4_VALUES[candidate] - magnitude), candidate))
    return code + 8 if value < 0 and code > 0 else code


def unpacked_nibbles(packed: torch.Tensor) -> list[list[int]]:
    rows = codes_of(packed).tolist()
    return [[nibble for byte in row for nibble in (byte & 15, byte >> 4)] for row in rows]


@pytest.mark.parametrize("use_ue8m0", [False, True])
@pytest.mark.parametrize(("m", "n", "gran_k"), [(6, 64, 32), (5, 130, 128), (4, 34, 32)])
def test_per_token_cast_to_fp4(m: int, n: int, gran_k: int, use_ue8m0: bool):
    x = hard_matrix(m, n)
    data, sf = per_token_cast_to_fp4(x, use_ue8m0, gran_k)
    assert data.dtype == torch.int8 and data.shape == (m, n // 2) and sf.shape == (m, ceil_div(n, gran_k))
    nibbles = unpacked_nibbles(data)
    for i in range(m):
        for j in range(sf.shape[1]):
            block = x[i, j * gran_k : (j + 1) * gran_k].numpy()
            scale = numpy_scale(block, 6.0, use_ue8m0)
            assert sf[i, j].item() == scale
            expected = [python_fp4_code(value) for value in block * (np.float32(1) / scale)]
            assert nibbles[i][j * gran_k : (j + 1) * gran_k] == expected


def test_fp4_ties_go_to_zero_and_zero_has_no_sign():
    """The amax of 6 makes the factor 1."""
    above = [np.nextafter(np.float32(t), np.float32(9)).item() for t in (0.25, 5.0)]
    ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
    x = torch.tensor([[6.0, *ties, -0.25, -0.0, -0.75, -6.0, *above, 0.0, -0.3]])
    data, sf = per_token_cast_to_fp4(x, use_ue8m0=False, gran_k=128)
    assert sf.item() == 1.0
    assert unpacked_nibbles(data) == [[7, 0, 1, 2, 3, 4, 5, 6, 0, 0, 9, 15, 1, 7, 0, 9]]


def test_fp4_nan_is_zero_and_its_factor_nan():
    x = torch.ones(1, 64)
    x[0, 3] = math.nan
    data, sf = per_token_cast_to_fp4(x, use_ue8m0=False, gran_k=32)
    assert math.isnan(sf[0, 0]) and not math.isnan(sf[0, 1]) and unpacked_nibbles(data)[0][3] == 0


@pytest.mark.parametrize("n", [32, 96, 128, 130])
def test_fp4_packed_factors_are_filled_up_with_one(n: int):
    x = torch.randn(3, n)
    _, sf = per_token_cast_to_fp4(x, True, 32)
    data, packed = per_token_cast_to_fp4(x, True, 32, use_packed_ue8m0=True)
    unpacked = unpack_ue8m0_from_int(packed)
    assert packed.shape == (3, ceil_div(n, 128)) and torch.equal(unpacked[:, : sf.shape[1]], sf)
    assert (unpacked[:, sf.shape[1] :] == 1).all()
    restored = cast_back_from_fp4(data, sf, 32)
    assert torch.equal(cast_back_from_fp4(data, packed, 32, True), restored)
    assert torch.equal(cast_back_from_fp4(data, unpacked, 32), restored)


def test_cast_back_gives_every_value():
    packed = torch.arange(0, 256, dtype=torch.int32).to(torch.uint8).view(torch.int8).view(2, 128)
    values = cast_back_from_fp4(packed, torch.tensor([[1.0, 1.0], [-0.5, 3.0]]), 128)
    table = [*FP4_VALUES, *(-v for v in FP4_VALUES)]
    for byte in range(256):
        row, column = byte // 128, byte % 128
        scale = (1.0, 1.0, -0.5, 3.0)[2 * row + column // 64]
        for offset, nibble in enumerate((byte & 15, byte >> 4)):
            got, want = values[row, 2 * column + offset].item(), table[nibble] * scale
            assert got == want and math.copysign(1, got) == math.copysign(1, want)


def test_cast_back_error_is_within_half_a_step():
    x = torch.randn(16, 256, generator=torch.Generator().manual_seed(2))
    data, sf = per_token_cast_to_fp4(x, False, 32)
    error = (cast_back_from_fp4(data, sf, 32) - x).abs() / sf.repeat_interleave(32, 1)
    assert 0.5 < error.max() <= 1.0 + 1e-6  # the widest step is 2, from 4 to 6


def test_transpose_packed_fp4():
    data, _ = per_token_cast_to_fp4(torch.randn(6, 10), False)
    transposed = transpose_packed_fp4(data)
    assert transposed.shape == (10, 3) and transposed.is_contiguous()
    assert unpacked_nibbles(transposed) == [list(column) for column in zip(*unpacked_nibbles(data))]
    assert torch.equal(transpose_packed_fp4(transposed), data)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this PyTorch has no FP4 dtype")
def test_pytorch_fp4_dtype_is_taken():
    data, sf = per_token_cast_to_fp4(torch.randn(2, 32), False, 32)
    typed = data.view(torch.float4_e2m1fn_x2)
    assert torch.equal(cast_back_from_fp4(typed, sf, 32), cast_back_from_fp4(data, sf, 32))
    assert torch.equal(transpose_packed_fp4(typed).view(torch.int8), transpose_packed_fp4(data))


def test_fp4_codes_are_of_products_with_the_reciprocal():
    """A value whose rounded quotient by the factor differs from its product with the rounded reciprocal."""
    x = torch.tensor([[857.4755859375, 250.09706115722656]])
    data, sf = per_token_cast_to_fp4(x, use_ue8m0=False)
    assert (x / sf)[0, 1] > 1.75 and (x * (1 / sf))[0, 1] == 1.75
    assert unpacked_nibbles(data) == [[7, 3]]
