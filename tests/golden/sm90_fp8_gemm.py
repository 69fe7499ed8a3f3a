"""The golden plans of the SM90 FP8 GEMM. Run this file to write sm90_fp8_gemm.json anew; review the difference."""

import json
from pathlib import Path

import plan_table

TABLE = Path(__file__).with_suffix(".json")
N_K = [(2112, 7168), (576, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048), (2110, 7168), (576, 1536)]
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
    """The table as the planner sees it now."""
    from deep_gemm import _C

    return plan_table.planned_rows(_C.plan_fp8_gemm, cases())


def read_rows():
    """The table as committed."""
    return json.loads(TABLE.read_text())


if __name__ == "__main__":
    plan_table.write(TABLE, planned_rows())
