"""What of the benchmark of GEMMs grouped along K can be wrong without a GPU: its rows, its draws, its operands, its floor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import deep_gemm

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import bench_k_grouped  # noqa: E402

CASES = bench_k_grouped.read_cases(bench_k_grouped.SHAPES, None)


def test_shape_file():
    assert len(CASES) == len(set(CASES)) == 2 * 6 and len(bench_k_grouped.read_cases(bench_k_grouped.SHAPES, "fp8")) == 6
    assert {case.groups for case in CASES} == {4, 8, 16}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_sizes_add_up(case, seed):
    sizes = case.sizes(torch.Generator().manual_seed(seed))
    assert len(sizes) == case.groups and min(sizes) >= 128 and sum(sizes) == case.k and not any(k % 128 for k in sizes)


def test_operands_are_what_the_function_takes():
    torch.manual_seed(0)
    ks = [128, 384]
    x, y = torch.randn(512, 24).bfloat16(), torch.randn(512, 40).bfloat16()
    d = torch.zeros(2, 24, 40)
    layout = torch.tensor(ks, dtype=torch.int32)
    deep_gemm.k_grouped_fp8_gemm_nt_contiguous(bench_k_grouped.matrices(x, ks), bench_k_grouped.matrices(y, ks), d, ks, layout)
    for got, p, q in zip(d, x.split(ks), y.split(ks)):
        assert float(deep_gemm.calc_diff(got, p.float().t() @ q.float())) < 1e-3


def test_floor_and_baseline(tmp_path):
    case = bench_k_grouped.Case("fp8", 4, 4096, 7168, 28416)
    assert case.floor_us() == pytest.approx(2 * 4096 * 7168 * 28416 / 1.5e9 + 2)
    path = tmp_path / "other.csv"
    path.write_text("op,dtype,groups,m,n,k,psum,us\nk_grouped,fp8,4,4096,7168,28416,0,1665\nk_grouped,fp8,4,4096,7168,28416,1,7\ndense,fp8,,1,1,1,,2\n")
    assert bench_k_grouped.read_baseline(path) == {case: 1665.0}
