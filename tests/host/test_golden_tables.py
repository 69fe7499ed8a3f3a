"""Plans do not change unnoticed: `python tests/golden/NAME.py` writes a table anew when they should."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))  # what the tables have in common


@pytest.mark.parametrize("name, least", [("sm90_bf16_gemm", 50), ("sm90_m_grouped_bf16_gemm", 30), ("sm90_grouped_fp8_gemm", 40)])
def test_plans_are_the_golden_ones(name, least):
    spec = importlib.util.spec_from_file_location(f"golden_{name}", GOLDEN / f"{name}.py")
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)
    committed, now = json.loads(golden.TABLE.read_text()), list(golden.planned_rows())
    assert len(committed) == len(list(golden.cases())) and len(committed) > least
    changed = [(old, new) for old, new in zip(committed, now) if old != new]
    assert not changed, f"{changed[0]}; if plans should change, run {name}.py and commit the table"
