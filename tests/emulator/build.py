#!/usr/bin/env python3
"""Builds the emulator library and prints its path.

The build is kept under ``build/emulator/<digest>`` (or ``$DG_EMULATOR_BUILD_DIR``), where the digest covers the
sources, the compiler and the processor: a second call with unchanged sources only prints the path.
"""
from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = "libdeep_gemm_emulator.so"


def source_files() -> list[Path]:
    """All files that decide the content of the library, in a fixed order."""
    return sorted([*HERE.glob("*/*.cc"), *HERE.glob("*/*.h"), HERE / "CMakeLists.txt"])


def processor_flags() -> str:
    """The instruction sets of this processor (the library is built for it)."""
    try:
        return next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return platform.processor()


def digest() -> str:
    """Content hash of sources, compiler and processor."""
    compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], capture_output=True, text=True, check=True).stdout
    state = hashlib.sha256((compiler + processor_flags()).encode())
    for path in source_files():
        state.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()[:16]


def build(jobs: int = 2) -> Path:
    """Builds if needed. Returns the path of the library; raises CalledProcessError when the build fails."""
    root = Path(os.environ.get("DG_EMULATOR_BUILD_DIR", HERE.parent.parent / "build" / "emulator"))
    finished = root / digest() / LIBRARY
    if finished.exists():
        return finished
    work = root / f"work-{os.getpid()}"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    try:
        subprocess.run(["cmake", "-S", str(HERE), "-B", str(work), *generator], check=True, stdout=sys.stderr)
        subprocess.run(["cmake", "--build", str(work), "-j", str(jobs)], check=True, stdout=sys.stderr)
        finished.parent.mkdir(parents=True, exist_ok=True)
        partial = finished.with_suffix(f".{os.getpid()}")
        shutil.copy2(work / LIBRARY, partial)
        partial.replace(finished)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return finished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    print(build(parser.parse_args().jobs))


if __name__ == "__main__":
    main()
