"""The README tells the truth: its program runs, its names exist, its table comes from the benchmarks' JSON."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import torch

import deep_gemm

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
sys.path.insert(0, str(ROOT / "scripts"))
import bench  # noqa: E402
import bench_readme  # noqa: E402
import dense_problems  # noqa: E402


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
BF16_ROW = {key: value for key, value in ROW.items() if key not in ("recipe", "vendor_us", "ratio")}
BF16_ROW.update(op="bf16_gemm_nn", out="float32", accumulate=True)
REPORT = {
    "name": "fp8_dense", "title": "Dense FP8", "device": "A GPU", "driver": "1", "cuda": "13.0", "torch": "2", "date": "today",
    "reference": "the vendor", "method": "profiler kernel time", "command": "python bench.py", "host_us": {"deep_gemm": 5},
    "geomean": {"1x128x128 bfloat16 M=64": 1.07}, "rows": [ROW, {**ROW, "baseline_ratio": 0.9}, BF16_ROW],
}  # fmt: skip


def test_the_table_is_made_from_json(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(README)
    bench_readme.update_readme(readme, [REPORT])
    once = readme.read_text()
    assert "| (1, 128, 128) bfloat16 | 64 | 4096 x 7168 | 12.3 | 13.2 | 305 | 1.07x |  |" in once
    assert "| 0.90x |" in once
    assert "| nn float32, accumulate | 64 | 4096 x 7168 | 12.3 |  | 305 |  |  |" in once
    bench_readme.update_readme(readme, [REPORT])
    assert readme.read_text() == once
    assert once.partition(bench_readme.BEGIN)[0] == README.partition(bench_readme.BEGIN)[0]
    assert once.partition(bench_readme.END)[2] == README.partition(bench_readme.END)[2]


def test_grouped_rows_have_a_table_of_their_own():
    row = {"kind": "masked", "dtype": "bf16", "layout": "nt", "groups": 32, "m": 4096, "n": 4096, "k": 2048, "expected_m": 192,
           "us": 200.04, "tflops": 500.2, "dense_tflops": 1430.0}  # fmt: skip
    head = {key: REPORT[key] for key in ("title", "device", "driver", "cuda", "torch", "date", "reference", "method", "command")}
    text = "\n".join(bench_readme.table({**head, "rows": [row, {**row, "expected_m": 0, "baseline_us": 207.0}]}))
    assert "| bf16 nt masked | 32 x about 192 | 4096 x 2048 | 200.0 | 500 | 1430 |  |" in text
    assert "| bf16 nt masked | 32 in 4096 | 4096 x 2048 | 200.0 | 500 | 1430 | 207 |" in text


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
    assert (ROOT / bench_readme.PAGE).read_text() == bench_readme.page(reports)


def test_shape_files_hold_the_rows_of_the_contract():
    cases = bench.read_cases(bench.SHAPES, None)
    dense = [case for case in cases if case.recipe == (1, 128, 128)]
    assert len(dense) == 7 * 5 and {case.m for case in dense} == {1, 64, 128, 512, 4096}
    assert bench.Case("fp8_gemm_nt", "float32", True, 4096, 4096, 7168, (1, 1, 128)) in cases
    assert {case.m for case in bench.read_cases(bench.SHAPES, [1])} == {1}
    cases = bench.read_cases(ROOT / "scripts" / "shapes" / "bf16_dense.json", None)
    assert len(cases) == len(set(cases)) == 75 + 1 and {case.layout for case in cases} == {"nt", "nn", "tn", "tt"}


def test_floor():
    case = bench.Case("fp8_gemm_nt", "bfloat16", False, 1, 4096, 7168, (1, 128, 128))
    assert case.floor_us() == pytest.approx(4096 * 7168 / 4.2e6 + 2, rel=0.01)
    case = bench.Case("bf16_gemm_nt", "bfloat16", False, 1, 4096, 7168)
    assert case.floor_us() == pytest.approx(2 * 4096 * 7168 / 4.2e6 + 2, rel=0.01)


def test_baseline_rows_are_found(tmp_path):
    path = tmp_path / "other.csv"
    head = "op,dtype,recipe,layout,out,accumulate,groups,m,n,k,us,speed_vs_cublaslt_same_run"
    rows = ("dense,fp8,1D1D,NT,FP32,1,,4096,4096,7168,1,0.75", "dense,bf16,,TN,FP32,1,,256,4096,7168,31.8,0.95", "masked,fp8,1D2D,NT,BF16,0,4,,1,1,1,")
    path.write_text("\n".join((head, *rows)) + "\n")
    fp8 = bench.Case("fp8_gemm_nt", "float32", True, 4096, 4096, 7168, (1, 1, 128))
    bf16 = bench.Case("bf16_gemm_tn", "float32", True, 256, 4096, 7168)
    found = bench.read_baseline(path)
    assert found == {fp8.baseline_key(): bench.Baseline(1, 0.75), bf16.baseline_key(): bench.Baseline(31.8, 0.95)}
    assert bench.read_baseline(None) == {}
    row = {"ratio": 1.0}
    bench.add_baseline(row, found[bf16.baseline_key()])
    assert row == {"ratio": 1.0, "baseline_us": 31.8, "baseline_ratio": 0.95}
    assert bench.geomeans([bf16, fp8], [row, {"ratio": 4.0}])["all rows"] == 2 and bench.geomeans([bf16, fp8], [row, {}])["rows of the baseline"] == 1


SMALL = [bench.Case("fp8_gemm_nt", "float32", True, 40, 136, 256, (1, 1, 128))] + [
    bench.Case(f"bf16_gemm_{layout}", out, out == "float32", 40, 136, 72)
    for layout in ("nt", "nn", "tn", "tt")
    for out in ("bfloat16", "float32")
]


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_operands_are_those_of_the_call(case, monkeypatch):
    """On the CPU the reference computes what would be timed; a wrong result is refused by `make_operands` itself."""
    monkeypatch.setattr(dense_problems, "DEVICE", "cpu")
    operands = bench.make_operands(case)
    calls = bench.contenders(case, operands)
    operands.d.zero_()
    calls["deep_gemm"]()
    if case.out == "bfloat16":
        assert float(deep_gemm.calc_diff(operands.d, calls["vendor"]())) < 1e-5
    elif case.dtype == "bf16":
        assert "vendor" not in calls  # PyTorch has these products on a GPU alone
    wrong = dense_problems.Operands(operands.a, operands.b, operands.d)
    with pytest.raises(RuntimeError, match="difference"):
        dense_problems.check_accuracy(case, wrong, torch.ones(case.m, case.k), torch.ones(case.n, case.k))


def test_lines_for_the_terminal():
    row = {"us": 10.0, "tflops": 1.0, "floor_us": 9.0}
    assert "no vendor" in bench.line_of(SMALL[1], row)
    assert "0.500x  baseline     15.0 us 0.95x" in bench.line_of(
        SMALL[1], {**row, "vendor_us": 5.0, "ratio": 0.5, "baseline_us": 15.0, "baseline_ratio": 0.95}
    )


def test_trace_is_split_by_its_flushes():
    from deep_gemm.cli.timing import split_by_flush

    trace = [("warm", 9.0), ("fill", 1.0), ("a", 2.0), ("a", 3.0), ("fill", 1.0), ("b", 4.0), ("fill", 1.0)]
    assert split_by_flush(trace, "fill") == [5.0, 4.0, 0.0]
