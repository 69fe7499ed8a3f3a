"""What of the grouped benchmark can be wrong without a GPU: its rows, its draws, its operands, its floor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import bench_grouped  # noqa: E402
import dense_problems  # noqa: E402
import grouped_problems  # noqa: E402
import planners  # noqa: E402
from grouped_problems import Case, Problem  # noqa: E402

CASES = grouped_problems.read_cases(bench_grouped.SHAPES)
SMALL = [
    Case("fp8", "nt", 3, 640, 136, 256),
    Case("fp8", "nt", 3, 96, 136, 256, expected_m=50),
    Case("bf16", "nt", 3, 640, 136, 256),
    Case("bf16", "nn", 3, 640, 136, 256),
    Case("bf16", "nt", 3, 96, 136, 256, expected_m=50),
]


def test_shape_file():
    assert len(CASES) == len(set(CASES)) == 24 + 20
    assert {case.expected_m for case in CASES if case.kind == "masked"} == {20, 192, 1024}
    assert {case.groups for case in CASES if case.kind == "contiguous"} == {4, 8}
    assert {case.layout for case in grouped_problems.read_cases(bench_grouped.SHAPES, "bf16")} == {"nt", "nn"}


@pytest.mark.parametrize("case", [case for case in CASES if not case.expected_m][::3], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_contiguous_groups_fill_m(case, seed):
    blocks = grouped_problems.group_blocks(case, 128, torch.Generator().manual_seed(seed))
    assert len(blocks) == case.groups and min(blocks) >= 1
    assert sum(blocks) * 128 == case.m
    counts = grouped_problems.row_counts(case, seed)
    assert grouped_problems.places_of(counts).rows == case.m and min(counts) >= 1


def test_counts_spread_around_their_mean():
    counts = grouped_problems.spread(192, 1000, torch.Generator().manual_seed(0))
    assert min(counts) >= 134 and max(counts) <= 250 and abs(sum(counts) / 1000 - 192) < 5


def test_ids_and_ends_describe_the_same_groups():
    places = grouped_problems.places_of([5, 128, 129])
    assert places == grouped_problems.Places((0, 128, 256), (5, 256, 385), 512)
    ids = grouped_problems.ids_of(places)
    assert [int((ids == group).sum()) for group in (-1, 0, 1, 2)] == [512 - 262, 5, 128, 129]


def test_floor_and_baseline(tmp_path):
    case = Case("fp8", "nt", 32, 4096, 6144, 7168, 20)
    assert case.floor_us(640) == pytest.approx(32 * 6144 * 7168 / 4.2e6 + 2, rel=0.02)
    path = tmp_path / "other.csv"
    head = "op,dtype,layout,groups,m,n,k,expected_m,psum,us"
    rows = ("m_grouped_masked,fp8,NT,32,,6144,7168,20,0,356", "m_grouped_masked,fp8,NT,32,,6144,7168,20,1,369", "dense,fp8,NT,,1,1,1,,,2")
    path.write_text("\n".join((head, *rows)) + "\n")
    assert grouped_problems.read_baseline(path) == {case.baseline_key("masked"): 356.0, case.baseline_key("psum"): 369.0}


@pytest.mark.parametrize("case", SMALL, ids=str)
@pytest.mark.parametrize("own", [True, False], ids=["own layout", "ends"])
def test_operands_are_those_of_the_call(case, own, monkeypatch):
    """The CPU's reference runs the call that the benchmark times; the problem itself refuses a wrong result."""
    monkeypatch.setattr(dense_problems, "DEVICE", "cpu")
    kind = case.kind if own else "psum"
    if not grouped_problems.supported(case, kind):
        pytest.skip(f"{case.op(kind)} runs nowhere yet")
    timed = Problem(case).timed(kind)
    timed.call()
    assert timed.rows > 0 and planners.pick(timed.shape, {})["grid"] > 0


def test_a_wrong_result_is_refused(monkeypatch):
    monkeypatch.setattr(dense_problems, "DEVICE", "cpu")
    problem = Problem(SMALL[1])
    problem.weights.reverse()
    with pytest.raises(RuntimeError, match="difference"):
        problem.timed("masked")


def test_rows_hold_the_clock_of_their_run(monkeypatch, capsys):
    monkeypatch.setattr(dense_problems, "DEVICE", "cpu")
    monkeypatch.setattr(bench_grouped, "kernel_times", lambda calls, rounds, warmups: {name: [200.0, 100.0, 300.0] for name in calls})
    rows = bench_grouped.measure(SMALL[1], ["masked", "psum"], 3, lambda: None)
    assert [row["kind"] for row in rows] == ["masked", "psum"] and {row["us"] for row in rows} == {200.0}
    assert rows[0]["dense_tflops"] == pytest.approx(2 * 4096 * 4096 * 7168 / 200e6, rel=1e-3)
    assert "masked      3 x     50" in bench_grouped.line_of(rows[0]) and "0.500x" in bench_grouped.line_of({**rows[0], "baseline_us": 100.0})
