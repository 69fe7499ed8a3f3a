"""The emulator as a fixture. Its library is built once per content of its sources."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("DG_EMULATE_QUIET", "1")

from build import build  # noqa: E402
from harness.cuda_driver import CudaDriver  # noqa: E402


@pytest.fixture(scope="session")
def emulator_library() -> str:
    """Path of the library; DG_EMULATOR_LIBRARY replaces it (the mutation run does)."""
    if library := os.environ.get("DG_EMULATOR_LIBRARY"):
        return library
    if not shutil.which("cmake"):
        pytest.skip("CMake is needed to build the emulator")
    return str(build())


@pytest.fixture(scope="session")
def shared_driver(emulator_library: str) -> CudaDriver:
    return CudaDriver(emulator_library)


@pytest.fixture
def emulator(shared_driver: CudaDriver) -> CudaDriver:
    """Synchronous, every check on, SM90; a test may change settings freely."""
    for key, value in (("arch", "sm90a"), ("seed", ""), ("races", "1"), ("strict", "1"), ("uninitialised", "0"), ("trace", "0"), ("watch", "0")):
        shared_driver.set(key, value)
    return shared_driver
