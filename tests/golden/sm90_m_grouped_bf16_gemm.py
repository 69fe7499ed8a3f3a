"""The golden plans of the SM90 BF16 GEMMs grouped along M. Run this file to write the table of its name anew; review the
difference."""

from pathlib import Path

import plan_table

TABLE = Path(__file__).with_suffix(".json")
N_K = [(6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048), (2110, 7168)]
CONTIGUOUS = {"grouping": "contiguous", "num_groups": 8, "alignment": 128}
# (keywords of the grouping, M): prefill as ids of rows and as ends, with N-major weights too; decoding with counts and ends.
GROUPS = (
    [({**CONTIGUOUS, "b_major": b_major}, m) for b_major in ("k", "mn") for m in (1024, 32768)]
    + [({**CONTIGUOUS, "grouping": "psum", "expected_m": 0, "b_major": b_major}, 32768) for b_major in ("k", "mn")]
    + [({"grouping": "psum", "num_groups": 32, "alignment": 128, "expected_m": 192}, 8192)]
    + [({"grouping": "masked", "num_groups": groups, "expected_m": rows}, 4096) for groups, rows in ((32, 20), (32, 192), (6, 1024))]
)


def cases():
    """Every (m, n, k, keywords of plan_bf16_gemm) of the table."""
    for options, m in GROUPS:
        for n, k in N_K:
            yield m, n, k, options


def planned_rows():
    """The table as the planner sees it now."""
    from deep_gemm import _C

    return plan_table.planned_rows(_C.plan_bf16_gemm, cases())


if __name__ == "__main__":
    plan_table.write(TABLE, planned_rows())
