"""The layout that each architecture's kernels read: rules, storage, refusals."""

from __future__ import annotations

import math

import pytest
import torch

from deep_gemm.errors import DeepGemmError
from deep_gemm.utils import (
    ceil_div,
    get_mn_major_tma_aligned_packed_ue8m0_tensor,
    transform_sf_into_required_layout,
)
from deep_gemm.utils import required_layout as required_layout_module
from scaling_factor_reference import powers, python_words, stride_forms


@pytest.fixture
def on_arch(monkeypatch: pytest.MonkeyPatch):
    """Let the layout rules take CPU tensors for ones on a given architecture."""

    def set_arch(arch_major: int | None) -> None:
        monkeypatch.setattr(required_layout_module, "arch_major_of", lambda sf: arch_major)

    return set_arch


@pytest.mark.parametrize("disable_ue8m0_cast", [False, True])
@pytest.mark.parametrize("arch_major", [None, 9])
def test_transform_keeps_fp32_on_sm90(on_arch, arch_major: int | None, disable_ue8m0_cast: bool):
    on_arch(arch_major)
    sf = torch.rand(130, 3)
    for recipe, is_sfa in (((1, 128, 128), True), ((1, 128), None)):
        for form in stride_forms(sf).values():
            result = transform_sf_into_required_layout(
                form, 130, 300, recipe, None, is_sfa, disable_ue8m0_cast
            )
            assert torch.equal(result, sf) and result.stride() == (1, 132)
            assert transform_sf_into_required_layout(result, 130, 300, recipe, None, is_sfa) is result
    blocks = torch.rand(2, 2, 3).transpose(0, 1)
    result = transform_sf_into_required_layout(
        blocks, 130, 300, (1, 128, 128), 2, is_sfa=False, disable_ue8m0_cast=disable_ue8m0_cast
    )
    assert result is blocks


def test_transform_of_masked_factors(on_arch):
    on_arch(9)
    sf = torch.rand(3, 5, 2)
    result = transform_sf_into_required_layout(sf, 5, 256, (1, 128, 128), num_groups=3, is_sfa=True)
    assert torch.equal(result, sf) and result.stride() == (16, 1, 8)
    assert transform_sf_into_required_layout(result, 5, 256, (1, 128), num_groups=3) is result


@pytest.mark.parametrize("gran_k", [32, 128])
def test_transform_packs_on_sm100(on_arch, gran_k: int):
    on_arch(10)
    sf = powers(6, ceil_div(700, gran_k))
    result = transform_sf_into_required_layout(sf, 6, 700, (1, gran_k))
    assert result.tolist() == python_words(sf.tolist()) and result.stride() == (1, 8)
    assert transform_sf_into_required_layout(result, 6, 700, (1, gran_k)) is result
    assert transform_sf_into_required_layout(result, 6, 700, (1, gran_k), disable_ue8m0_cast=True) is result


def test_transform_repeats_block_factors_per_row_on_sm100(on_arch):
    on_arch(10)
    blocks = powers(2, 3, 5)
    result = transform_sf_into_required_layout(blocks, 300, 640, (1, 128, 128), num_groups=2, is_sfa=False)
    assert result.shape == (2, 300, 2) and result.stride() == (600, 1, 300)
    for group in range(2):
        words = python_words(blocks[group].tolist())
        assert result[group].tolist() == [words[row // 128] for row in range(300)]


def test_transform_disabled_cast_on_sm100_keeps_fp32(on_arch):
    on_arch(10)
    sf = torch.rand(5, 2)
    result = transform_sf_into_required_layout(sf, 5, 256, (1, 128), disable_ue8m0_cast=True)
    assert torch.equal(result, sf) and result.dtype == torch.float32 and result.stride() == (1, 8)
    blocks = torch.rand(1, 2)
    assert transform_sf_into_required_layout(blocks, 5, 256, (128, 128), disable_ue8m0_cast=True) is blocks


def test_transform_psum_on_sm100(on_arch):
    on_arch(10)
    sf = powers(256, 4)
    sf[3:128] = math.nan
    layout = torch.tensor([3, 200], dtype=torch.int32)
    result = transform_sf_into_required_layout(sf, 256, 512, (1, 128), psum_layout=layout)
    assert (result[3:128] == 0).all() and (result[200:] == 0).all()
    assert result[128:200].tolist() == python_words(sf[128:200].tolist())


@pytest.mark.skipif(not hasattr(torch, "float8_e8m0fnu"), reason="this PyTorch has no UE8M0 dtype")
@pytest.mark.parametrize("recipe", [(1, 128), (128, 128)])
def test_transform_of_pytorch_ue8m0(on_arch, recipe: tuple[int, int]):
    codes = torch.arange(12, dtype=torch.uint8).view(2, 6) * 20
    sf = codes.view(torch.float8_e8m0fnu)
    mn = 2 if recipe[0] == 1 else 200
    on_arch(10)
    for disable_ue8m0_cast in (False, True):
        result = transform_sf_into_required_layout(sf, mn, 768, recipe, disable_ue8m0_cast=disable_ue8m0_cast)
        expected = codes if mn == 2 else codes.repeat_interleave(128, 0)[:200]
        assert torch.equal(result.contiguous().view(torch.uint8)[:, :6], expected)
    on_arch(9)
    result = transform_sf_into_required_layout(sf, mn, 768, recipe)
    assert result.dtype == torch.float32
    assert result.tolist() == [[2.0 ** (code - 127) for code in row] for row in codes.tolist()]


def refused_calls() -> dict[str, tuple[int | None, dict[str, object], str]]:
    """Name → (architecture, arguments, word of the message)."""
    sf, packed = torch.ones(5, 2), get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.ones(5, 8))
    plain = {"sf": sf, "mn": 5, "k": 256, "recipe": (1, 128)}
    ready = {"sf": packed, "mn": 5, "k": 1024, "recipe": (1, 128)}
    thirty_two, sfb = {"k": 64, "recipe": (1, 32)}, {"recipe": (1, 1, 128), "is_sfa": False}
    psum = torch.tensor([5], dtype=torch.int32)
    return {
        "three without is_sfa": (9, {**plain, "recipe": (1, 128, 128)}, "is_sfa"),
        "two with is_sfa": (9, {**plain, "is_sfa": True}, "is_sfa"),
        "four": (9, {**plain, "recipe": (1, 1, 1, 128)}, "recipe"),
        "granularity along K": (9, {**plain, "recipe": (1, 64)}, "recipe"),
        "granularity along MN": (10, {**plain, "recipe": (64, 128)}, "recipe"),
        "32 along K on SM90": (9, {**plain, **thirty_two}, "FP32 on SM90"),
        "32 along K without cast": (10, {**plain, **thirty_two, "disable_ue8m0_cast": True}, "SM100"),
        "rows": (9, {**plain, "mn": 6}, r"shape \(6, 2\)"),
        "columns": (10, {**plain, "k": 257}, r"shape \(5, 3\)"),
        "2-D with groups": (9, {**plain, "num_groups": 1}, "num_groups"),
        "3-D without groups": (9, {**plain, "sf": sf[None]}, "num_groups"),
        "dtype": (9, {**plain, "sf": sf.double()}, "float64"),
        "negative": (9, {**plain, "mn": -1}, "negative"),
        "architecture": (8, plain, "SM8x"),
        "packed on SM90": (9, ready, "SM90"),
        "packed of blocks": (10, {**ready, "recipe": (128, 128)}, "gran_mn"),
        "packed row-major": (10, {**ready, "sf": packed.contiguous()}, "MN-major"),
        "packed without pitch": (10, {**ready, "sf": packed.t().contiguous().t()}, "16 bytes"),
        "packed columns": (10, {**ready, "k": 2048}, r"shape \(5, 4\)"),
        "psum of SFB": (10, {**plain, **sfb, "psum_layout": psum}, "psum_layout"),
        "psum dtype": (10, {**plain, "psum_layout": psum.long()}, "psum_layout"),
        "psum rank": (10, {**plain, "psum_layout": psum[None]}, "psum_layout"),
        "psum device": (10, {**plain, "psum_layout": psum.to("meta")}, "psum_layout"),
    }


@pytest.mark.parametrize("name", refused_calls())
def test_transform_refuses(on_arch, name: str):
    arch_major, arguments, word = refused_calls()[name]
    on_arch(arch_major)
    with pytest.raises(DeepGemmError, match=word) as refused:
        transform_sf_into_required_layout(**arguments)
    assert "expected" in str(refused.value) and "but got" in str(refused.value)
