"""The BF16 grouped GEMMs of the Triton releases: today's products by their older names, rows of A gathered."""

import pytest
import torch

import deep_gemm
from deep_gemm import legacy
from deep_gemm.testing import assert_bitwise_equal

BF16 = torch.bfloat16
EXPERTS = torch.tensor([1] * 70 + [-1] * 58 + [0] * 100, dtype=torch.int32)


def operands(layout):
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(60, 40, generator=generator).to(BF16), torch.randn(2, 24, 40, generator=generator).to(BF16)
    return a, b if layout == "nt" else b.transpose(1, 2).contiguous(), torch.full((228, 24), 7.0, dtype=BF16)


@pytest.mark.parametrize("layout", ["nt", "nn"])
def test_older_names(layout):
    a, b, d = operands(layout)
    rows, expected = a.repeat(4, 1)[:228].contiguous(), torch.empty_like(d)
    getattr(deep_gemm, f"m_grouped_bf16_gemm_{layout}_contiguous")(rows, b, expected, EXPERTS)
    getattr(legacy, f"m_grouped_bf16_gemm_{layout}_contiguous_tl")(rows, b, d, EXPERTS)
    assert_bitwise_equal(d, expected, layout)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("layout", ["nt", "nn"])
def test_gathered_rows(layout, dtype):
    a, b, d = operands(layout)
    rows = torch.randint(-1, 60, (228,), generator=torch.Generator().manual_seed(1)).to(dtype)
    getattr(legacy, f"a_fused_m_grouped_bf16_gemm_{layout}_contiguous_tl")(a, b, d, (EXPERTS, rows))
    weights = b if layout == "nt" else b.transpose(1, 2)
    for i in range(228):
        if EXPERTS[i] < 0 or rows[i] < 0:
            assert not bool(d[i].any())
        else:
            want = a[rows[i]].double() @ weights[EXPERTS[i]].double().t()
            torch.testing.assert_close(d[i].double(), want, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"mappings": EXPERTS}, "mappings: expected a pair"),
        ({"mappings": (EXPERTS, EXPERTS.float())}, "m_row_indices: expected dtype"),
        ({"mappings": (EXPERTS, EXPERTS[None])}, "m_row_indices: expected a tensor of rank 1"),
        ({"mappings": (EXPERTS, EXPERTS[:-1])}, "expected"),
        ({"mappings": (EXPERTS.long(), EXPERTS)}, "grouped_layout: expected dtype"),
        ({"a": torch.zeros(60, dtype=BF16)}, "a: expected a tensor of rank 2"),
        ({"a": torch.zeros(60, 40)}, "a: expected dtype"),
    ],
)
def test_refused_by_name_and_untouched(change, words):
    a, b, d = operands("nt")
    call = {"a": a, "b": b, "d": d, "mappings": (EXPERTS, EXPERTS), **change}
    with pytest.raises(deep_gemm.DeepGemmError, match=words):
        legacy.a_fused_m_grouped_bf16_gemm_nt_contiguous_tl(**call)
    assert bool((d == 7.0).all())
