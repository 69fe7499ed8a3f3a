"""Scaling-factor layouts against plain Python: values, strides, storage, refusals."""

from __future__ import annotations

import math

import pytest
import torch

from deep_gemm.errors import DeepGemmError
from deep_gemm.utils import (
    ceil_div,
    get_k_alignment_for_contiguous_layout,
    get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_m_alignment_for_contiguous_layout,
    get_mk_alignment_for_contiguous_layout,
    get_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_mn_major_tma_aligned_tensor,
    get_theoretical_mk_alignment_for_contiguous_layout,
    get_tma_aligned_size,
    set_mk_alignment_for_contiguous_layout,
)
from deep_gemm.utils import alignment as alignment_module
from scaling_factor_reference import powers, python_words, same_storage, stride_forms


@pytest.fixture(autouse=True)
def restored_alignment():
    yield
    set_mk_alignment_for_contiguous_layout(128)


def test_alignment_of_groups():
    assert get_mk_alignment_for_contiguous_layout() == 128
    set_mk_alignment_for_contiguous_layout(48)
    assert get_mk_alignment_for_contiguous_layout() == 48
    assert get_m_alignment_for_contiguous_layout() == get_k_alignment_for_contiguous_layout() == 48


@pytest.mark.parametrize("value", [0, -16, 8, 100, 128.0, "128", None, True])
def test_alignment_refuses_other_values(value: object):
    with pytest.raises(DeepGemmError, match="multiple of 16"):
        set_mk_alignment_for_contiguous_layout(value)
    assert get_mk_alignment_for_contiguous_layout() == 128


@pytest.mark.parametrize(
    ("arch_major", "expected_m", "expected"),
    [
        (None, None, 128),
        (None, 4, 128),
        (9, None, 128),
        (9, 40, 128),
        (10, None, 224),
        (10, 0, 32),
        (10, 1, 32),
        (10, 33, 64),
        (10, 192, 192),
        (10, 200, 224),
        (10, 5000, 224),
    ],
)
def test_theoretical_alignment(monkeypatch, arch_major: int | None, expected_m: int | None, expected: int):
    monkeypatch.setattr(alignment_module, "current_arch_major", lambda: arch_major)
    assert get_theoretical_mk_alignment_for_contiguous_layout(expected_m) == expected


def test_tma_aligned_size():
    assert [get_tma_aligned_size(x, 4) for x in (0, 1, 4, 5)] == [0, 4, 4, 8]
    assert get_tma_aligned_size(17, 1) == 32
    assert get_tma_aligned_size(9, 2) == 16
    assert get_tma_aligned_size(3, 16) == 3
    for element_size in (0, 3, 32):
        with pytest.raises(DeepGemmError):
            get_tma_aligned_size(4, element_size)


@pytest.mark.parametrize("shape", [(5, 3), (8, 2), (1, 4), (7, 1), (1, 1), (2, 5, 3), (1, 6, 2), (3, 4, 1)])
def test_mn_major_aligned_from_every_stride_form(shape: tuple[int, ...]):
    sf = torch.rand(shape)
    pitch = (shape[-2] + 3) // 4 * 4
    expected = (1, pitch) if len(shape) == 2 else (pitch * shape[-1], 1, pitch)
    for name, form in stride_forms(sf).items():
        aligned = get_mn_major_tma_aligned_tensor(form)
        assert torch.equal(aligned, sf), name
        assert aligned.stride() == expected, name
        assert aligned.data_ptr() % 16 == 0
        assert name != "aligned" or same_storage(aligned, form)
        again = get_mn_major_tma_aligned_tensor(aligned)
        assert again is aligned


def test_mn_major_aligned_takes_storage_that_ends_at_the_last_used_element():
    sf = torch.empty_strided((5, 3), (1, 8)).copy_(torch.rand(5, 3))
    assert sf.untyped_storage().nbytes() == (2 * 8 + 5) * 4
    assert get_mn_major_tma_aligned_tensor(sf) is sf


def test_mn_major_aligned_ignores_strides_of_extent_one():
    column = torch.rand(6, 1)
    aligned = get_mn_major_tma_aligned_tensor(column)
    assert same_storage(aligned, column) and aligned.stride() == (1, 8)
    group = torch.rand(4, 2, 8).transpose(-1, -2)[2:3]
    odd = group.as_strided(group.shape, (3, 1, 8), group.storage_offset())
    assert same_storage(get_mn_major_tma_aligned_tensor(odd), odd)


def test_mn_major_aligned_copies_from_a_misaligned_base():
    base = torch.rand(33)
    sf = base[1:].as_strided((8, 4), (1, 8), 1)
    aligned = get_mn_major_tma_aligned_tensor(sf)
    assert torch.equal(aligned, sf) and not same_storage(aligned, sf) and aligned.data_ptr() % 16 == 0


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 5, 3), (2, 0, 3), (2, 3, 0)])
def test_empty_factors(shape: tuple[int, ...]):
    assert get_mn_major_tma_aligned_tensor(torch.empty(shape)).shape == shape
    packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.empty(shape))
    assert packed.shape == (*shape[:-1], ceil_div(shape[-1], 4)) and packed.dtype == torch.int32


@pytest.mark.parametrize("shape", [(5, 3), (8, 4), (1, 9), (7, 1), (2, 5, 6), (1, 3, 8)])
def test_packed_from_every_stride_form(shape: tuple[int, ...]):
    sf = powers(*shape)
    words = ceil_div(shape[-1], 4)
    pitch = (shape[-2] + 3) // 4 * 4
    matrices = sf.tolist() if len(shape) == 3 else [sf.tolist()]
    expected = torch.tensor([python_words(m) for m in matrices], dtype=torch.int32).view(*shape[:-1], words)
    for name, form in stride_forms(sf).items():
        packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(form)
        assert torch.equal(packed, expected), name
        assert packed.stride() == ((1, pitch) if len(shape) == 2 else (pitch * words, 1, pitch))


def test_packed_codes_of_hard_values():
    """In range and zero; no power of two, NaN, infinity, negative; the least ones, one below, minus zero."""
    row = [1.0, 2.0, 0.0, 2.0**127]
    row += [3.0, math.nan, math.inf, -2.0]
    row += [2.0**-126, 2.0**-127, 2.0**-128, -0.0]
    packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.tensor([row]))
    codes = packed.contiguous().view(1, -1, 1).view(torch.uint8).flatten().tolist()
    assert codes == [127, 128, 0, 254, 255, 255, 255, 255, 1, 0, 255, 0]


def test_pitch_padding_of_packed_factors_is_zero():
    packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.ones(5, 8))
    whole = packed.as_strided((2, 8), (8, 1))
    assert whole.tolist() == [[0x7F7F7F7F] * 5 + [0] * 3] * 2


@pytest.mark.skipif(not hasattr(torch, "float8_e8m0fnu"), reason="this PyTorch has no UE8M0 dtype")
def test_pytorch_ue8m0_dtype_is_packed_by_its_bytes():
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(16, 16)
    packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(codes.view(torch.float8_e8m0fnu))
    assert torch.equal(packed.contiguous().view(torch.uint8), codes)


def test_packed_psum_rows_between_groups_are_not_read():
    """Groups of rows 0…4, none, 16…31, 32…34 at an alignment of 16; 40 rows."""
    set_mk_alignment_for_contiguous_layout(16)
    sf = torch.full((40, 6), math.nan)
    inside = [*range(0, 5), *range(16, 32), *range(32, 35)]
    sf[inside] = powers(len(inside), 6)
    packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(sf, torch.tensor([5, 5, 32, 35], dtype=torch.int32))
    outside = [row for row in range(40) if row not in inside]
    assert packed[inside].tolist() == python_words(sf[inside].tolist())
    assert (packed[outside] == 0).all()
    nothing = get_mn_major_tma_aligned_packed_ue8m0_tensor(sf, torch.empty(0, dtype=torch.int32))
    assert (nothing == 0).all()


@pytest.mark.parametrize("gran_k", [32, 128])
@pytest.mark.parametrize("ks", [[128, 256, 384], [512, 0, 128, 0], [0, 0], [33, 640]])
@pytest.mark.parametrize("mn", [1, 6])
def test_k_grouped_packing(ks: list[int], gran_k: int, mn: int):
    counts = [ceil_div(k, gran_k) for k in ks]
    sf = powers(sum(counts), mn)
    sizes = torch.tensor(ks, dtype=torch.int32)
    words, start = [], 0
    for count in counts:
        columns = sf[start : start + count].t().tolist()
        words += [list(row) for row in zip(*python_words(columns))]
        start += count
    packed = get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf, sizes, ks, gran_k, 128)
    assert packed.dtype == torch.int32 and packed.is_contiguous()
    assert packed.shape == (sum(ceil_div(k, 4 * gran_k) for k in ks), mn)
    assert packed.tolist() == words
    assert torch.equal(packed, get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf, sizes, ks, gran_k))
    for unknown in (None, []):
        from_gpu = get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf, sizes, unknown, gran_k, 128)
        assert from_gpu.shape == ((sum(counts) + 3 * len(ks)) // 4, mn)
        assert torch.equal(from_gpu[: len(words)], packed)


def test_k_grouped_packing_of_a_psum_layout():
    """Ends 100, 100 (empty), 384, 400 at an alignment of 64: sizes 100, 0, 256, 16; factors without gaps."""
    ks, ends = [100, 0, 256, 16], torch.tensor([100, 100, 384, 400], dtype=torch.int32)
    sf = powers(sum(ceil_div(k, 32) for k in ks), 5)
    plain = get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(
        sf, torch.tensor(ks, dtype=torch.int32), ks, 32, 64
    )
    for host_sizes in ([128, 0, 256, 64], None):
        packed = get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf, ends, host_sizes, 32, 64, True)
        assert torch.equal(packed[: plain.shape[0]], plain)


@pytest.mark.parametrize(
    "call",
    [
        lambda: get_mn_major_tma_aligned_tensor(torch.ones(4)),
        lambda: get_mn_major_tma_aligned_tensor(torch.ones(4, 4).half()),
        lambda: get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.ones(1, 1, 4, 4)),
        lambda: get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.ones(4, 4, dtype=torch.int32)),
        lambda: get_mn_major_tma_aligned_packed_ue8m0_tensor(torch.ones(1, 4, 4), torch.ones(1).int()),
    ],
)
def test_layout_functions_refuse(call):
    with pytest.raises(DeepGemmError, match="expected .* but got"):
        call()


@pytest.mark.parametrize(
    "changed",
    [
        {"sf": torch.ones(4)},
        {"sf": torch.ones(4, 4).half()},
        {"sf": torch.ones(5, 4)},
        {"grouped_layout": torch.tensor([512])},
        {"ks_cpu": [256, 256]},
        {"ks_cpu": [384]},
        {"ks_cpu": [-1]},
        {"gran_k": 64},
        {"k_alignment": 16},
        {"k_alignment": 0},
    ],
)
def test_k_grouped_packing_refuses(changed: dict[str, object]):
    sizes = torch.tensor([512], dtype=torch.int32)
    good = {"sf": torch.ones(4, 4), "grouped_layout": sizes, "ks_cpu": [512], "gran_k": 128}
    get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(**good)
    with pytest.raises(DeepGemmError, match="expected .* but got"):
        get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(**{**good, **changed})


def test_layout_functions_work_on_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        sf = torch.ones(5, 6)
        assert get_mn_major_tma_aligned_tensor(sf).stride() == (1, 8)
        packed = get_mn_major_tma_aligned_packed_ue8m0_tensor(sf)
        assert packed.shape == (5, 2) and packed.stride() == (1, 8)


def test_layout_functions_can_be_traced():
    def pack_both(sf: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return get_mn_major_tma_aligned_tensor(sf), get_mn_major_tma_aligned_packed_ue8m0_tensor(sf)

    traced = torch.compile(pack_both, backend="eager", fullgraph=True, dynamic=True)
    for shape in ((5, 6), (9, 3)):
        for got, want in zip(traced(powers(*shape)), pack_both(powers(*shape))):
            assert torch.equal(got, want) and got.stride() == want.stride()


@pytest.mark.gpu
def test_gpu_layouts_are_the_cpu_layouts():
    sf, sizes = powers(130, 6), torch.tensor([4000, 0, 160], dtype=torch.int32)
    for on_gpu, on_cpu in (
        (get_mn_major_tma_aligned_tensor(sf.cuda()), get_mn_major_tma_aligned_tensor(sf)),
        (
            get_mn_major_tma_aligned_packed_ue8m0_tensor(sf.cuda()),
            get_mn_major_tma_aligned_packed_ue8m0_tensor(sf),
        ),
        (
            get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf.cuda(), sizes.cuda(), None, 32),
            get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf, sizes, None, 32),
        ),
    ):
        assert torch.equal(on_gpu.cpu(), on_cpu) and on_gpu.stride() == on_cpu.stride()
