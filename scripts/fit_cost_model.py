"""How good the cost models' picks are, against measurements.

Usage: python scripts/fit_cost_model.py MEASURED.json|.csv [--worst N] [--set NAME=VALUE ...] [--limits]

Each row of the file is one measurement: m, n, k, us, and a config (a dictionary, or its fields as columns); optional:
family ('fp8', 'bf16'), recipe ('1d2d'), a_major, b_major ('k'), d_dtype ('bf16'), has_c and c_is_d (false), grouping
('dense') with num_groups, expected_m, alignment. For each shape the report shows the measured best, what the model would
pick among the measured configs, and how much slower that is; at the end the geometric mean of that loss, the rank
correlation, and the bias of the estimates. --set changes a device number (arch) to try it; constants of the models are in
csrc/plan/cost_model.h and csrc/plan/bf16_cost_model.cc: change, rebuild, run again. --limits prints what the model believes limits
each pick.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))
from planners import Shape, estimate_parts, shape_of  # noqa: E402

# Of a row: what the planner chooses for, with what is meant where a column is missing or empty, by family.
GROUPS = {"num_groups": "1", "expected_m": "0", "alignment": "128"}
COMMON = {"d_dtype": "bf16", "has_c": "false", "c_is_d": "false", "grouping": "dense", **GROUPS}
DEFAULTS = {"fp8": {"recipe": "1d2d", **COMMON}, "bf16": {"a_major": "k", "b_major": "k", **COMMON}}
SHAPE_COLUMNS = ("family", "m", "n", "k", "recipe", "a_major", "b_major", *COMMON)
# Of a config, what no shape says.
NUMBERS = {
    "fp8": ("block_m", "block_n", "num_math_warpgroups", "num_stages", "num_accumulators", "n_parts", "k_blocks", "store_boxes",
            "cluster_m", "cluster_n"),
    "bf16": ("block_m", "block_n", "num_math_warpgroups", "num_stages", "k_blocks", "store_boxes", "cluster_m", "cluster_n"),
}  # fmt: skip
CONFIG_COLUMNS = NUMBERS["fp8"]
TRUE = (True, 1, "1", "true", "True")


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


def shape_of_row(row: dict) -> Shape:
    """The shape of a row, defaults filled in."""
    family = row.get("family") or "fp8"
    given = {name: row[name] if row.get(name) not in (None, "") else default for name, default in DEFAULTS[family].items()}
    given.update({name: given[name] in TRUE for name in ("has_c", "c_is_d") if name in given})
    if given["grouping"] == "dense":
        given = {name: value for name, value in given.items() if name != "grouping" and name not in GROUPS}
    else:
        given.update({name: int(given[name]) for name in GROUPS})
    return shape_of(family, int(row["m"]), int(row["n"]), int(row["k"]), **given)


def config_of(row: dict, shape: Shape) -> dict:
    """The config of a row, from its dictionary or its columns; kinds left out are the shape's."""
    given = row.get("config", row)
    given = json.loads(given) if isinstance(given, str) else given
    options = shape.options()
    config = {"d_dtype": options["d_dtype"], "has_c": options["has_c"], "grouping": options.get("grouping", "dense")}
    config.update(ragged_n=False, c_is_d=options["c_is_d"] and options["d_dtype"] == "f32")  # the shape's to say
    if shape.family == "bf16":
        config.update(a_major=options["a_major"], b_major=options["b_major"])
    else:
        config["head_unit"] = 0
        config["sfb_granularity"] = "per_block" if options["recipe"] == "1d2d" else "per_row"
    return {**config, **{name: int(given.get(name) or 1) for name in NUMBERS[shape.family]}}


def evaluate(rows: list[dict], arch: dict) -> dict[Shape, list[Row]]:
    """Measurements by shape, each with the model's estimate."""
    shapes = collections.defaultdict(list)
    for row in rows:
        shape = shape_of_row(row)
        config = config_of(row, shape)
        limits = estimate_parts(shape, config, arch)
        shapes[shape].append(Row(config, float(row["us"]), limits["total"], limits))
    return shapes


def label(config: dict) -> str:
    """A config in a few characters."""
    products = f"a{config['num_accumulators']}/{config['n_parts']}/{config['k_blocks']} " if "n_parts" in config else ""
    return f"{config['block_m']}x{config['block_n']} s{config['num_stages']} {products}c{config['cluster_m']}x{config['cluster_n']}"


def kind_of(shape: Shape) -> str:
    """Recipe or majors, output and grouping of a shape, in a few characters."""
    options = shape.options()
    head = options.get("recipe") or f"{options['a_major']}/{options['b_major']}"
    grouping = f" {options['grouping']} {options['num_groups']}/{options['expected_m']}" if "grouping" in options else ""
    return f"{head} {options['d_dtype']}{' +c' if options['has_c'] else ''}{grouping}"


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
        line = (f"{loss:6.3f}x  {shape.m:5} {shape.n:6} {shape.k:6} {kind_of(shape):12} best {best.measured:8.2f} us "
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
