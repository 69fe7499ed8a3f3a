"""The GEMMs grouped along K from the call to the last byte of D, their real kernels in the emulator."""
from __future__ import annotations

from pathlib import Path

import pytest

import k_grouped_scenarios
from test_emulator_grouped import run_scenarios

PROGRAM = Path(k_grouped_scenarios.__file__)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def outcomes(emulator_library: str, cache: Path) -> dict[str, str]:
    return run_scenarios(emulator_library, cache, program=PROGRAM)


@pytest.mark.parametrize("name", k_grouped_scenarios.SCENARIOS)
def test_k_grouped(name: str, outcomes: dict[str, str]) -> None:
    assert outcomes[name] == "ok", outcomes[name]


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_schedules_do_not_matter(seed: str, emulator_library: str, cache: Path) -> None:
    names = ["cases_fp8", "cases_bf16", "cases_turns", "two_stages_are_enough"]
    outcomes = run_scenarios(emulator_library, cache, *names, program=PROGRAM, DG_EMULATE_SEED=seed)
    assert all(outcome == "ok" for outcome in outcomes.values()), "\n".join(outcomes.values())
