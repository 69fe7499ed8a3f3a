"""Kernel time of the FP8 GEMMs grouped along M, over a file of shapes, as JSON.

    python scripts/bench_grouped.py                         # all rows, to the terminal
    python scripts/bench_grouped.py --only masked --baseline other.csv --out fp8_grouped.json

Operands, L2 and times as in `bench.py`. Rows of a contiguous group and counts of a masked one are drawn from 0.7 to 1.3 of
their mean. TFLOPS count all M rows of a contiguous problem, and the wanted rows of a masked one. There is no vendor's
product to set beside them; --baseline takes another library's microseconds, which compare only on the same device.
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

SHAPES = bench.ROOT / "scripts" / "shapes" / "fp8_grouped.json"


@dataclass(frozen=True)
class Case:
    """One row. `m`: all rows of a contiguous problem, the room of a masked group. `expected_m` 0: contiguous."""

    groups: int
    m: int
    n: int
    k: int
    expected_m: int = 0

    def baseline_key(self) -> Tuple[Any, ...]:
        """How a baseline file names this row."""
        kind = "m_grouped_masked" if self.expected_m else "m_grouped_contiguous"
        return (kind, self.groups, 0 if self.expected_m else self.m, self.n, self.k, self.expected_m)

    def floor_us(self, rows: int) -> float:
        """The time below which no kernel of this shape can go: memory or math, plus a launch."""
        moved = (rows + self.groups * self.n) * self.k + rows * self.n * 2
        return max(moved / bench.BYTES_PER_US, 2 * rows * self.n * self.k / bench.FLOP_PER_US) + bench.LAUNCH_US


@dataclass
class Problem:
    """A call to time, the rows it computes, and the error of its result."""

    call: Callable[[], None]
    rows: int
    diff: float


def read_cases(path: Path, only: Optional[str]) -> List[Case]:
    """The rows of a shape file, of one grouping if asked."""
    shapes = json.loads(path.read_text())
    cases = [Case(**row) for row in shapes["contiguous"]] if only != "masked" else []
    for row in shapes["masked"] if only != "contiguous" else []:
        cases += [Case(row["groups"], row["m"], n, k, row["expected_m"]) for n, k in row["nk"]]
    return cases


def spread(mean: int, count: int, generator: torch.Generator) -> List[int]:
    """`count` integers between 0.7 and 1.3 of `mean`."""
    return [int(mean * (0.7 + 0.6 * float(x))) for x in torch.rand(count, generator=generator)]


def group_blocks(case: Case, alignment: int, generator: torch.Generator) -> List[int]:
    """Aligned blocks of each contiguous group, M in all."""
    total = case.m // alignment
    blocks = [max(1, rows // alignment) for rows in spread(case.m // case.groups, case.groups, generator)]
    blocks[-1] += total - sum(blocks)
    if blocks[-1] < 1:  # what was drawn is too much: shared out evenly
        blocks = [total * (g + 1) // case.groups - total * g // case.groups for g in range(case.groups)]
    return blocks


def make_weights(case: Case) -> Tuple[Tuple[torch.Tensor, torch.Tensor], List[torch.Tensor]]:
    """(quantised experts, what they were)."""
    exact = [torch.randn(case.n, case.k, device="cuda", dtype=torch.bfloat16) for _ in range(case.groups)]
    pairs = [deep_gemm.per_block_cast_to_fp8(weight, use_ue8m0=False) for weight in exact]
    data = torch.stack([data.view(torch.uint8) for data, _ in pairs]).view(torch.float8_e4m3fn)
    return (data, torch.stack([factors for _, factors in pairs])), exact


def contiguous(case: Case, generator: torch.Generator) -> Problem:
    """A contiguous problem; the first rows of each group are compared with the product of the inputs."""
    alignment = deep_gemm.get_mk_alignment_for_contiguous_layout()
    x = torch.randn(case.m, case.k, device="cuda", dtype=torch.bfloat16)
    layout = torch.full((case.m,), -1, dtype=torch.int32)
    starts, start = [], 0
    for group, blocks in enumerate(group_blocks(case, alignment, generator)):
        layout[start : start + blocks * alignment - int(torch.randint(0, alignment, (1,), generator=generator))] = group
        starts.append(start)
        start += blocks * alignment
    layout = layout.cuda()
    data, factors = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    a, (b, exact) = (data, deep_gemm.get_mn_major_tma_aligned_tensor(factors)), make_weights(case)
    d = torch.empty(case.m, case.n, device="cuda", dtype=torch.bfloat16)

    def call() -> None:
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, b, d, layout)

    call()
    diffs = [float(calc_diff(d[s], exact[g].float() @ x[s].float())) for g, s in enumerate(starts)]
    return Problem(call, case.m, max(diffs))


def masked(case: Case, generator: torch.Generator) -> Problem:
    """A masked problem; the wanted rows of each group are compared with the product of the inputs."""
    counts = spread(case.expected_m, case.groups, generator)
    masked_m = torch.tensor(counts, dtype=torch.int32, device="cuda")
    x = torch.randn(case.groups * case.m, case.k, device="cuda", dtype=torch.bfloat16)
    data, factors = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    factors = deep_gemm.get_mn_major_tma_aligned_tensor(factors.view(case.groups, case.m, -1))
    a, (b, exact) = (data.view(case.groups, case.m, case.k), factors), make_weights(case)
    d = torch.empty(case.groups, case.m, case.n, device="cuda", dtype=torch.bfloat16)

    def call() -> None:
        deep_gemm.m_grouped_fp8_gemm_nt_masked(a, b, d, masked_m, case.expected_m)

    call()
    x = x.view(case.groups, case.m, case.k)
    diffs = [float(calc_diff(d[g, :c], x[g, :c].float() @ exact[g].float().t())) for g, c in enumerate(counts)]
    return Problem(call, sum(counts), max(diffs))


def measure(case: Case, rounds: int) -> Dict[str, Any]:
    """The JSON row of one case. A wrong kernel has no speed: it is refused."""
    torch.manual_seed(0)
    problem = (masked if case.expected_m else contiguous)(case, torch.Generator().manual_seed(0))
    if not problem.diff < 1e-3:
        raise RuntimeError(f"{case}: difference {problem.diff:.2e} to the product of the inputs, expected below 1e-3")
    times = kernel_times({"deep_gemm": problem.call}, rounds)["deep_gemm"]
    us = statistics.median(times)
    return {
        "op": "m_grouped_fp8_gemm_nt_masked" if case.expected_m else "m_grouped_fp8_gemm_nt_contiguous",
        **asdict(case), "rows": problem.rows, "us": round(us, 2), "best_us": round(min(times), 2),
        "floor_us": round(case.floor_us(problem.rows), 1),
        "tflops": round(2 * problem.rows * case.n * case.k / us / 1e6, 1),
    }  # fmt: skip


def read_baseline(path: Optional[Path]) -> Dict[Tuple[Any, ...], float]:
    """row key -> microseconds, of the FP8 rows without psum."""
    if path is None:
        return {}
    found = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["dtype"] == "fp8" and row["op"].startswith("m_grouped") and row["psum"] == "0":
                numbers = tuple(int(row[name] or 0) for name in ("groups", "m", "n", "k", "expected_m"))
                found[(row["op"], *numbers)] = float(row["us"])
    return found


def run(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Measures every case, printing as it goes."""
    baseline, rows = read_baseline(arguments.baseline), []
    for case in read_cases(arguments.shapes, arguments.only):
        row = measure(case, arguments.rounds)
        if case.baseline_key() in baseline:
            row["baseline_us"] = baseline[case.baseline_key()]
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    return {**bench.environment(arguments.shapes), "reference": "none", "rows": rows}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=SHAPES, help="shape file (default: %(default)s)")
    parser.add_argument("--only", choices=("contiguous", "masked"), help="only this grouping")
    parser.add_argument("--rounds", type=int, default=30, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--baseline", type=Path, help="CSV of another library's microseconds")
    parser.add_argument("--out", type=Path, help="JSON file (default: the terminal)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("No GPU here: nothing to time.")
        return 0
    report = json.dumps(run(arguments), indent=2) + "\n"
    if arguments.out:
        arguments.out.write_text(report)
    else:
        print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
