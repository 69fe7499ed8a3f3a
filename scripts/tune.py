"""Times the planner's candidates for a file of shapes: what the cost model is calibrated with.

    python scripts/tune.py --out docs/benchmarks/fp8_gemm_configs_h200.csv            # every shape, 40 candidates each
    python scripts/tune.py --m 4096 --candidates 12 --rounds 9 --out -                # a part of it, to the terminal
    python scripts/fit_cost_model.py docs/benchmarks/fp8_gemm_configs_h200.csv        # how good the picks are

Candidates are the planner's pick and its runners-up, best estimate first. Each runs through the public function with its
config pinned, is checked against the product of the inputs, and is timed as in scripts/bench.py: L2 flushed, contenders and
the vendor's product alternated in one run, median.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import torch

from deep_gemm import _C
from deep_gemm.cli.timing import kernel_times

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bench import SHAPES, Case, contenders, make_operands, read_cases  # noqa: E402
from fit_cost_model import NUMBERS  # noqa: E402

COLUMNS = ("m", "n", "k", "recipe", "d_dtype", "has_c", "us", "scaled_mm_us") + NUMBERS


def planning_keywords(case: Case) -> Dict[str, Any]:
    """The planner's keywords for a case."""
    d_dtype = {"bfloat16": "bf16", "float32": "f32"}[case.out]
    return {"recipe": case.recipe, "d_dtype": d_dtype, "has_c": case.accumulate}


def candidate_configs(case: Case, count: int) -> List[Dict[str, Any]]:
    """The planner's pick and its best runners-up for a case, `count` in all."""
    choice = _C.explain_fp8_gemm(case.m, case.n, case.k, **planning_keywords(case))
    return [plan["config"] for plan in [choice["best"], *choice["runners_up"]][:count]]


def pinned(case: Case, config: Dict[str, Any], call: Callable[[], object]) -> Callable[[], object]:
    """`call` with `config` pinned first: pinning is a table entry once the kernel is loaded."""
    keywords = planning_keywords(case)

    def run() -> object:
        _C.pin_fp8_gemm_config(case.m, case.n, case.k, torch.cuda.current_device(), config=config, **keywords)
        return call()

    return run


def measure(case: Case, count: int, rounds: int) -> Iterator[Dict[str, Any]]:
    """A row for each candidate of a case, fastest first."""
    operands = make_operands(case)
    calls = contenders(case, operands)
    configs = candidate_configs(case, count)
    arms = {str(i): pinned(case, config, calls["deep_gemm"]) for i, config in enumerate(configs)}
    samples = kernel_times({**arms, "vendor": calls["vendor"]}, rounds)
    _C.forget_fp8_gemm_plans()
    medians = {name: statistics.median(times) for name, times in samples.items()}
    keywords = planning_keywords(case)
    for name in sorted(arms, key=medians.__getitem__):
        yield {
            "m": case.m, "n": case.n, "k": case.k, "recipe": "1d2d" if case.recipe[1] == 128 else "1d1d",
            "d_dtype": keywords["d_dtype"], "has_c": str(case.accumulate).lower(), "us": round(medians[name], 2),
            "scaled_mm_us": round(medians["vendor"], 2), **{key: configs[int(name)][key] for key in NUMBERS},
        }  # fmt: skip


def parse_arguments() -> argparse.Namespace:
    """The options of this script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=SHAPES, help="shape file (default: %(default)s)")
    parser.add_argument("--m", type=int, action="append", help="only this M; may be repeated")
    parser.add_argument("--candidates", type=int, default=40, help="configs of each shape (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measured launches of each (default: %(default)s)")
    parser.add_argument("--out", required=True, help="CSV file, - for the terminal")
    return parser.parse_args()


def main() -> int:
    """Times candidates and writes their rows, shape by shape."""
    arguments = parse_arguments()
    if not torch.cuda.is_available():
        print("No GPU here: nothing to time.")
        return 0
    file = sys.stdout if arguments.out == "-" else open(arguments.out, "w", newline="")  # noqa: SIM115
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for case in read_cases(arguments.shapes, arguments.m):
        rows = list(measure(case, arguments.candidates, arguments.rounds))
        writer.writerows(rows)
        file.flush()
        best = rows[0]
        print(f"{case.m} {case.n} {case.k}: best {best['us']} us, {best['scaled_mm_us'] / best['us']:.3f}x", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
