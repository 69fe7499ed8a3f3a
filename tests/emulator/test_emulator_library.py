"""The library itself on the emulator: contract, plan, JIT, launch and kernel, unchanged, with CPU tensors as device memory."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden" / "h200_library.json"

SCRIPT = """
import torch
import deep_gemm
from deep_gemm.testing import calc_diff
torch.manual_seed(0)
for m, n, k in ((128, 128, 256), (1, 136, 384), (200, 512, 272)):
    a, b = torch.randn(m, k), torch.randn(n, k)
    a8, b8 = deep_gemm.per_token_cast_to_fp8(a, use_ue8m0=False), deep_gemm.per_block_cast_to_fp8(b, use_ue8m0=False)
    d = torch.empty(m, n, dtype=torch.bfloat16)
    deep_gemm.fp8_gemm_nt(a8, b8, d)
    assert calc_diff(d, a @ b.T) < 1e-3, (m, n, k)
    c = torch.randn(m, n)
    sums, in_place = torch.empty(m, n), c.clone()
    deep_gemm.fp8_gemm_nt(a8, b8, sums, c=c)
    deep_gemm.fp8_gemm_nt(a8, b8, in_place, c=in_place)
    assert torch.equal(sums, in_place), "C that is D"
from grouped_scenarios import last_launch
assert last_launch()["mma_instructions"] > 0, "the reference ran instead"
print("ran")
"""


def run_python(library: str, arguments: list[str], **environment: str) -> str:
    """Runs Python with the emulator as the driver; returns its output."""
    extension = pytest.importorskip("deep_gemm._C", reason="the extension is not built")
    package_root = str(Path(extension.__file__).parents[1])
    env = {**os.environ, "DG_EMULATE": "sm90a", "DG_DRIVER_LIBRARY": library, **environment}
    env["PYTHONPATH"] = os.pathsep.join([package_root, *filter(None, sys.path)])
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_a_users_script_runs_as_it_is(emulator_library: str) -> None:
    assert run_python(emulator_library, ["-c", SCRIPT]).strip() == "ran"


def test_schedules_do_not_matter_and_the_h200_agrees(emulator_library: str) -> None:
    script = [str(HERE / "library_digests.py"), "--device", "cpu"]
    expected = json.loads(run_python(emulator_library, script))
    for seed in ("1", "2"):
        assert json.loads(run_python(emulator_library, script, DG_EMULATE_SEED=seed)) == expected, f"seed {seed}"
    if not GOLDEN.exists():
        pytest.skip("schedules agree; golden/h200_library.json is not recorded yet")
    assert expected == json.loads(GOLDEN.read_text())
