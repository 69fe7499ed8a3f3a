"""Kernel time of this library beside the vendor's, over a file of shapes, as JSON.

    python scripts/bench.py                                # docs/benchmarks/fp8_dense.json
    python scripts/bench.py --m 128 --rounds 100 --out -   # a part of it, to the terminal
    python scripts/bench.py --baseline other.csv           # with another library's ratio beside ours
    python scripts/bench.py --readme docs/benchmarks/fp8_dense.json

Operands are quantised from normal noise, L2 is flushed before every launch, the contenders alternate, and a time is the
median over the rounds of the kernel time that the profiler saw. The reference is `torch._scaled_mm` with one factor a tensor
and BF16 out, which does less work: it has no block factors. Ratios compare only within one run.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import math
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch

import deep_gemm
from deep_gemm.cli.timing import kernel_times
from deep_gemm.testing import calc_diff

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bench_readme import update_readme  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
SHAPES = ROOT / "scripts" / "shapes" / "fp8_dense.json"
BYTES_PER_US, FLOP_PER_US, LAUNCH_US = 4.2e6, 1.5e9, 2.0  # ceilings of an H200, for the floor column


@dataclass(frozen=True)
class Case:
    """One row: an operation, its recipe and output, and a shape."""

    op: str
    recipe: Tuple[int, int, int]
    out: str
    accumulate: bool
    m: int
    n: int
    k: int

    def floor_us(self) -> float:
        """The time below which no kernel of this shape can go: memory or math, plus a launch."""
        out_bytes = getattr(torch, self.out).itemsize * (2 if self.accumulate else 1)
        moved = (self.m + self.n) * self.k + self.m * self.n * out_bytes
        return max(moved / BYTES_PER_US, 2 * self.m * self.n * self.k / FLOP_PER_US) + LAUNCH_US

    def baseline_key(self) -> Tuple[Any, ...]:
        """How a baseline file names this row."""
        scaling = "1D2D" if self.recipe[1] == 128 else "1D1D"
        out = {"bfloat16": "BF16", "float32": "FP32"}[self.out]
        return ("dense", "fp8", scaling, "NT", out, int(self.accumulate), self.m, self.n, self.k)


@dataclass
class Operands:
    """The tensors of one case."""

    a: Tuple[torch.Tensor, torch.Tensor]
    b: Tuple[torch.Tensor, torch.Tensor]
    d: torch.Tensor


def read_cases(path: Path, wanted_m: Optional[List[int]]) -> List[Case]:
    """The rows of a shape file, cut to `wanted_m` if given."""
    cases = []
    for group in json.loads(path.read_text())["cases"]:
        for m in group["m"]:
            for n, k in group["nk"]:
                if not wanted_m or m in wanted_m:
                    head = (group["op"], tuple(group["recipe"]), group["out"], group["accumulate"])
                    cases.append(Case(*head, m, n, k))
    return cases


def make_operands(case: Case) -> Operands:
    """Normal noise, quantised as the recipe says; factors of A in the layout the kernel reads best."""
    torch.manual_seed(0)
    x = torch.randn(case.m, case.k, device="cuda", dtype=torch.bfloat16)
    y = torch.randn(case.n, case.k, device="cuda", dtype=torch.bfloat16)
    data, factors = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    a = (data, deep_gemm.get_mn_major_tma_aligned_tensor(factors))
    cast = deep_gemm.per_block_cast_to_fp8 if case.recipe[1] == 128 else deep_gemm.per_token_cast_to_fp8
    data, factors = cast(y, use_ue8m0=False)
    b = (data, factors if case.recipe[1] == 128 else deep_gemm.get_mn_major_tma_aligned_tensor(factors))
    d = torch.zeros(case.m, case.n, device="cuda", dtype=getattr(torch, case.out))
    check_accuracy(case, Operands(a, b, d), x.double() @ y.double().t())
    return Operands(a, b, d)


def check_accuracy(case: Case, operands: Operands, exact: torch.Tensor) -> None:
    """A wrong kernel has no speed: refuses to time one whose error FP8 does not explain."""
    deep_gemm.fp8_gemm_nt(operands.a, operands.b, operands.d, recipe=case.recipe)
    diff = float(calc_diff(operands.d, exact))
    if not diff < 1e-3:
        raise RuntimeError(f"{case}: difference {diff:.2e} to the product of the inputs, expected below 1e-3")


def contenders(case: Case, operands: Operands) -> Dict[str, Callable[[], object]]:
    """name -> call. Ours, and the vendor's product of the same extents."""
    a, b, d = operands.a, operands.b, operands.d
    c = d if case.accumulate else None
    one = torch.ones((), device="cuda")

    def ours() -> None:
        deep_gemm.fp8_gemm_nt(a, b, d, c=c, recipe=case.recipe)

    def vendor() -> torch.Tensor:
        return torch._scaled_mm(a[0], b[0].t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    return {"deep_gemm": ours, "vendor": vendor}


def measure(case: Case, rounds: int) -> Dict[str, Any]:
    """The JSON row of one case."""
    samples = kernel_times(contenders(case, make_operands(case)), rounds)
    ours, vendor = (statistics.median(samples[name]) for name in ("deep_gemm", "vendor"))
    return {
        "op": case.op, "recipe": list(case.recipe), "out": case.out, "accumulate": case.accumulate,
        "m": case.m, "n": case.n, "k": case.k,
        "us": round(ours, 2), "vendor_us": round(vendor, 2), "ratio": round(vendor / ours, 3),
        "best_us": round(min(samples["deep_gemm"]), 2), "floor_us": round(case.floor_us(), 1),
        "tflops": round(2 * case.m * case.n * case.k / ours / 1e6, 1),
    }  # fmt: skip


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


def measure_host() -> Dict[str, float]:
    """Host microseconds of a small call: ours and the vendor's."""
    case = Case("fp8_gemm_nt", (1, 128, 128), "bfloat16", False, 64, 576, 512)
    calls = contenders(case, make_operands(case))
    return {name: round(host_time_us(call), 2) for name, call in calls.items()}


def read_baseline(path: Optional[Path]) -> Dict[Tuple[Any, ...], float]:
    """row key -> ratio to the vendor's library, from a CSV whose last column is that ratio."""
    if path is None:
        return {}
    ratios = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            words = tuple(row[name] for name in ("op", "dtype", "recipe", "layout", "out"))
            if row["m"] and row["speed_vs_cublaslt_same_run"]:
                numbers = tuple(int(row[name]) for name in ("accumulate", "m", "n", "k"))
                ratios[words + numbers] = float(row["speed_vs_cublaslt_same_run"])
    return ratios


def driver_version() -> str:
    """The driver's version as its own tool says it, or "unknown"."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def environment(shapes: Path) -> Dict[str, Any]:
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
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "method": "profiler kernel time, median, L2 flushed before each launch, contenders alternated",
        "reference": "torch._scaled_mm, one factor a tensor, BF16 out",
    }


def geomeans(rows: Iterable[Dict[str, Any]]) -> Dict[str, float]:
    """Geometric mean of the ratio, for every recipe, output and M."""
    groups: Dict[str, List[float]] = {}
    for row in rows:
        scaling = "x".join(map(str, row["recipe"]))
        groups.setdefault(f"{scaling} {row['out']} M={row['m']}", []).append(row["ratio"])
    return {key: round(math.exp(statistics.mean(map(math.log, ratios))), 3) for key, ratios in groups.items()}


def print_row(row: Dict[str, Any]) -> None:
    """One line for the terminal."""
    shape = f"{row['m']:5d} {row['n']:6d} {row['k']:6d}  {'x'.join(map(str, row['recipe'])):9} {row['out']:8}"
    baseline = f"  baseline {row['baseline_ratio']:.2f}x" if "baseline_ratio" in row else ""
    times = f"{row['us']:8.2f} us  vendor {row['vendor_us']:8.2f} us  floor {row['floor_us']:6.1f} us"
    print(f"{shape} {times}  {row['tflops']:7.1f} TFLOPS  {row['ratio']:.3f}x{baseline}", file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Measures every case of the shape file."""
    baseline = read_baseline(arguments.baseline)
    rows = []
    for case in read_cases(arguments.shapes, arguments.m):
        row = measure(case, arguments.rounds)
        if case.baseline_key() in baseline:
            row["baseline_ratio"] = baseline[case.baseline_key()]
        print_row(row)
        rows.append(row)
    named = {"baseline": arguments.baseline.stem} if baseline else {}
    report = {**environment(arguments.shapes), **named, "host_us": measure_host(), "geomean": geomeans(rows), "rows": rows}
    print(json.dumps({"host_us": report["host_us"], "geomean": report["geomean"]}, indent=2), file=sys.stderr)
    return report


def parse_arguments() -> argparse.Namespace:
    """The options of this script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=SHAPES, help="shape file (default: %(default)s)")
    parser.add_argument("--m", type=int, action="append", help="only this M; may be repeated")
    parser.add_argument("--rounds", type=int, default=30, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--baseline", type=Path, help="CSV of another library's ratios to the same reference")
    parser.add_argument("--out", default="", help="JSON file, - for the terminal (default: docs/benchmarks/<name>.json)")
    parser.add_argument("--readme", type=Path, nargs="+", help="rewrite README.md's table from these JSON files, and stop")
    return parser.parse_args()


def main() -> int:
    """Benches, or rewrites the README with --readme."""
    arguments = parse_arguments()
    if arguments.readme:
        update_readme(ROOT / "README.md", [json.loads(path.read_text()) for path in arguments.readme])
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
