"""What of the grouped benchmark can be wrong without a GPU: its rows, its draws, its floor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import bench_grouped  # noqa: E402

CASES = bench_grouped.read_cases(bench_grouped.SHAPES, None)


def test_shape_file():
    assert len(CASES) == len(set(CASES)) == 8 + 16
    assert {case.expected_m for case in bench_grouped.read_cases(bench_grouped.SHAPES, "masked")} == {20, 192, 1024}
    assert {case.groups for case in bench_grouped.read_cases(bench_grouped.SHAPES, "contiguous")} == {4, 8}


@pytest.mark.parametrize("case", [case for case in CASES if not case.expected_m], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_contiguous_groups_fill_m(case, seed):
    blocks = bench_grouped.group_blocks(case, 128, torch.Generator().manual_seed(seed))
    assert len(blocks) == case.groups and min(blocks) >= 1
    assert sum(blocks) * 128 == case.m


def test_counts_spread_around_their_mean():
    counts = bench_grouped.spread(192, 1000, torch.Generator().manual_seed(0))
    assert min(counts) >= 134 and max(counts) <= 250 and abs(sum(counts) / 1000 - 192) < 5


def test_floor_and_baseline(tmp_path):
    case = bench_grouped.Case(32, 4096, 6144, 7168, 20)
    assert case.floor_us(640) == pytest.approx(32 * 6144 * 7168 / 4.2e6 + 2, rel=0.02)
    path = tmp_path / "other.csv"
    head = "op,dtype,groups,m,n,k,expected_m,psum,us"
    path.write_text(f"{head}\nm_grouped_masked,fp8,32,,6144,7168,20,0,356\nm_grouped_masked,fp8,32,,6144,7168,20,1,1\ndense,fp8,,1,1,1,,,2\n")
    assert bench_grouped.read_baseline(path) == {case.baseline_key(): 356.0}
