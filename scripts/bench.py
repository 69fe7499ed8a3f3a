"""Kernel time of this library beside the vendor's, over a file of shapes, as JSON.

    python scripts/bench.py                                       # docs/benchmarks/fp8_dense.json
    python scripts/bench.py --shapes scripts/shapes/bf16_dense.json
    python scripts/bench.py --m 128 --rounds 100 --out -          # a part of it, to the terminal
    python scripts/bench.py --baseline other.csv                  # with another library's times beside ours
    python scripts/bench.py --readme docs/benchmarks/fp8_dense.json

Operands are normal noise, quantised where they are FP8. L2 is flushed before every launch, the contenders alternate, and a
time is the median over the rounds of the kernel time that the profiler saw. References: for FP8 `torch._scaled_mm` with one
factor a tensor and BF16 out, which does less work, for it has no block factors; for BF16 `torch.matmul` (`torch.addmm` where
C is added), for FP32 out the same with `out_dtype`. Ratios compare only within one run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional

import torch

import deep_gemm
from deep_gemm.cli.timing import kernel_times

sys.path.insert(0, str(Path(__file__).resolve().parent))
import planners  # noqa: E402
from bench_readme import PAGE, page, update_readme  # noqa: E402
from dense_problems import Baseline, Case, contenders, make_operands, read_baseline, read_cases  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
SHAPES = ROOT / "scripts" / "shapes" / "fp8_dense.json"
REFERENCES = {
    "fp8": "torch._scaled_mm, one factor a tensor, BF16 out",
    "bf16": "torch.matmul; torch.addmm where C is added; with out_dtype where D is FP32",
}


def measure(case: Case, rounds: int) -> Dict[str, Any]:
    """The JSON row of one case."""
    samples = kernel_times(contenders(case, make_operands(case)), rounds)
    ours = statistics.median(samples["deep_gemm"])
    row = {
        "op": case.op, "out": case.out, "accumulate": case.accumulate,
        **({"recipe": list(case.recipe)} if case.recipe else {}),
        "m": case.m, "n": case.n, "k": case.k, "us": round(ours, 2),
        "best_us": round(min(samples["deep_gemm"]), 2), "floor_us": round(case.floor_us(), 1),
        "tflops": round(2 * case.m * case.n * case.k / ours / 1e6, 1),
    }  # fmt: skip
    if "vendor" in samples:
        vendor = statistics.median(samples["vendor"])
        row.update(vendor_us=round(vendor, 2), ratio=round(vendor / ours, 3))
    return row


def host_time_us(call: Callable[[], object], batch: int = 200, batches: int = 30) -> float:
    """Median host time of a steady call, in microseconds: batches short enough that the launch queue never fills."""
    times = []
    for _ in range(batches):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch * 1e6)
    return statistics.median(times)


def measure_host(dtype: str) -> Dict[str, float]:
    """Host microseconds of a small call: ours and the vendor's."""
    recipe = (1, 128, 128) if dtype == "fp8" else None
    case = Case(f"{dtype}_gemm_nt", "bfloat16", False, 64, 576, 512, recipe)
    calls = contenders(case, make_operands(case))
    return {name: round(host_time_us(call), 2) for name, call in calls.items()}


def driver_version() -> str:
    """The driver's version as its own tool says it, or "unknown"."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def command_of(argv: List[str]) -> str:
    """The command as another machine would give it: without the place of the report, and files outside of here by name."""
    words = list(argv)
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    if "--baseline" in words:
        at = words.index("--baseline") + 1
        words[at] = Path(words[at]).name
    return shlex.join(["python", *words])


def environment(shapes: Path, reference: str) -> Dict[str, Any]:
    """What the numbers depend on."""
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": json.loads(shapes.read_text())["name"],
        "title": json.loads(shapes.read_text())["title"],
        "device": properties.name,
        "sms": properties.multi_processor_count,
        "driver": driver_version(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "version": deep_gemm.__version__,
        "command": command_of(sys.argv),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "method": "profiler kernel time, median, L2 flushed before each launch, contenders alternated",
        "reference": reference,
    }


def geomeans(cases: Iterable[Case], rows: Iterable[Dict[str, Any]]) -> Dict[str, float]:
    """Geometric mean of the ratio, for every kind of row and M, of all rows, and of those that the baseline has."""
    groups: Dict[str, List[float]] = {}
    for case, row in zip(cases, rows):
        if "ratio" not in row:
            continue
        keys = [f"{case.kind()} M={case.m}", "all rows"] + ["rows of the baseline"] * ("baseline_us" in row)
        for key in keys:
            groups.setdefault(key, []).append(row["ratio"])
    return {key: round(math.exp(statistics.mean(map(math.log, ratios))), 3) for key, ratios in groups.items()}


def add_baseline(row: Dict[str, Any], baseline: Optional[Baseline]) -> None:
    """Sets another library's figures beside ours."""
    if baseline is None:
        return
    row["baseline_us"] = baseline.us
    if baseline.ratio is not None:
        row["baseline_ratio"] = baseline.ratio


def line_of(case: Case, row: Dict[str, Any]) -> str:
    """One row for the terminal."""
    vendor = f"vendor {row['vendor_us']:8.2f} us {row['ratio']:.3f}x" if "ratio" in row else f"{'no vendor':25}"
    baseline = f"  baseline {row['baseline_us']:8.1f} us" if "baseline_us" in row else ""
    baseline += f" {row['baseline_ratio']:.2f}x" if "baseline_ratio" in row else ""
    shape = f"{case.m:6d} {case.n:6d} {case.k:6d}  {case.kind():20}"
    return f"{shape} {row['us']:9.2f} us {row['tflops']:7.1f} TFLOPS  floor {row['floor_us']:7.1f} us  {vendor}{baseline}"


def run(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Measures every case of the shape file."""
    baseline, rows = read_baseline(arguments.baseline), []
    cases = read_cases(arguments.shapes, arguments.m)
    if not cases:
        raise SystemExit(f"{arguments.shapes}: no rows of M {arguments.m}")
    arch = planners.current_arch()
    planners.build(((case.dtype, planners.pick(case.shape(), arch)["config"]) for case in cases), arch, arguments.jobs)
    for case in cases:
        row = measure(case, arguments.rounds)
        add_baseline(row, baseline.get(case.baseline_key()))
        print(line_of(case, row), file=sys.stderr, flush=True)
        rows.append(row)
        torch.cuda.empty_cache()
    dtype = cases[0].dtype
    named = {"baseline": arguments.baseline.stem} if baseline else {}
    figures = {"host_us": measure_host(dtype), "geomean": geomeans(cases, rows)}
    print(json.dumps(figures, indent=2), file=sys.stderr)
    return {**environment(arguments.shapes, REFERENCES[dtype]), **named, **figures, "rows": rows}


def parse_arguments() -> argparse.Namespace:
    """The options of this script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=SHAPES, help="shape file (default: %(default)s)")
    parser.add_argument("--m", type=int, action="append", help="only this M; may be repeated")
    parser.add_argument("--rounds", type=int, default=30, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--baseline", type=Path, help="CSV of another library's times and ratios to the same reference")
    parser.add_argument("--jobs", type=int, default=planners.default_jobs(), help="threads that compile (default: %(default)s)")
    parser.add_argument("--out", default="", help="JSON file, - for the terminal (default: docs/benchmarks/<name>.json)")
    parser.add_argument("--readme", type=Path, nargs="+", help="rewrite the tables of README.md and docs/benchmarks from these JSON files, and stop")
    return parser.parse_args()


def main() -> int:
    """Benches, or rewrites the README with --readme."""
    arguments = parse_arguments()
    if arguments.readme:
        reports = [json.loads(path.read_text()) for path in arguments.readme]
        update_readme(ROOT / "README.md", reports)
        (ROOT / PAGE).write_text(page(reports))
        return 0
    if not torch.cuda.is_available():
        print("No GPU here: nothing to time. Kernel times need one; `python -m deep_gemm demo` runs on the CPU.")
        return 0
    report = json.dumps(run(arguments), indent=2) + "\n"
    if arguments.out == "-":
        print(report)
        return 0
    name = json.loads(arguments.shapes.read_text())["name"]
    path = Path(arguments.out) if arguments.out else ROOT / "docs" / "benchmarks" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
