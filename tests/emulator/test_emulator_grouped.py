"""The m-grouped FP8 GEMMs on the emulator: contract, plan, JIT, launch and kernel as they are, CPU tensors as device memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_emulator_library import run_python

SCRIPT = Path(__file__).resolve().parent / "grouped_checks.py"


def check(library: str, seed: str, kind: str, grouping: str) -> None:
    """Runs a kind of checks, the emulator's schedules drawn from `seed`."""
    assert run_python(library, [str(SCRIPT), kind, grouping], DG_EMULATE_SEED=seed).split() == ["ran"]


@pytest.mark.parametrize("seed", ["1", "2"])
@pytest.mark.parametrize("grouping", ["contiguous", "masked"])
def test_values_against_fp64(emulator_library: str, grouping: str, seed: str) -> None:
    check(emulator_library, seed, "values", grouping)


@pytest.mark.parametrize("grouping", ["contiguous", "masked"])
def test_forms_hints_and_sms_do_not_change_bits(emulator_library: str, grouping: str) -> None:
    check(emulator_library, "1", "bits", grouping)


def test_counts_out_of_range_do_not_leave_the_buffers(emulator_library: str) -> None:
    check(emulator_library, "1", "range", "masked")
