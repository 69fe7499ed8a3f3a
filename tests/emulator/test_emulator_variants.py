"""The GEMMs' variants (heads with a gap, contractions over batches) from the call to the last byte of D, in the emulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import variant_scenarios
from test_emulator_library import run_python

PROGRAM = str(Path(variant_scenarios.__file__))


@pytest.fixture(scope="module")
def outcomes(emulator_library: str) -> dict[str, str]:
    return json.loads(run_python(emulator_library, [PROGRAM]).splitlines()[-1])


@pytest.mark.parametrize("name", variant_scenarios.SCENARIOS)
def test_variant(name: str, outcomes: dict[str, str]) -> None:
    assert outcomes[name] == "ok", outcomes[name]


def test_schedules_do_not_matter(emulator_library: str) -> None:
    names = ["heads", "sums_and_batches", "fp8_batches"]
    outcomes = json.loads(run_python(emulator_library, [PROGRAM, *names], DG_EMULATE_SEED="3").splitlines()[-1])
    assert all(outcome == "ok" for outcome in outcomes.values()), "\n".join(outcomes.values())
