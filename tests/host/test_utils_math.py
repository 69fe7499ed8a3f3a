"""Casts and UE8M0 arithmetic, against independent NumPy and plain Python, to the byte."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from deep_gemm.errors import DeepGemmError
from deep_gemm.utils import (
    align,
    cast_back_from_fp4,
    ceil_div,
    ceil_to_ue8m0,
    pack_ue8m0_to_int,
    per_block_cast_to_fp8,
    per_channel_cast_to_fp8,
    per_custom_dims_cast_to_fp8,
    per_token_cast_to_fp4,
    per_token_cast_to_fp8,
    transpose_packed_fp4,
    unpack_ue8m0_from_int,
)
from quantisation_reference import E4M3_VALUES, codes_of, hard_matrix, numpy_block_cast, numpy_e4m3

def test_integer_rounding():
    assert [ceil_div(x, 4) for x in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [align(x, 4) for x in (0, 1, 4, 5)] == [0, 4, 4, 8]


def test_e4m3_table_is_the_format():
    """The reference itself: known values of E4M3."""
    assert E4M3_VALUES[1] == 2.0**-9 and E4M3_VALUES[0x38] == 1.0 and E4M3_VALUES[0x7E] == 448.0
    assert (np.diff(E4M3_VALUES) > 0).all()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, 2.0**-126),
        (-0.0, 2.0**-126),
        (1e-30, 2.0**-99),
        (1e-45, 2.0**-126),
        (2.0**-127, 2.0**-126),
        (2.0**-126, 2.0**-126),
        (1.0, 1.0),
        (-1.0, 1.0),
        (1.0000001, 2.0),
        (0.9999999, 1.0),
        (3.0, 4.0),
        (-4.0, 4.0),
        (2.0**127, 2.0**127),
        (2.0**127 * 1.5, 2.0**127),
        (3.4e38, 2.0**127),
        (math.inf, 2.0**127),
        (math.nan, 2.0**127),
    ],
)
def test_ceil_to_ue8m0(value: float, expected: float):
    assert ceil_to_ue8m0(torch.tensor(value)).item() == expected


def test_ceil_to_ue8m0_keeps_shape_and_takes_other_dtypes():
    x = torch.tensor([[0.75, -3.0]], dtype=torch.bfloat16)
    assert torch.equal(ceil_to_ue8m0(x), torch.tensor([[1.0, 4.0]]))
    assert ceil_to_ue8m0(x.double()).dtype == torch.float32


def test_pack_puts_the_first_factor_in_the_lowest_byte():
    x = torch.tensor([[1.0, 2.0, 0.5, 2.0**127], [2.0**-126, 2.0**-127, 4.0, 8.0]])
    first, second = 127 | 128 << 8 | 126 << 16 | (254 - 256) << 24, 1 | 0 << 8 | 129 << 16 | (130 - 256) << 24
    assert pack_ue8m0_to_int(x).tolist() == [[first], [second]]
    assert torch.equal(unpack_ue8m0_from_int(pack_ue8m0_to_int(x)), x)


def test_every_code_survives_unpack_and_pack():
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(torch.int32)
    values = unpack_ue8m0_from_int(codes)
    assert values[:255].tolist() == [2.0 ** (e - 127) for e in range(255)]
    assert math.isnan(values[255])
    assert torch.equal(pack_ue8m0_to_int(values[:252]), codes[:63])


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, 3.0, 1e-45, math.inf, math.nan])
def test_pack_refuses_what_is_no_power_of_two(value: float):
    with pytest.raises(DeepGemmError, match="power"):
        pack_ue8m0_to_int(torch.tensor([1.0, 1.0, value, 1.0]))


@pytest.mark.parametrize("x", [torch.ones(3), torch.ones(2, 6), torch.ones(4).double(), torch.tensor(1.0)])
def test_pack_refuses_other_shapes_and_dtypes(x: torch.Tensor):
    with pytest.raises(DeepGemmError):
        pack_ue8m0_to_int(x)


def test_unpack_refuses_other_dtypes():
    with pytest.raises(DeepGemmError, match="torch.int32"):
        unpack_ue8m0_from_int(torch.zeros(4))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (1, 4), (5, 4)])
def test_pack_and_unpack_of_small_and_strided_tensors(shape: tuple[int, int]):
    x = torch.full(shape, 2.0)
    packed = pack_ue8m0_to_int(x)
    assert packed.shape == (shape[0], shape[1] // 4)
    mn_major = packed.t().contiguous().t()
    assert torch.equal(unpack_ue8m0_from_int(mn_major), x)
    view = torch.full((5, 9), 2.0)[:1, 1:5]
    assert pack_ue8m0_to_int(view).tolist() == [[-2139062144]]


@pytest.mark.parametrize("use_ue8m0", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "gran_k"), [(7, 384, 128), (6, 300, 128), (5, 96, 32), (4, 33, 32), (1, 1, 128)]
)
def test_per_token_cast_to_fp8(m: int, n: int, gran_k: int, use_ue8m0: bool):
    x = hard_matrix(m, n)
    data, sf = per_token_cast_to_fp8(x, use_ue8m0, gran_k)
    codes, scales = numpy_block_cast(x.numpy(), 1, gran_k, use_ue8m0)
    assert data.dtype == torch.float8_e4m3fn and data.is_contiguous() and sf.is_contiguous()
    assert np.array_equal(codes_of(data), codes)
    assert np.array_equal(sf.numpy().view(np.uint32), scales.view(np.uint32))


@pytest.mark.parametrize("use_ue8m0", [False, True])
@pytest.mark.parametrize(("m", "n", "gran_k"), [(256, 130, 128), (96, 5, 32)])
def test_per_channel_cast_to_fp8(m: int, n: int, gran_k: int, use_ue8m0: bool):
    x = hard_matrix(n, m).t()
    data, sf = per_channel_cast_to_fp8(x, use_ue8m0, gran_k)
    codes, scales = numpy_block_cast(x.numpy(), gran_k, 1, use_ue8m0)
    assert np.array_equal(codes_of(data), codes) and np.array_equal(sf.numpy(), scales)
    assert data.is_contiguous() and sf.shape == (m // gran_k, n)


@pytest.mark.parametrize("use_ue8m0", [False, True])
@pytest.mark.parametrize(("m", "n", "gran_k"), [(128, 256, 128), (130, 300, 128), (33, 31, 32)])
def test_per_block_cast_to_fp8(m: int, n: int, gran_k: int, use_ue8m0: bool):
    x = hard_matrix(m, n)
    data, sf = per_block_cast_to_fp8(x, use_ue8m0, gran_k)
    codes, scales = numpy_block_cast(x.numpy(), gran_k, gran_k, use_ue8m0)
    assert np.array_equal(codes_of(data), codes) and np.array_equal(sf.numpy(), scales)
    assert data.is_contiguous() and data.shape == x.shape


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 2), (-1,), (0, 1, 2), ()])
def test_per_custom_dims_cast_to_fp8(dims: tuple[int, ...]):
    x = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    data, sf = per_custom_dims_cast_to_fp8(x, dims, use_ue8m0=False)
    kept = [dim % 3 for dim in dims]
    reduced = tuple(dim for dim in range(3) if dim not in kept)
    amax = np.abs(x.numpy()).max(axis=reduced, keepdims=True) if reduced else np.abs(x.numpy())
    scales = np.maximum(amax, np.float32(1e-4)) / np.float32(448)
    assert np.array_equal(sf.numpy(), scales.squeeze())
    assert np.array_equal(codes_of(data), numpy_e4m3(x.numpy() * (np.float32(1) / scales)))


def test_per_custom_dims_squeezes_extents_of_one_and_takes_empty_tensors():
    assert per_custom_dims_cast_to_fp8(torch.ones(1, 4), (0, 1), False)[1].shape == (4,)
    data, sf = per_custom_dims_cast_to_fp8(torch.ones(0, 4), (1,), False)
    assert data.shape == (0, 4) and torch.equal(sf, torch.full((4,), 1e-4) / torch.tensor(448.0))


def test_fp8_rounds_to_nearest_even_at_the_upper_end():
    """An amax of 448 makes the factor 1; 432 is half-way from 416 (7D) to 448 (7E), 400 from 384 to 416."""
    x = torch.tensor([[448.0, -448.0, 432.0, 431.0, 400.0, 2.0**-10, 3 * 2.0**-10, -0.0]])
    data, sf = per_token_cast_to_fp8(x, use_ue8m0=False)
    assert sf.item() == 1.0
    assert codes_of(data).tolist() == [[0x7E, 0xFE, 0x7E, 0x7D, 0x7C, 0x00, 0x02, 0x80]]


def test_data_are_products_with_the_reciprocal():
    """A value whose rounded quotient by the factor differs from its product with the rounded reciprocal."""
    x = torch.tensor([[637.1431884765625, 27.021696090698242]])
    data, sf = per_token_cast_to_fp8(x, use_ue8m0=False)
    assert (x / sf)[0, 1] == 19.0 and (x * (1 / sf))[0, 1] < 19.0
    assert data.float().tolist() == [[448.0, 18.0]]  # the quotient would be a tie, which goes to 20


def test_fp8_amax_has_a_floor():
    data, sf = per_token_cast_to_fp8(torch.tensor([[0.0, 1e-30, 1e-4]]), use_ue8m0=False)
    assert sf.item() == (np.float32(1e-4) / np.float32(448)).item()
    assert codes_of(data).tolist() == [[0, 0, 0x7E]]


def test_fp8_nan_and_infinity_stay_visible():
    x = torch.ones(3, 128)
    x[0, 5], x[1, 5] = math.nan, math.inf
    for use_ue8m0 in (False, True):
        data, sf = per_token_cast_to_fp8(x, use_ue8m0)
        product = data.float() * sf
        assert not product[0, 5].isfinite() and not product[1, 5].isfinite()
        assert product[2].isfinite().all()


def test_padding_counts_for_nothing_but_the_amax():
    x = torch.randn(4, 200)
    padded = torch.nn.functional.pad(x, (0, 56))
    data, sf = per_token_cast_to_fp8(x, False)
    wide, wide_sf = per_token_cast_to_fp8(padded, False)
    assert torch.equal(sf, wide_sf) and np.array_equal(codes_of(data), codes_of(wide)[:, :200])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes_are_read_as_fp32(dtype: torch.dtype):
    x = torch.randn(3, 256).to(dtype)
    for got, want in zip(per_token_cast_to_fp8(x, True), per_token_cast_to_fp8(x.float(), True)):
        assert np.array_equal(codes_of(got.view(torch.uint8)), codes_of(want.view(torch.uint8)))


@pytest.mark.parametrize("cast", [per_token_cast_to_fp8, per_channel_cast_to_fp8, per_block_cast_to_fp8])
def test_empty_matrices(cast):
    data, sf = cast(torch.empty(0, 256), False)
    assert data.shape == (0, 256) and sf.shape[0] == 0
    data, sf = cast(torch.empty(128, 0), True)
    assert data.shape == (128, 0) and sf.shape[1] == 0


def test_parameters_are_taken_and_nothing_requires_grad():
    data, sf = per_block_cast_to_fp8(torch.nn.Parameter(torch.randn(4, 4)), True)
    assert not data.requires_grad and not sf.requires_grad


def test_packed_fp8_factors_are_the_packed_form_of_the_plain_ones():
    x = hard_matrix(5, 512)
    _, sf = per_token_cast_to_fp8(x, True)
    data, packed = per_token_cast_to_fp8(x, True, use_packed_ue8m0=True)
    assert packed.dtype == torch.int32 and packed.shape == (5, 1)
    assert torch.equal(unpack_ue8m0_from_int(packed), sf)


@pytest.mark.parametrize(
    "call",
    [
        lambda: per_token_cast_to_fp8(torch.ones(4, 256), True, use_packed_ue8m0=True),
        lambda: per_token_cast_to_fp8(torch.ones(4, 512), False, use_packed_ue8m0=True),
        lambda: per_token_cast_to_fp8(torch.ones(4), True),
        lambda: per_token_cast_to_fp8(torch.ones(4, 4, dtype=torch.int32), True),
        lambda: per_token_cast_to_fp8(torch.ones(4, 4), True, 0),
        lambda: per_channel_cast_to_fp8(torch.ones(127, 4), True),
        lambda: per_custom_dims_cast_to_fp8(torch.ones(4, 4), (2,), True),
        lambda: per_token_cast_to_fp4(torch.ones(4, 3), True),
        lambda: per_token_cast_to_fp4(torch.ones(4, 4), False, use_packed_ue8m0=True),
        lambda: cast_back_from_fp4(torch.zeros(4, 64, dtype=torch.int8), torch.ones(4, 2)),
        lambda: cast_back_from_fp4(torch.zeros(4, 64, dtype=torch.int8), torch.ones(4, 1), 128, True),
        lambda: transpose_packed_fp4(torch.zeros(3, 2, dtype=torch.int8)),
        lambda: transpose_packed_fp4(torch.zeros(4, 2)),
    ],
)
def test_refusals_are_runtime_errors_that_say_what_was_expected(call):
    with pytest.raises(RuntimeError, match="expected .* but got") as refused:
        call()
    assert isinstance(refused.value, DeepGemmError)


@pytest.mark.gpu
@pytest.mark.parametrize("use_ue8m0", [False, True])
def test_gpu_bytes_are_the_cpu_bytes(use_ue8m0: bool):
    x = hard_matrix(256, 300)
    casts = (per_token_cast_to_fp8, per_channel_cast_to_fp8, per_block_cast_to_fp8, per_token_cast_to_fp4)
    for cast in casts:
        for on_gpu, on_cpu in zip(cast(x.cuda(), use_ue8m0), cast(x, use_ue8m0)):
            assert torch.equal(on_gpu.cpu().view(torch.uint8), on_cpu.view(torch.uint8))
