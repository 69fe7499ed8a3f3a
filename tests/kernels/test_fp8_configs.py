"""Every kind of config on the GPU: right, and bit for bit the same."""

from __future__ import annotations

import pytest
import torch
from fp8_configs import CONFIGS, PER_ROW_CONFIGS

import deep_gemm
from deep_gemm import _C
from deep_gemm.testing import calc_diff

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("per_row", [False, True], ids=["1d2d", "1d1d"])
@pytest.mark.parametrize("m, n, k", [(300, 200, 592), (5, 136, 384), (1024, 1160, 2048)])
def test_every_config_writes_the_same_bits(m: int, n: int, k: int, per_row: bool) -> None:
    configs, dtype = (PER_ROW_CONFIGS, torch.float32) if per_row else (CONFIGS, torch.bfloat16)
    cast = deep_gemm.per_token_cast_to_fp8 if per_row else deep_gemm.per_block_cast_to_fp8
    recipe = (1, 1, 128) if per_row else (1, 128, 128)
    torch.manual_seed(1)
    x, y = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda")
    a = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    b = cast(y, use_ue8m0=False)
    first = None
    try:
        for config in configs:
            options = {"recipe": recipe, "d_dtype": config["d_dtype"]}
            _C.pin_fp8_gemm_config(m, n, k, torch.cuda.current_device(), config=config, **options)
            d = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
            deep_gemm.fp8_gemm_nt(a, b, d, recipe=recipe)
            assert calc_diff(d, x.double() @ y.double().T) < 1e-3, config
            first = d if first is None else first
            assert torch.equal(d, first), config
    finally:
        _C.forget_fp8_gemm_plans()
