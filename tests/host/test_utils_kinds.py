"""Helpers given something of another kind: a refusal that names the argument, and no memory for padding nobody asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import deep_gemm
from deep_gemm import utils

X, CODES = torch.ones(4, 256), torch.zeros(4, 8, dtype=torch.int8)
ENDS = torch.tensor([128, 128], dtype=torch.int32)
k_grouped = utils.get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor
transform = utils.transform_sf_into_required_layout

# What each helper does with the tensor `x`, and the name it has for it.
OF_A_TENSOR = {
    "per_token": (lambda x: utils.per_token_cast_to_fp8(x, True), "x"),
    "per_block": (lambda x: utils.per_block_cast_to_fp8(x, True), "x"),
    "per_channel": (lambda x: utils.per_channel_cast_to_fp8(x, True), "x"),
    "custom_dims": (lambda x: utils.per_custom_dims_cast_to_fp8(x, (0,), True), "x"),
    "fp4": (lambda x: utils.per_token_cast_to_fp4(x, True), "x"),
    "fp4_back": (lambda x: utils.cast_back_from_fp4(x, X), "packed"),
    "fp4_back_sf": (lambda x: utils.cast_back_from_fp4(CODES, x), "sf"),
    "fp4_transpose": (utils.transpose_packed_fp4, "a"),
    "ceil": (utils.ceil_to_ue8m0, "x"),
    "pack": (utils.pack_ue8m0_to_int, "x"),
    "unpack": (utils.unpack_ue8m0_from_int, "packed"),
    "mn_major": (utils.get_mn_major_tma_aligned_tensor, "sf"),
    "mn_major_packed": (utils.get_mn_major_tma_aligned_packed_ue8m0_tensor, "sf"),
    "psum_layout": (lambda x: utils.get_mn_major_tma_aligned_packed_ue8m0_tensor(X, x), "psum_layout"),
    "k_grouped": (lambda x: k_grouped(x, ENDS, None, 128), "sf"),
    "grouped_layout": (lambda x: k_grouped(X, x, None, 128), "grouped_layout"),
    "transform": (lambda x: transform(x, 4, 256, (1, 128)), "sf"),
    "calc_diff": (lambda x: deep_gemm.calc_diff(X, x), "y"),
}


@pytest.mark.parametrize("value", [1.5, np.ones((4, 256), np.float32), torch.ones(4, 256).to_sparse()], ids=type)
@pytest.mark.parametrize("helper", OF_A_TENSOR)
def test_no_dense_tensor(helper: str, value: object):
    call, argument = OF_A_TENSOR[helper]
    with pytest.raises(deep_gemm.DeepGemmError, match=f"^{argument}: expected a .*tensor"):
        call(value)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: utils.per_token_cast_to_fp8(X, True, 1.5), "gran_k"),
        (lambda: utils.per_block_cast_to_fp8(X, True, "128"), "gran_k"),
        (lambda: utils.cast_back_from_fp4(CODES, X, None), "gran_k"),
        (lambda: utils.per_custom_dims_cast_to_fp8(X, 0, True), "dims"),
        (lambda: utils.per_custom_dims_cast_to_fp8(X, ("a",), True), "dims"),
        (lambda: utils.get_tma_aligned_size(None, 4), "x"),
        (lambda: utils.get_tma_aligned_size(5, 4.0), "element_size"),
        (lambda: k_grouped(X[:2], ENDS, [128.0, 128], 128), "ks_cpu"),
        (lambda: k_grouped(X[:2], ENDS, 128, 128), "ks_cpu"),
        (lambda: k_grouped(X[:2], ENDS, None, 128, "128"), "k_alignment"),
        (lambda: transform(X[:, :2], 4, 256, None), "recipe"),
        (lambda: transform(X[:, :2], "4", 256, (1, 128)), "mn"),
        (lambda: transform(X[:, :2], 4, 256.0, (1, 128)), "k"),
    ],
)
def test_no_integer(call, argument: str):
    with pytest.raises(deep_gemm.DeepGemmError, match=f"^{argument}: expected "):
        call()


@pytest.mark.parametrize(
    "cast", [utils.per_token_cast_to_fp8, utils.per_block_cast_to_fp8, utils.per_token_cast_to_fp4]
)
def test_a_granularity_beyond_the_matrix_takes_no_memory(cast):
    x = torch.randn(3, 10)
    data, sf = cast(x, False, 2**40)
    expected, factors = cast(x, False, 16)
    assert torch.equal(data.view(torch.uint8), expected.view(torch.uint8)) and torch.equal(sf, factors)
    if cast is utils.per_token_cast_to_fp4:
        back = utils.cast_back_from_fp4(data, sf, 2**40)
        assert torch.equal(back, utils.cast_back_from_fp4(data, sf, 16))
