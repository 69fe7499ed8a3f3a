"""The emulator computes what an H200 computed, bit for bit (golden/h200.json, written by replay.py)."""
from __future__ import annotations

import json

import pytest

from cases import all_cases
from harness.case import Case
from harness.cuda_driver import CudaDriver
from replay import GOLDEN, difference, is_current, observe

RECORD = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}


@pytest.mark.parametrize("case", all_cases("sm90a"), ids=lambda case: case.name)
def test_same_bits_as_the_h200(emulator: CudaDriver, case: Case) -> None:
    entry = RECORD.get(case.name)
    if entry is None or not is_current(entry, case.fingerprint()):
        pytest.skip("this version of the case is not recorded on an H200 yet")
    assert "error" not in entry, entry
    assert difference(entry["outputs"], observe(emulator, case)) == ""


@pytest.mark.parametrize("case", all_cases("sm90a"), ids=lambda case: case.name)
def test_same_bits_under_a_random_schedule(emulator: CudaDriver, case: Case) -> None:
    expected = observe(emulator, case)
    emulator.set("seed", "11")
    assert observe(emulator, case) == expected
