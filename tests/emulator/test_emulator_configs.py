"""A result's bits do not depend on the config that computed it: one problem under every kind of config, on the emulator."""

from __future__ import annotations

import json
from pathlib import Path

from fp8_configs import CONFIGS, PER_ROW_CONFIGS
from test_emulator_library import run_python

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "pinned_configs.py"


def test_every_config_writes_the_same_bits(emulator_library: str) -> None:
    for shape, digests in json.loads(run_python(emulator_library, [str(SCRIPT)])).items():
        configs = PER_ROW_CONFIGS if shape.endswith("per row") else CONFIGS
        assert len(digests) == len(configs) > 7, "configs were lost"
        assert len(set(digests.values())) == 1, f"{shape}: {digests}"


def test_schedules_do_not_change_them(emulator_library: str) -> None:
    expected = run_python(emulator_library, [str(SCRIPT)])
    assert run_python(emulator_library, [str(SCRIPT)], DG_EMULATE_SEED="3") == expected


def test_factors_in_units_come_by_tma(emulator_library: str) -> None:
    assert int(run_python(emulator_library, [str(HERE / "factor_forms.py")])) > 5
