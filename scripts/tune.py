"""Times the planner's candidates for files of shapes: what the cost models are calibrated with.

    python scripts/tune.py --out docs/benchmarks/fp8_gemm_configs_h200.csv            # dense FP8, 40 candidates a shape
    python scripts/tune.py --shapes scripts/shapes/tune.json --candidates 0 --out -   # every candidate, all families
    python scripts/tune.py --family fp8 --kind masked --shapes scripts/shapes/tune.json --out masked.csv
    python scripts/fit_cost_model.py masked.csv                                       # how good the picks are

Candidates are the planner's pick and its runners-up, best estimate first. All are built first, on several threads. Each then
runs through the public function with its config pinned, and is timed as in scripts/bench.py: L2 flushed, contenders and the
vendor's product (dense) or a dense FP8 GEMM (grouped) alternated in one run, median. Each result is compared with the bits of
the first candidate's: configs of a family may not differ in them, and one that does is not timed.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, TextIO, Tuple

import torch

from deep_gemm.cli.timing import kernel_times

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench_grouped  # noqa: E402
import dense_problems  # noqa: E402
import grouped_problems  # noqa: E402
import planners  # noqa: E402
from bench import SHAPES  # noqa: E402
from fit_cost_model import CONFIG_COLUMNS, SHAPE_COLUMNS  # noqa: E402

COLUMNS = (*SHAPE_COLUMNS, "us", "reference_us", "estimate_us", *CONFIG_COLUMNS)
WARMUPS = 2


@dataclass(frozen=True)
class Subject:
    """A case to tune, by a grouping."""

    case: Any  # dense_problems.Case or grouped_problems.Case
    kind: str  # "dense", or a grouping

    def shape(self) -> planners.Shape:
        """What the planner chooses for."""
        if self.kind == "dense":
            found: planners.Shape = self.case.shape()
            return found
        if self.kind == "masked":
            return grouped_problems.shape(self.case, self.kind, self.case.m)
        rows = grouped_problems.places_of(grouped_problems.row_counts(self.case)).rows
        return grouped_problems.shape(self.case, self.kind, rows)


@dataclass
class Arms:
    """The call whose config is pinned, the tensor it writes, and what runs beside it."""

    call: dense_problems.Call
    d: torch.Tensor
    reference: Optional[dense_problems.Call]


def read_subjects(path: Path, wanted_m: Optional[List[int]]) -> List[Subject]:
    """The rows of a shape file, dense and grouped."""
    shapes = json.loads(path.read_text())
    dense = dense_problems.read_cases(path, wanted_m) if "cases" in shapes else []
    grouped = grouped_problems.read_cases(path) if "contiguous" in shapes else []
    return [Subject(case, "dense") for case in dense] + [
        Subject(case, kind) for case in grouped for kind in bench_grouped.kinds_of(case, None)
    ]


def arms_of(subject: Subject) -> Arms:
    """Operands on the GPU."""
    if subject.kind == "dense":
        operands = dense_problems.make_operands(subject.case)
        calls = dense_problems.contenders(subject.case, operands)
        return Arms(calls["deep_gemm"], operands.d, calls.get("vendor"))
    timed = grouped_problems.Problem(subject.case).timed(subject.kind)
    dense = dense_problems.contenders(bench_grouped.DENSE, dense_problems.make_operands(bench_grouped.DENSE))
    return Arms(timed.call, timed.d, dense["deep_gemm"])


def same_bits(arms: Arms, call: dense_problems.Call, expected: torch.Tensor) -> bool:
    """Whether a candidate writes what the first one wrote."""
    arms.d.zero_()
    call()
    return torch.equal(arms.d.view(torch.uint8), expected.view(torch.uint8))


def measure(subject: Subject, plans: List[Dict[str, Any]], rounds: int) -> Iterator[Dict[str, Any]]:
    """A row for each candidate, fastest first."""
    shape, arms, device = subject.shape(), arms_of(subject), torch.cuda.current_device()
    calls = {str(i): planners.pinned(shape, plan["config"], device, arms.call) for i, plan in enumerate(plans)}
    arms.d.zero_()
    calls["0"]()
    expected = arms.d.clone()
    wrong = [name for name, call in calls.items() if not same_bits(arms, call, expected)]
    for name in wrong:
        print(f"WRONG BITS, not timed: {shape} {plans[int(name)]['config_text']}", file=sys.stderr, flush=True)
        del calls[name]
    beside = {"reference": arms.reference} if arms.reference else {}
    samples = kernel_times({**calls, **beside}, rounds, WARMUPS)
    planners.forget()
    medians = {name: statistics.median(times) for name, times in samples.items()}
    reference = f"{medians['reference']:.2f}" if "reference" in medians else ""
    for name in sorted(calls, key=medians.__getitem__):
        plan = plans[int(name)]
        yield {
            "family": shape.family, "m": shape.m, "n": shape.n, "k": shape.k, **shape.options(),
            "us": round(medians[name], 2), "reference_us": reference, "estimate_us": round(plan["estimate_us"], 2),
            **{key: value for key, value in plan["config"].items() if key in CONFIG_COLUMNS},
            "is_pick": plan is plans[0], "text": plan["config_text"],
        }  # fmt: skip


def write_row(writer: "csv.DictWriter[str]", row: Dict[str, Any]) -> None:
    """Words as a CSV has them: (1, 128, 128) is 1d2d, False is false."""
    words = {True: "true", False: "false"}
    recipes = {(1, 128, 128): "1d2d", (1, 1, 128): "1d1d"}
    row = {key: words[value] if isinstance(value, bool) else value for key, value in row.items()}
    writer.writerow({**row, "recipe": recipes.get(row.get("recipe", ()), "")})


def summary(subject: Subject, rows: List[Dict[str, Any]]) -> str:
    """The best candidate and the planner's pick in a line."""
    best = rows[0]
    shape, pick = subject.shape(), next(row for row in rows if row["is_pick"])
    beside = f"  reference {best['reference_us']} us" if best["reference_us"] else ""
    return (
        f"{shape.family} {subject.kind:10} {shape.m:6d} {shape.n:6d} {shape.k:6d}  best {best['us']:9.2f} us "
        f"{best['text']}{beside}  pick {pick['us'] / best['us']:.3f}x {pick['text']}"
    )


def wanted(arguments: argparse.Namespace) -> List[Subject]:
    """The rows of the shape files, of the families and groupings asked for."""
    subjects = [subject for path in arguments.shapes for subject in read_subjects(path, arguments.m)]
    kinds = arguments.kind or ("dense", *grouped_problems.KINDS)
    return [s for s in subjects if arguments.family in (None, s.shape().family) and s.kind in kinds]


def planned(subjects: List[Subject], count: int, arch: Dict[str, Any]) -> List[Tuple[Subject, List[Dict[str, Any]]]]:
    """Each subject with its candidates: `count` of them, all where that is 0."""
    return [(subject, planners.candidates(subject.shape(), arch)[: count or None]) for subject in subjects]


def tune(arguments: argparse.Namespace, file: TextIO) -> None:
    """Times candidates and writes their rows, shape by shape."""
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore", restval="")
    writer.writeheader()
    arch = planners.current_arch()
    work = planned(wanted(arguments), arguments.candidates, arch)
    planners.build(((s.shape().family, plan["config"]) for s, plans in work for plan in plans), arch, arguments.jobs)
    for subject, plans in work:
        rows = list(measure(subject, plans, arguments.rounds))
        for row in rows:
            write_row(writer, row)
        file.flush()
        print(summary(subject, rows), file=sys.stderr, flush=True)
        torch.cuda.empty_cache()


def parse_arguments(argv: Optional[List[str]] = None) -> argparse.Namespace:
    """The options of this script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, nargs="+", default=[SHAPES], help="shape files (default: %(default)s)")
    parser.add_argument("--family", choices=grouped_problems.DTYPES, help="only this operand format")
    kinds = ("dense", *grouped_problems.KINDS)
    parser.add_argument("--kind", choices=kinds, action="append", help="only this grouping; may be repeated")
    parser.add_argument("--m", type=int, action="append", help="only this M of dense rows; may be repeated")
    parser.add_argument("--candidates", type=int, default=40, help="configs of each shape, 0 for all (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=planners.default_jobs(), help="threads that compile (default: %(default)s)")
    parser.add_argument("--build-only", action="store_true", help="fill the kernel cache and stop: needs no GPU")
    parser.add_argument("--out", default="-", help="CSV file, - for the terminal")
    return parser.parse_args(argv)


def main() -> int:
    """Builds every candidate, times them, and writes their rows."""
    arguments = parse_arguments()
    if arguments.build_only:
        work = planned(wanted(arguments), arguments.candidates, {})
        planners.build(((s.shape().family, plan["config"]) for s, plans in work for plan in plans), {}, arguments.jobs)
        return 0
    if not torch.cuda.is_available():
        print("No GPU here: nothing to time.")
        return 0
    if arguments.out == "-":
        tune(arguments, sys.stdout)
        return 0
    with open(arguments.out, "w", newline="") as file:
        tune(arguments, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
