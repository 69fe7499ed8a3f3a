"""The public functions of the grouped FP8 GEMMs on the emulator: the program of docs/moe.md, two schedules."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_emulator_library import run_python

PROGRAM = Path(__file__).resolve().parent / "moe_page.py"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_moe_page_runs_on_the_kernels(emulator_library: str, seed: str) -> None:
    assert run_python(emulator_library, [str(PROGRAM)], DG_EMULATE_SEED=seed).split() == ["ran"]
