"""Plans do not change unnoticed: `python tests/golden/sm90_fp8_gemm.py` writes the table anew when they should."""

import importlib.util
import sys
from pathlib import Path

import pytest

from deep_gemm import _C

_PATH = Path(__file__).parents[1] / "golden" / "sm90_fp8_gemm.py"
sys.path.insert(0, str(_PATH.parent))  # what the tables have in common
_SPEC = importlib.util.spec_from_file_location("golden_sm90_fp8_gemm", _PATH)
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)

ROWS = golden.read_rows()


def _case(row):
    return tuple(row[key] for key in ("m", "n", "k", "recipe", "d_dtype", "has_c"))


def test_table_is_complete():
    expected = [(m, n, k, *options.values()) for m, n, k, options in golden.cases()]
    assert [_case(row) for row in ROWS] == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, _case(row))))
def test_plan_is_the_golden_one(row):
    options = {key: row[key] for key in ("recipe", "d_dtype", "has_c")}
    plan = _C.plan_fp8_gemm(row["m"], row["n"], row["k"], **options)
    assert (plan["config"], plan["grid"], plan["raster"]) == (row["config"], row["grid"], row["raster"]), (
        f"the plan is now {plan['text']}; if it should be, run {_PATH.name} and commit the table"
    )


@pytest.mark.parametrize("row", ROWS[::7], ids=lambda row: "-".join(map(str, _case(row))))
def test_golden_config_runs_when_asked_for(row):
    options = {key: row[key] for key in ("recipe", "d_dtype", "has_c")}
    plan = _C.plan_fp8_gemm(row["m"], row["n"], row["k"], config=row["config"], **options)
    assert plan["config"] == row["config"] and plan["grid"] == row["grid"]
