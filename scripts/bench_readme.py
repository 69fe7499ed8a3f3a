"""The README's benchmark table and the page of all tables, made from benchmark JSON, notes by hand included, and from nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
IN_README = "fp8_dense"  # the one report whose rows the README shows; of the others it has the means
PAGE = Path("docs") / "benchmarks" / "README.md"


def shown(row: Dict[str, Any], name: str, decimals: int, unit: str = "") -> str:
    """A figure of a row, or nothing where the row has none."""
    return f"{row[name]:.{decimals}f}{unit}" if name in row else ""


def dense_cells(row: Dict[str, Any]) -> List[str]:
    """The columns of a dense row."""
    head = tuple(row["recipe"]) if "recipe" in row else row["op"].rpartition("_")[2]
    kind = f"{head} {row['out']}{', accumulate' if row['accumulate'] else ''}"
    shape = [kind, str(row["m"]), f"{row['n']} x {row['k']}"]
    figures = [shown(row, "us", 1), shown(row, "vendor_us", 1), shown(row, "tflops", 0), shown(row, "ratio", 2, "x")]
    return shape + figures + [shown(row, "baseline_ratio", 2, "x")]


def grouped_cells(row: Dict[str, Any]) -> List[str]:
    """The columns of a grouped row."""
    rows = f"{row['groups']} x about {row['expected_m']}" if row["expected_m"] else f"{row['groups']} in {row['m']}"
    figures = [shown(row, "us", 1), shown(row, "tflops", 0), shown(row, "dense_tflops", 0), shown(row, "baseline_us", 0)]
    return [f"{row['dtype']} {row['layout']} {row['kind']}", rows, f"{row['n']} x {row['k']}", *figures]


def k_grouped_cells(row: Dict[str, Any]) -> List[str]:
    """The columns of a row whose groups divide K."""
    figures = [shown(row, "us", 1), shown(row, "gpu_sizes_us", 1), shown(row, "tflops", 0), shown(row, "baseline_us", 0)]
    return [row["dtype"], f"{row['groups']} in {row['k']}", f"{row['m']} x {row['n']}", *figures]


def columns_of(row: Dict[str, Any], baseline: str) -> Tuple[List[str], Callable[[Dict[str, Any]], List[str]]]:
    """The head of a table of such rows, and what makes their cells."""
    if "kind" in row:
        dense = "TFLOPS of a dense FP8 GEMM beside it"
        return ["operands, layout", "groups", "N x K", "us", "TFLOPS", dense, f"{baseline}, us"], grouped_cells
    if "gpu_sizes_us" in row:
        return ["operands", "groups along K", "M x N", "us", "us, sizes from the GPU alone", "TFLOPS", f"{baseline}, us"], k_grouped_cells
    return ["recipe or layout, D", "M", "N x K", "us", "vendor us", "TFLOPS", "speed to vendor", baseline], dense_cells


def table(report: Dict[str, Any], with_rows: bool = True) -> List[str]:
    """The Markdown of one report: where it comes from, the host time, the rows, the means."""
    head, cells = columns_of(report["rows"][0], report.get("baseline", "baseline"))
    lines = [
        f"### {report['title']}",
        "",
        f"{report['device']}, driver {report['driver']}, CUDA {report['cuda']}, PyTorch {report['torch']}, {report['date']}.",
        f"Vendor: {report['reference']}. {report['method'].capitalize()}.",
        f"Command: `{report['command']}`.",
    ]
    if "note" in report:  # by hand: what a reader must know of the run
        lines.append(report["note"])
    if "host_us" in report:
        lines.append("Host time of a call: " + ", ".join(f"{name} {value} us" for name, value in report["host_us"].items()) + ".")
    if with_rows:
        lines += ["", "| " + " | ".join(head) + " |", "|" + "--|" * len(head)]
        lines += ["| " + " | ".join(cells(row)) + " |" for row in report["rows"]]
    else:
        lines += ["", f"{len(report['rows'])} rows: [{PAGE}]({PAGE})."]
    means = ", ".join(f"{key}: {value:.2f}x" for key, value in report.get("geomean", {}).items())
    return [*lines, "", *([f"Geometric means of the speed to the vendor: {means}.", ""] if means else [])]


def update_readme(readme: Path, reports: List[Dict[str, Any]]) -> None:
    """Replaces what stands between the markers of `readme` with the tables of `reports`, rows of IN_README alone."""
    text = readme.read_text()
    before, found_begin, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(f"{readme} lacks the markers {BEGIN} and {END}")
    body = "\n".join(line for report in reports for line in table(report, report["name"] == IN_README))
    readme.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}")


def page(reports: List[Dict[str, Any]]) -> str:
    """The page of all tables with all rows."""
    body = "\n".join(line for report in reports for line in table(report))
    return f"# Measured kernel times\n\nMade by `python scripts/bench.py --readme docs/benchmarks/*.json`.\n\n{body}"
