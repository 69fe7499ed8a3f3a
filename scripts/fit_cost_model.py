"""How good the cost model's picks are, against measurements.

Usage: python scripts/fit_cost_model.py MEASURED.json|.csv [--worst N] [--set NAME=VALUE ...] [--limits]

Each row of the file is one measurement: m, n, k, us, and a config (a dictionary, or its fields as columns); optional:
recipe ('1d2d'), d_dtype ('bf16'), has_c (false). For each shape the report shows the measured best, what the model would
pick among the measured configs, and how much slower that is; at the end the geometric mean of that loss, the rank
correlation, and the bias of the estimates. --set changes a device number (arch) to try it; constants of the model are in
csrc/plan/cost_model.h: change, rebuild, run again. --limits prints what the model believes limits each pick.
"""

from __future__ import annotations

import argparse
import collections
import csv
import dataclasses
import json
import math
import sys
from pathlib import Path

from deep_gemm import _C

NUMBERS = ("block_m", "block_n", "num_math_warpgroups", "num_stages", "num_accumulators", "n_parts",
           "k_blocks", "store_boxes", "cluster_m", "cluster_n")
WORDS = ("sfb_granularity", "grouping", "d_dtype")
TRUE = (True, 1, "1", "true", "True")


@dataclasses.dataclass(frozen=True)
class Shape:
    """What rows are grouped by: one choice of the planner."""

    m: int
    n: int
    k: int
    recipe: str
    d_dtype: str
    has_c: bool


@dataclasses.dataclass
class Row:
    """One measured config of a shape, and the model's estimate of it, in microseconds."""

    config: dict
    measured: float
    estimate: float
    limits: dict


def read_rows(path: Path) -> list[dict]:
    """The rows of a JSON list, a JSON object with `rows`, or a CSV file."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    content = json.loads(path.read_text())
    return content["rows"] if isinstance(content, dict) else content


def config_of(row: dict, shape: Shape) -> dict:
    """The config of a row, from its dictionary or its columns; kinds left out are the shape's."""
    given = row.get("config", row)
    given = json.loads(given) if isinstance(given, str) else given
    config = {"sfb_granularity": "per_block" if shape.recipe == "1d2d" else "per_row", "grouping": "dense",
              "d_dtype": shape.d_dtype, "has_c": shape.has_c, "head_unit": 0, "ragged_n": False}  # the shape's to say
    config.update({name: given[name] for name in WORDS if name in given})
    config.update({name: int(given[name]) for name in NUMBERS})
    return config


def shape_of(row: dict) -> Shape:
    """The shape of a row, defaults filled in."""
    return Shape(int(row["m"]), int(row["n"]), int(row["k"]), row.get("recipe") or "1d2d", row.get("d_dtype") or "bf16",
                 row.get("has_c", False) in TRUE)


def evaluate(rows: list[dict], arch: dict) -> dict[Shape, list[Row]]:
    """Measurements by shape, each with the model's estimate."""
    shapes = collections.defaultdict(list)
    for row in rows:
        shape = shape_of(row)
        config = config_of(row, shape)
        limits = _C.fp8_gemm_cost(**dataclasses.asdict(shape), config=config, arch=arch)
        shapes[shape].append(Row(config, float(row["us"]), limits["total"], limits))
    return shapes


def label(config: dict) -> str:
    """A config in a few characters."""
    return (f"{config['block_m']}x{config['block_n']} s{config['num_stages']} a{config['num_accumulators']}/{config['n_parts']}/{config['k_blocks']} "
            f"c{config['cluster_m']}x{config['cluster_n']}")


def rank_correlation(rows: list[Row]) -> float:
    """Spearman's: 1 if the model orders the configs as the measurement does."""
    count = len(rows)
    if count < 2:
        return math.nan
    by_measured = sorted(range(count), key=lambda i: rows[i].measured)
    by_estimate = sorted(range(count), key=lambda i: rows[i].estimate)
    measured_rank = {index: rank for rank, index in enumerate(by_measured)}
    distance = sum((rank - measured_rank[index]) ** 2 for rank, index in enumerate(by_estimate))
    return 1 - 6 * distance / (count * (count * count - 1))


def geomean(values: list[float]) -> float:
    """The geometric mean of positive values."""
    return math.exp(sum(map(math.log, values)) / len(values))


def report(shapes: dict[Shape, list[Row]], worst: int, limits: bool) -> float:
    """Prints a line per shape, the worst first; returns the geometric mean of the loss."""
    lines, losses = [], []
    for shape, rows in shapes.items():
        best = min(rows, key=lambda row: row.measured)
        pick = min(rows, key=lambda row: row.estimate)
        loss = pick.measured / best.measured
        losses.append(loss)
        kind = f"{shape.recipe} {shape.d_dtype}{' +c' if shape.has_c else ''}"
        line = (f"{loss:6.3f}x  {shape.m:5} {shape.n:6} {shape.k:6} {kind:12} best {best.measured:8.2f} us "
                f"{label(best.config):20} pick {pick.measured:8.2f} us (estimate {pick.estimate:8.2f}) "
                f"{label(pick.config):20} rank {rank_correlation(rows):5.2f} of {len(rows)}")
        if limits:
            for name, row in (("best", best), ("pick", pick)):
                line += f"\n         {name}: " + " ".join(f"{part}={us:.2f}" for part, us in row.limits.items())
        lines.append((loss, line))
    for _, line in sorted(lines, reverse=True)[: worst or None]:
        print(line)
    every = [row for rows in shapes.values() for row in rows]
    bias = geomean([row.estimate / row.measured for row in every])
    print(f"{len(every)} measurements, {len(losses)} shapes: the pick is {geomean(losses):.4f}x the best (geomean), "
          f"{max(losses):.3f}x at worst; estimates are {bias:.3f}x the measurements")
    return geomean(losses)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--worst", type=int, default=0, help="only the N worst shapes")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a device number to try")
    parser.add_argument("--limits", action="store_true", help="what the model believes limits best and pick")
    options = parser.parse_args()
    arch = {name: float(value) for name, value in (item.split("=", 1) for item in options.set)}
    rows = read_rows(options.measured)
    if not rows:
        print(f"{options.measured}: no measurements")
        return 1
    report(evaluate(rows, arch), options.worst, options.limits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
