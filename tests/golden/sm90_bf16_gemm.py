"""The golden plans of the SM90 BF16 GEMM. Run this file to write sm90_bf16_gemm.json anew; review the difference."""

from pathlib import Path

import plan_table

TABLE = Path(__file__).with_suffix(".json")
N_K = [(2112, 7168), (576, 7168), (4096, 7168), (7168, 2048), (2110, 7168)]
M_SIZES = [1, 64, 128, 512, 4096]
# Majors of A and B, output dtype, C added: inference, and the three products of training.
KINDS = [("k", "k", "bf16", False), ("k", "mn", "bf16", False), ("mn", "mn", "f32", True), ("mn", "k", "f32", False)]


def cases():
    """Every (m, n, k, keywords of plan_bf16_gemm) of the table."""
    for a_major, b_major, d_dtype, has_c in KINDS:
        for n, k in N_K:
            for m in M_SIZES:
                yield m, n, k, {"a_major": a_major, "b_major": b_major, "d_dtype": d_dtype, "has_c": has_c}


def planned_rows():
    """The table as the planner sees it now."""
    from deep_gemm import _C

    return plan_table.planned_rows(_C.plan_bf16_gemm, cases())


if __name__ == "__main__":
    plan_table.write(TABLE, planned_rows())
