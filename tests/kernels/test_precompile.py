"""What was compiled ahead of time is what a call uses; what demo and benchmarks report is what ran."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import deep_gemm
from deep_gemm.cli import main
from deep_gemm.cli.timing import kernel_times

pytestmark = pytest.mark.gpu
TESTS = Path(__file__).resolve().parents[1]

AHEAD = """
import sys, torch, deep_gemm
sms = int(sys.argv[1])
kinds = [{}, {"recipe": (1, 1, 128), "out": torch.float32, "accumulate": True}]
for kind in kinds:
    deep_gemm.compile(m=(1, 600), n=576, k=1024, sm_count=sms, **kind)
deep_gemm.compile("bf16_gemm_nn", m=(1, 600), n=576, k=1024, sm_count=sms, out=torch.float32, accumulate=True)
deep_gemm.compile("m_grouped_bf16_gemm_nt_masked", m=96, n=576, k=512, sm_count=sms, num_groups=3, expected_m=64)
assert not torch.cuda.is_initialized()
print(deep_gemm._C.jit_report()["compiled"])
"""
CALLS = """
import torch, deep_gemm
from fp8_cases import Case, make_problem
for m in (1, 16, 17, 48, 64, 65, 128, 129, 300, 512, 600):
    make_problem(Case(m, 576, 1024), "cuda").run()
    make_problem(Case(m, 576, 1024, (1, 1, 128), out=torch.float32, c="same"), "cuda").run()
import bf16_cases
from grouped_bf16_cases import make_grouped_bf16
from grouped_cases import masked
for m in (1, 64, 129, 600):
    bf16_cases.make_problem(bf16_cases.Case("nn", m, 576, 1024, torch.float32, "same"), "cuda").run()
make_grouped_bf16(masked((3, 0, 70), 96, 576, 512)).to("cuda").run()
torch.cuda.synchronize()
print(deep_gemm._C.jit_report()["compiled"])
"""


def run_python(code: str, cache: Path, *arguments: str) -> str:
    """Standard output of `code` in a fresh interpreter with its own kernel cache."""
    paths = os.pathsep.join([str(TESTS), str(Path(deep_gemm.__file__).resolve().parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, "DG_JIT_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_calls_compile_nothing_after_compile(tmp_path):
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    assert int(run_python(AHEAD, tmp_path, str(sms))) > 0
    assert run_python(CALLS, tmp_path) == "0"


@pytest.mark.usefixtures("restored_settings")
def test_compile_mode_writes_nothing():
    a = deep_gemm.per_token_cast_to_fp8(torch.randn(33, 640, device="cuda"), use_ue8m0=False)
    b = deep_gemm.per_block_cast_to_fp8(torch.randn(200, 640, device="cuda"), use_ue8m0=False)
    d = torch.full((33, 200), float("nan"), dtype=torch.bfloat16, device="cuda")
    deep_gemm.set_compile_mode(1)
    deep_gemm.fp8_gemm_nt(a, b, d)
    assert bool(d.isnan().all())
    deep_gemm.set_compile_mode(0)
    deep_gemm.fp8_gemm_nt(a, b, d)
    assert bool(d.isfinite().all())


def test_demo_prints_speed(capsys):
    assert main(["demo", "--m", "128", "--n", "576", "--k", "1024"]) == 0
    output = capsys.readouterr().out
    assert "CPU reference" not in output and output.count("TFLOPS") == 3


def test_every_launch_is_attributed_to_its_contender():
    x = torch.randn(256, 256, device="cuda")
    calls = {"one": lambda: x.mul_(1.0), "none": lambda: None, "two": lambda: (x.mul_(1.0), x.add_(0.0))}
    times = kernel_times(calls, rounds=5)
    assert set(times) == {"one", "none", "two"} and all(len(samples) == 5 for samples in times.values())
    assert all(time > 0 for time in times["one"] + times["two"]) and times["none"] == [0.0] * 5
