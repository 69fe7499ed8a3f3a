"""The README tells the truth: its program runs, its names exist, its table comes from the benchmarks' JSON."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import deep_gemm

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
sys.path.insert(0, str(ROOT / "scripts"))
import bench  # noqa: E402
import bench_readme  # noqa: E402


def test_the_start_runs_on_the_cpu():
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert program.count("\n") <= 21
    for there, here in (('"cuda"', '"cpu"'), ("4096", "256"), ("7168", "512"), ("128,", "16,")):
        program = program.replace(there, here)
    names: dict = {}
    exec(compile(program, "README.md", "exec"), names)
    expected = 2 * (names["x"].double() @ names["w"].double().t())
    assert names["d"].shape == (16, 256)
    assert float(deep_gemm.calc_diff(2 * names["d"], expected)) < 1e-3


def test_the_paths_it_names_exist():
    paths = re.findall(r"`((?:csrc|include|deep_gemm|tests|docs|scripts)/[\w./]*)`", README)
    assert len(paths) >= 8
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_support_matrix_is_the_table():
    for op in deep_gemm.ops.table.OPS:
        if op.archs:
            assert op.name.rsplit("_", 1)[0] in README


ROW = {
    "op": "fp8_gemm_nt", "recipe": [1, 128, 128], "out": "bfloat16", "accumulate": False, "m": 64, "n": 4096, "k": 7168,
    "us": 12.34, "vendor_us": 13.2, "ratio": 1.07, "best_us": 12.0, "floor_us": 9.0, "tflops": 304.6,
}  # fmt: skip
REPORT = {
    "title": "Dense FP8", "device": "A GPU", "driver": "1", "cuda": "13.0", "torch": "2", "date": "today",
    "reference": "the vendor", "method": "profiler kernel time", "command": "python bench.py", "host_us": {"deep_gemm": 5},
    "geomean": {"1x128x128 bfloat16 M=64": 1.07}, "rows": [ROW, {**ROW, "baseline_ratio": 0.9}],
}  # fmt: skip


def test_the_table_is_made_from_json(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(README)
    bench_readme.update_readme(readme, [REPORT])
    once = readme.read_text()
    assert "| (1, 128, 128) bfloat16 | 64 | 4096 x 7168 | 12.3 | 13.2 | 305 | 1.07x |  |" in once
    assert "| 0.90x |" in once
    bench_readme.update_readme(readme, [REPORT])
    assert readme.read_text() == once
    assert once.partition(bench_readme.BEGIN)[0] == README.partition(bench_readme.BEGIN)[0]
    assert once.partition(bench_readme.END)[2] == README.partition(bench_readme.END)[2]


def test_a_readme_without_markers_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("no markers")
    with pytest.raises(ValueError, match="markers"):
        bench_readme.update_readme(tmp_path / "README.md", [REPORT])


def test_the_committed_table_is_that_of_the_committed_figures(tmp_path):
    reports = [json.loads(path.read_text()) for path in sorted((ROOT / "docs" / "benchmarks").glob("*.json"))]
    if not reports:
        assert "No figures yet." in README
        return
    copy = tmp_path / "README.md"
    copy.write_text(README)
    bench_readme.update_readme(copy, reports)
    assert copy.read_text() == README


def test_shape_file_holds_the_rows_of_the_contract():
    cases = bench.read_cases(bench.SHAPES, None)
    dense = [case for case in cases if case.recipe == (1, 128, 128)]
    assert len(dense) == 7 * 5 and {case.m for case in dense} == {1, 64, 128, 512, 4096}
    assert bench.Case("fp8_gemm_nt", (1, 1, 128), "float32", True, 4096, 4096, 7168) in cases
    assert {case.m for case in bench.read_cases(bench.SHAPES, [1])} == {1}


def test_floor():
    case = bench.Case("fp8_gemm_nt", (1, 128, 128), "bfloat16", False, 1, 4096, 7168)
    assert case.floor_us() == pytest.approx(4096 * 7168 / 4.2e6 + 2, rel=0.01)


def test_baseline_rows_are_found(tmp_path):
    path = tmp_path / "other.csv"
    head = "op,dtype,recipe,layout,out,accumulate,groups,m,n,k,us,speed_vs_cublaslt_same_run"
    path.write_text(f"{head}\ndense,fp8,1D1D,NT,FP32,1,,4096,4096,7168,1,0.75\nmasked,fp8,1D2D,NT,BF16,0,4,,1,1,1,\n")
    case = bench.Case("fp8_gemm_nt", (1, 1, 128), "float32", True, 4096, 4096, 7168)
    assert bench.read_baseline(path) == {case.baseline_key(): 0.75}
    assert bench.read_baseline(None) == {}


def test_trace_is_split_by_its_flushes():
    from deep_gemm.cli.timing import split_by_flush

    trace = [("warm", 9.0), ("fill", 1.0), ("a", 2.0), ("a", 3.0), ("fill", 1.0), ("b", 4.0), ("fill", 1.0)]
    assert split_by_flush(trace, "fill") == [5.0, 4.0, 0.0]
