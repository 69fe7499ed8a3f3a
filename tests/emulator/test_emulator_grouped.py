"""The grouped FP8 GEMMs from the call to the last byte of D, their real kernels in the emulator."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import grouped_scenarios

PROGRAM = Path(grouped_scenarios.__file__)


def run_scenarios(library: str, cache: Path, *names: str, program: Path = PROGRAM, **environment: str) -> dict[str, str]:
    """Scenario -> "ok" or a traceback, in a process of its own: the emulator is chosen before the first call."""
    settings = {"DG_EMULATE": "sm90a", "DG_DRIVER_LIBRARY": library, "DG_JIT_CACHE_DIR": str(cache)}
    settings["PYTHONPATH"] = os.pathsep.join(path for path in (str(program.parent), str(program.parents[1]), *sys.path) if path)
    command = [sys.executable, str(program), *names]
    run = subprocess.run(command, env={**os.environ, **settings, **environment}, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def outcomes(emulator_library: str, cache: Path) -> dict[str, str]:
    return run_scenarios(emulator_library, cache)


@pytest.mark.parametrize("name", grouped_scenarios.SCENARIOS)
def test_grouped(name: str, outcomes: dict[str, str]) -> None:
    assert outcomes[name] == "ok", outcomes[name]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_schedules_do_not_matter(seed: str, emulator_library: str, cache: Path) -> None:
    names = [name for name in grouped_scenarios.SCENARIOS if name.startswith("cases_")]
    outcomes = run_scenarios(emulator_library, cache, *names, DG_EMULATE_SEED=seed)
    assert all(outcome == "ok" for outcome in outcomes.values()), "\n".join(outcomes.values())
