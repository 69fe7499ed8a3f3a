"""Kernel time of the GEMMs grouped along M, FP8 and BF16, over a file of shapes, as JSON.

    python scripts/bench_grouped.py --baseline other.csv --out docs/benchmarks/m_grouped.json
    python scripts/bench_grouped.py --dtype fp8 --only masked --only psum --rounds 30

Operands, L2 and times as in `bench.py`; every round also runs a dense FP8 GEMM of 4096 x 4096 x 7168, whose speed says what
clock the row had. TFLOPS count all M rows of a contiguous problem, and the wanted rows of a masked one, also where its groups
lie in one matrix (psum). There is no vendor's product to set beside them; --baseline takes another library's microseconds,
which compare only on the same device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch

from deep_gemm.cli.timing import kernel_times

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # noqa: E402
import dense_problems  # noqa: E402
import planners  # noqa: E402
from grouped_problems import DTYPES, KINDS, Case, Problem, Timed, places_of, read_baseline, read_cases, row_counts  # noqa: E402
from grouped_problems import shape, supported  # noqa: E402

SHAPES = bench.ROOT / "scripts" / "shapes" / "m_grouped.json"
DENSE = dense_problems.Case("fp8_gemm_nt", "bfloat16", False, 4096, 4096, 7168, (1, 128, 128))
WARMUPS = 3

Row = Dict[str, Any]


def kinds_of(case: Case, only: Optional[List[str]]) -> List[str]:
    """The groupings a case is measured by: its own layout and ends, of those asked for that run here."""
    return [kind for kind in (case.kind, "psum") if kind in (only or KINDS) and supported(case, kind)]


def tflops(rows: int, n: int, k: int, us: float) -> float:
    """10^12 operations a second."""
    return round(2 * rows * n * k / us / 1e6, 1)


def row_of(case: Case, kind: str, timed: Timed, times: List[float], dense_us: float) -> Row:
    """The JSON row of one call."""
    us = statistics.median(times)
    return {
        "op": case.op(kind), "kind": kind, **asdict(case), "rows": timed.rows, "us": round(us, 2),
        "best_us": round(min(times), 2), "floor_us": round(case.floor_us(timed.rows), 1),
        "tflops": tflops(timed.rows, case.n, case.k, us),
        "dense_tflops": tflops(DENSE.m, DENSE.n, DENSE.k, dense_us),
    }  # fmt: skip


def measure(case: Case, kinds: List[str], rounds: int, dense: dense_problems.Call) -> List[Row]:
    """The JSON rows of one case, a call beside the other and beside the dense GEMM."""
    problem = Problem(case)
    calls = {kind: problem.timed(kind) for kind in kinds}
    samples = kernel_times({"dense": dense, **{kind: timed.call for kind, timed in calls.items()}}, rounds, WARMUPS)
    dense_us = statistics.median(samples["dense"])
    return [row_of(case, kind, timed, samples[kind], dense_us) for kind, timed in calls.items()]


def planned_shapes(cases: List[Tuple[Case, List[str]]]) -> List[planners.Shape]:
    """What the planner chooses for in this run, the dense GEMM first."""
    shapes = [DENSE.shape()]
    for case, kinds in cases:
        shapes += [shape(case, kind, case.m if kind == "masked" else places_of(row_counts(case)).rows) for kind in kinds]
    return shapes


def line_of(row: Row) -> str:
    """One row for the terminal."""
    rows = f"{row['expected_m'] or row['m']:6d}"
    head = f"{row['dtype']:4} {row['layout']} {row['kind']:10} {row['groups']:2d} x {rows} {row['n']:5d} {row['k']:5d}"
    times = f"{row['us']:8.1f} us {row['tflops']:7.1f} TFLOPS  floor {row['floor_us']:7.1f} us  dense {row['dense_tflops']:6.0f}"
    if "baseline_us" not in row:
        return f"{head} {times}"
    return f"{head} {times}  baseline {row['baseline_us']:6.0f} us {row['baseline_us'] / row['us']:.3f}x"


def run(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Measures every case, printing as it goes."""
    every = [(case, kinds_of(case, arguments.only)) for case in read_cases(arguments.shapes, arguments.dtype)]
    cases = [(case, kinds) for case, kinds in every if kinds]
    baseline, rows = read_baseline(arguments.baseline), []
    arch = planners.current_arch()
    planners.build(((s.family, planners.pick(s, arch)["config"]) for s in planned_shapes(cases)), arch, arguments.jobs)
    dense = dense_problems.contenders(DENSE, dense_problems.make_operands(DENSE))["deep_gemm"]
    for case, kinds in cases:
        for row in measure(case, kinds, arguments.rounds, dense):
            key = case.baseline_key(row["kind"])
            if key in baseline:
                row["baseline_us"] = baseline[key]
            rows.append(row)
            print(line_of(row), file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    named = {"baseline": arguments.baseline.stem} if baseline else {}
    return {**bench.environment(arguments.shapes, "none"), **named, "rows": rows}


def parse_arguments() -> argparse.Namespace:
    """The options of this script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=SHAPES, help="shape file (default: %(default)s)")
    parser.add_argument("--dtype", choices=DTYPES, help="only operands of this format")
    parser.add_argument("--only", choices=KINDS, action="append", help="only this grouping; may be repeated")
    parser.add_argument("--rounds", type=int, default=9, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=planners.default_jobs(), help="threads that compile (default: %(default)s)")
    parser.add_argument("--baseline", type=Path, help="CSV of another library's microseconds")
    parser.add_argument("--out", type=Path, help="JSON file (default: none)")
    return parser.parse_args()


def main() -> int:
    """Benches, and writes the JSON where it is wanted."""
    arguments = parse_arguments()
    if not torch.cuda.is_available():
        print("No GPU here: nothing to time.")
        return 0
    report = json.dumps(run(arguments), indent=2) + "\n"
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
