"""Kernels with one of their precautions taken out: the emulator says what is wrong, and where nothing was taken out it is content."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from test_emulator_library import run_python

INCLUDE = Path(__file__).resolve().parents[2] / "include"
K_GROUPS = "import k_grouped_scenarios as s; s.two_stages_are_enough()"
NARROW_TILES_OF_THREE = """
import pinned_configs as p
p.CONFIGS = [c for c in p.CONFIGS if c["num_math_warpgroups"] == 3 and c["block_n"] < 128]
assert len(p.digests(300, 200, 592)) == 1
"""
# What is taken out of which header, a program that shows it, and the report.
FAULTS = {
    "a map changed while lanes read it": ("tile/group_maps.cuh", "        slot_ = slot_ + 1 == kSlots ? 0 : slot_ + 1;\n        __syncwarp();", "        slot_ = slot_ + 1 == kSlots ? 0 : slot_ + 1;",
                                          K_GROUPS, "lanes of a warp race: shared memory"),
    "a turn that nobody takes": ("kernels/fp8_gemm/sm90_math_tile.cuh", "        turns_.end();", "", NARROW_TILES_OF_THREE, "exits with named barrier 4 left at 128 of 256 threads"),
}  # fmt: skip


def run_with(library: str, include: Path, program: str, cache: Path) -> str:
    """Runs a program whose kernels are compiled from `include`."""
    return run_python(library, ["-c", f"from deep_gemm import _C; _C.set_include_root({str(include)!r}); {program.strip()}\nprint('ran')"], DG_JIT_CACHE_DIR=str(cache))


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_taken_out_is_missed(emulator_library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.delenv("DG_EMULATE_QUIET")  # reports are printed
    header, old, new, program, report = FAULTS[fault]
    include, cache = tmp_path / "include", tmp_path / "cache"
    shutil.copytree(INCLUDE, include)
    assert run_with(emulator_library, include, program, cache).strip() == "ran"
    path = include / "deep_gemm" / header
    text = path.read_text()
    assert text.count(old) == 1, f"{header} has changed"
    path.write_text(text.replace(old, new))
    with pytest.raises(AssertionError, match=report):
        run_with(emulator_library, include, program, cache)
