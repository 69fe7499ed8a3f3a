"""The golden plans of the SM90 FP8 GEMMs grouped, along M and along K. Run this file to write the table of its name anew; review
the difference."""

from pathlib import Path

import plan_table

TABLE = Path(__file__).with_suffix(".json")
N_K = [(6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048), (2110, 7168)]
CONTIGUOUS = {"grouping": "contiguous", "num_groups": 8, "alignment": 128}
K_GROUPED = {"grouping": "k_grouped", "recipe": "1d1d", "d_dtype": "f32", "has_c": True, "c_is_d": True}
# (keywords of the grouping, M): prefill as ids of rows and as ends; decoding with counts and ends; weight gradients.
GROUPS = (
    [(CONTIGUOUS, m) for m in (1024, 4096, 32768)]
    + [({**CONTIGUOUS, "grouping": "psum", "expected_m": 0}, 32768)]
    + [({"grouping": "psum", "num_groups": 32, "alignment": 128, "expected_m": 192}, 8192)]
    + [({"grouping": "masked", "num_groups": groups, "expected_m": rows}, 4096) for groups, rows in ((32, 20), (32, 192), (6, 1024))]
    + [({**K_GROUPED, "num_groups": groups}, 4096) for groups in (4, 16)]
)


def cases():
    """Every (m, n, k, keywords of plan_fp8_gemm) of the table."""
    for options, m in GROUPS:
        for n, k in N_K:
            yield m, n, k, options


def planned_rows():
    """The table as the planner sees it now."""
    from deep_gemm import _C

    return plan_table.planned_rows(_C.plan_fp8_gemm, cases())


if __name__ == "__main__":
    plan_table.write(TABLE, planned_rows())
