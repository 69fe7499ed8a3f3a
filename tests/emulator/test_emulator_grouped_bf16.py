"""The grouped BF16 GEMMs from the call to the last byte of D, their real kernels in the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

import grouped_bf16_scenarios
from test_emulator_grouped import run_scenarios

PROGRAM = Path(grouped_bf16_scenarios.__file__)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def outcomes(emulator_library: str, cache: Path) -> dict[str, str]:
    return run_scenarios(emulator_library, cache, program=PROGRAM)


@pytest.mark.parametrize("name", grouped_bf16_scenarios.SCENARIOS)
def test_grouped_bf16(name: str, outcomes: dict[str, str]) -> None:
    assert outcomes[name] == "ok", outcomes[name]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_schedules_do_not_matter(seed: str, emulator_library: str, cache: Path) -> None:
    names = [name for name in grouped_bf16_scenarios.SCENARIOS if name.startswith("cases_")]
    outcomes = run_scenarios(emulator_library, cache, *names, program=PROGRAM, DG_EMULATE_SEED=seed)
    assert all(outcome == "ok" for outcome in outcomes.values()), "\n".join(outcomes.values())
