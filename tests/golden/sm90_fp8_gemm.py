"""The golden plans of the SM90 FP8 GEMM. Run this file to write sm90_fp8_gemm.json anew; review the difference."""

import json
from pathlib import Path

TABLE = Path(__file__).with_suffix(".json")
N_K = [(2112, 7168), (576, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048), (2110, 7168)]
M_SIZES = [1, 16, 64, 128, 512, 4096]
# Recipe, output dtype, C added: what models run, and what training accumulates with.
KINDS = [("1d2d", "bf16", False), ("1d1d", "f32", True)]


def cases():
    """Every (m, n, k, keywords of plan_fp8_gemm) of the table."""
    for recipe, d_dtype, has_c in KINDS:
        for n, k in N_K:
            for m in M_SIZES:
                yield m, n, k, {"recipe": recipe, "d_dtype": d_dtype, "has_c": has_c}


def planned_rows():
    """The table as the planner sees it now: one dictionary per case. The estimate is left out: it is not a decision."""
    from deep_gemm import _C

    rows = []
    for m, n, k, options in cases():
        plan = _C.plan_fp8_gemm(m, n, k, **options)
        rows.append({"m": m, "n": n, "k": k, **options, "grid": plan["grid"], "raster": plan["raster"], "config": plan["config"]})
    return rows


def read_rows():
    """The table as committed."""
    return json.loads(TABLE.read_text())


def write_rows(rows):
    """Writes the table, one case a line, so that a difference reads as a list of changed decisions."""
    TABLE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    write_rows(planned_rows())
    print(f"wrote {TABLE}")
