"""The README's benchmark table, made from benchmark JSON and from nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def cell(row: Dict[str, Any]) -> List[str]:
    """The columns of one row."""
    kind = f"{tuple(row['recipe'])} {row['out']}{', accumulate' if row['accumulate'] else ''}"
    baseline = f"{row['baseline_ratio']:.2f}x" if "baseline_ratio" in row else ""
    return [
        kind,
        str(row["m"]),
        f"{row['n']} x {row['k']}",
        f"{row['us']:.1f}",
        f"{row['vendor_us']:.1f}",
        f"{row['tflops']:.0f}",
        f"{row['ratio']:.2f}x",
        baseline,
    ]


def table(report: Dict[str, Any]) -> List[str]:
    """The Markdown of one report: where it comes from, the host time, the rows."""
    head = ["recipe, D", "M", "N x K", "us", "vendor us", "TFLOPS", "speed to vendor", report.get("baseline", "baseline")]
    host = ", ".join(f"{name} {value} us" for name, value in report["host_us"].items())
    lines = [
        f"### {report['title']}",
        "",
        f"{report['device']}, driver {report['driver']}, CUDA {report['cuda']}, PyTorch {report['torch']}, {report['date']}.",
        f"Vendor: {report['reference']}. {report['method'].capitalize()}.",
        f"Host time of a call: {host}. Command: `{report['command']}`.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "--|" * len(head),
    ]
    lines += ["| " + " | ".join(cell(row)) + " |" for row in report["rows"]]
    means = ", ".join(f"{key}: {value:.2f}x" for key, value in report["geomean"].items())
    return [*lines, "", f"Geometric means of the speed to the vendor: {means}.", ""]


def update_readme(readme: Path, reports: List[Dict[str, Any]]) -> None:
    """Replaces what stands between the markers of `readme` with the tables of `reports`."""
    text = readme.read_text()
    before, found_begin, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(f"{readme} lacks the markers {BEGIN} and {END}")
    body = "\n".join(line for report in reports for line in table(report))
    readme.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}")
