"""The way of a call to the driver, without a GPU: tensors that claim to be on a device, a driver that writes down."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from device_scenarios import EMULATED_TOO, SCENARIOS

HERE = Path(__file__).parent


def cuda_include() -> str:
    """The folder of cuda.h, from the package that brings it at build time."""
    for package in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.as_posix().endswith("include/cuda.h"):
                return str(Path(file.locate()).parent)
    return pytest.skip("cuda.h is not installed (package nvidia-cuda-runtime): no driver to record with")


def build_driver(folder: Path) -> Path:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: no driver to record with")
    library = folder / "librecording.so"
    include = [f"-I{HERE.parents[1] / 'include'}", f"-I{cuda_include()}"]
    source = str(HERE / "recording_driver.cc")
    subprocess.run(
        [compiler, "-std=c++20", "-shared", "-fPIC", *include, source, "-o", str(library)], check=True
    )
    return library


def run_scenarios(folder: Path, program: str = "device_scenarios.py", **environment: str) -> dict:
    """Scenario -> "ok" or a traceback; all of them in one process of their own, whose driver is the recording one."""
    library = build_driver(folder)
    settings = {"DG_DRIVER_LIBRARY": str(library), "DG_JIT_CACHE_DIR": str(folder / "cache")}
    settings["PYTHONPATH"] = os.pathsep.join(path for path in (str(HERE.parent), *sys.path) if path)
    command = [sys.executable, str(HERE / program), str(library)]
    run = subprocess.run(
        command, env={**os.environ, **settings, **environment}, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return run_scenarios(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def emulated_outcomes(tmp_path_factory):
    return run_scenarios(tmp_path_factory.mktemp("emulated"), DG_EMULATE="sm90a")


@pytest.mark.parametrize("name", SCENARIOS)
def test_device_path(name, outcomes):
    assert outcomes[name] == "ok", outcomes[name]


@pytest.mark.parametrize("name", EMULATED_TOO)
def test_emulated_device_takes_host_tensors(name, emulated_outcomes):
    assert emulated_outcomes[name] == "ok", emulated_outcomes[name]
