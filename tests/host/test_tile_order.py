"""The order of tiles and the divisions it rests on, compiled for the host: the same headers that kernels are compiled from."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_every_quotient_and_every_tile(tmp_path):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: nothing to compile the headers with")
    program = tmp_path / "tile_order"
    command = [compiler, "-std=c++20", "-O1", f"-I{HERE.parents[1] / 'include'}", str(HERE / "tile_order.cc"), "-o", str(program)]
    subprocess.run(command, check=True)
    run = subprocess.run([str(program)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    quotients, rasters = map(int, re.findall(r"\d+", run.stdout))
    assert quotients > 1_000_000 and rasters == 288
