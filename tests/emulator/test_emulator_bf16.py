"""The BF16 GEMM on the emulator: right in every layout, the same bits whatever the config, the other rows or the schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_emulator_library import run_python

SCRIPT = [str(Path(__file__).resolve().parent / "bf16_scenarios.py")]


@pytest.fixture(scope="module")
def digests(emulator_library: str) -> dict:
    """What the scenarios print; they compare with FP64 themselves."""
    return json.loads(run_python(emulator_library, SCRIPT))


def test_every_case_ran(digests: dict) -> None:
    assert len(digests["cases"]) == 28


def test_every_config_writes_the_same_bits(digests: dict) -> None:
    groups = {name: found for name, found in digests.items() if name.startswith("configs")}
    assert len(groups) == 20 and all(len(found) == 14 for found in groups.values())
    assert [name for name, found in groups.items() if len(set(found.values())) != 1] == []


def test_where_c_is_does_not_matter(digests: dict) -> None:
    """Read by threads, brought by TMA, or added to by TMA where it is D."""
    apart = {name: found for name, found in digests.items() if name.startswith("configs") and "-apart-" in name}
    assert len(apart) == 8
    assert [name for name, found in apart.items() if found != digests[name.replace("-apart-", "-same-")]] == []


def test_a_row_does_not_depend_on_m(digests: dict) -> None:
    groups = {name: found for name, found in digests.items() if name.startswith("rows")}
    assert len(groups) == 4 and all(len(found) == 6 for found in groups.values())
    assert [name for name, found in groups.items() if len(set(found.values())) != 1] == []


def test_majors_write_the_same_bits(digests: dict) -> None:
    assert len({found["1"] for name, found in digests.items() if name.startswith("rows")}) == 1


def test_schedules_do_not_matter(emulator_library: str, digests: dict) -> None:
    assert json.loads(run_python(emulator_library, SCRIPT, DG_EMULATE_SEED="5")) == digests
