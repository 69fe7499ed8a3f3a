"""Kernel time of the GEMMs grouped along K, over a file of shapes, as JSON.

    python scripts/bench_k_grouped.py                                   # FP8 and BF16, to the terminal
    python scripts/bench_k_grouped.py --dtype fp8 --baseline other.csv --out k_grouped.json

Operands, L2 and times as in `bench.py`. Sizes are drawn from 0.7 to 1.3 of their mean, multiples of 128; D accumulates in place. Each
call is made twice, with sizes from the host and from the GPU alone: the kernel is the same. --baseline takes another library's
microseconds, which compare only on the same device.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

import deep_gemm
from deep_gemm.cli.timing import kernel_times
from deep_gemm.testing import calc_diff

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # noqa: E402
from dense_problems import BYTES_PER_US, FLOP_PER_US, LAUNCH_US  # noqa: E402
from grouped_problems import spread  # noqa: E402

SHAPES = bench.ROOT / "scripts" / "shapes" / "k_grouped.json"
STEP = 128
NAMES = {"fp8": "k_grouped_fp8_gemm_nt_contiguous", "bf16": "k_grouped_bf16_gemm_tn_contiguous"}


@dataclass(frozen=True)
class Case:
    """One row; `k`: of all groups."""

    dtype: str
    groups: int
    m: int
    n: int
    k: int

    def sizes(self, generator: torch.Generator) -> List[int]:
        """Each group's K, multiples of 128 around their mean, K in all."""
        mean = self.k // self.groups
        sizes = [max(1, k // STEP) for k in spread(mean, self.groups, generator)]
        sizes[-1] += self.k // STEP - sum(sizes)
        if sizes[-1] < 1:  # what was drawn is too much: shared out evenly
            total = self.k // STEP
            sizes = [total * (g + 1) // self.groups - total * g // self.groups for g in range(self.groups)]
        return [size * STEP for size in sizes]

    def floor_us(self) -> float:
        """The time below which no kernel of this shape can go: memory or math, plus a launch."""
        element = 1 if self.dtype == "fp8" else 2
        moved = (self.m + self.n) * self.k * element + 2 * self.groups * self.m * self.n * 4
        return max(moved / BYTES_PER_US, 2 * self.m * self.n * self.k / FLOP_PER_US[self.dtype]) + LAUNCH_US


def matrices(x: torch.Tensor, ks: List[int]) -> Tuple[torch.Tensor, torch.Tensor]:
    """[K, MN] as the groups' K-major FP8 matrices, one after another, and their MN-major factors."""
    parts = [deep_gemm.per_token_cast_to_fp8(part.t().contiguous(), use_ue8m0=False) for part in x.split(ks)]
    data = torch.cat([data.view(torch.uint8).flatten() for data, _ in parts]).view(torch.float8_e4m3fn)
    return data, torch.cat([factors.t() for _, factors in parts]).contiguous().t()


def calls(case: Case, generator: torch.Generator) -> Tuple[Dict[str, Callable[[], None]], float]:
    """The calls to time, and the error of the first against the product of the inputs."""
    ks = case.sizes(generator)
    x = torch.randn(case.k, case.m, device="cuda", dtype=torch.bfloat16)
    y = torch.randn(case.k, case.n, device="cuda", dtype=torch.bfloat16)
    layout = torch.tensor(ks, dtype=torch.int32, device="cuda")
    d = torch.zeros(case.groups, case.m, case.n, device="cuda")
    a, b = (matrices(x, ks), matrices(y, ks)) if case.dtype == "fp8" else (x, y)
    gemm = getattr(deep_gemm, NAMES[case.dtype])
    found = {"host": lambda: gemm(a, b, d, ks, layout, d), "gpu": lambda: gemm(a, b, d, None, layout, d)}
    found["host"]()
    parts = zip(d, x.split(ks), y.split(ks))
    diff = max(float(calc_diff(got[:256], p[:, :256].float().t() @ q.float())) for got, p, q in parts)
    return found, diff


def measure(case: Case, rounds: int) -> Dict[str, Any]:
    """The JSON row of one case. A wrong kernel has no speed: it is refused."""
    torch.manual_seed(0)
    contenders, diff = calls(case, torch.Generator().manual_seed(0))
    limit = 1e-3 if case.dtype == "fp8" else 1e-5
    if not diff < limit:
        raise RuntimeError(f"{case}: difference {diff:.2e} to the product of the inputs, expected below {limit}")
    times = kernel_times(contenders, rounds)
    us = statistics.median(times["host"])
    return {
        "op": NAMES[case.dtype], **asdict(case), "us": round(us, 2), "best_us": round(min(times["host"]), 2),
        "gpu_sizes_us": round(statistics.median(times["gpu"]), 2), "floor_us": round(case.floor_us(), 1),
        "tflops": round(2 * case.m * case.n * case.k / us / 1e6, 1),
    }  # fmt: skip


def read_cases(path: Path, dtype: Optional[str]) -> List[Case]:
    """The rows of a shape file, for one dtype or both."""
    rows = json.loads(path.read_text())["rows"]
    return [Case(name, **row) for name in NAMES for row in rows if dtype in (None, name)]


def read_baseline(path: Optional[Path]) -> Dict[Case, float]:
    """case -> microseconds, of the accumulating rows."""
    if path is None:
        return {}
    found = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["op"] == "k_grouped" and row["psum"] in ("", "0"):
                found[Case(row["dtype"], *(int(row[name]) for name in ("groups", "m", "n", "k")))] = float(row["us"])
    return found


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=SHAPES, help="shape file (default: %(default)s)")
    parser.add_argument("--dtype", choices=tuple(NAMES), help="only this one")
    parser.add_argument("--rounds", type=int, default=20, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--baseline", type=Path, help="CSV of another library's microseconds")
    parser.add_argument("--out", type=Path, help="JSON file (default: the terminal)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("No GPU here: nothing to time.")
        return 0
    baseline, rows = read_baseline(arguments.baseline), []
    for case in read_cases(arguments.shapes, arguments.dtype):
        row = measure(case, arguments.rounds)
        if case in baseline:
            row["baseline_us"] = baseline[case]
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    head = bench.environment(arguments.shapes, "none")
    if arguments.dtype:
        head["title"] += f", {arguments.dtype.upper()}"
    report = json.dumps({**head, "rows": rows}, indent=2) + "\n"
    if arguments.out:
        arguments.out.write_text(report)
    else:
        print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
