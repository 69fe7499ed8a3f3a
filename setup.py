"""Build of the extension: C++ only, every header from a build-time package, no PyTorch, no CUDA toolkit."""

import importlib.metadata
import os
import shutil
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent.resolve()
VERSION = "0.1.0"

# header -> the package that carries it
BUILD_HEADERS = {
    "fmt/format.h": "cmeel-fmt",
    "dlpack/dlpack.h": "apache-tvm-ffi",
    "cuda.h": "nvidia-cuda-runtime",
    "nvrtc.h": "nvidia-cuda-nvrtc",
}


def include_dir_of(header: str, package: str) -> str:
    """The folder that makes `#include <header>` work, found in the files of an installed package."""
    for file in importlib.metadata.files(package) or []:
        if file.as_posix().endswith("include/" + header):
            return str(Path(file.locate()).resolve().parents[header.count("/")])
    raise RuntimeError(f"{header} was not found in the installed package {package}; install it with pip")


class BuildPy(build_py):
    """Copies the device headers into the package, where the runtime compiler reads them."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "deep_gemm" / "include"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(ROOT / "include", target)


sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "csrc").rglob("*.cc"))
include_dirs = [str(ROOT / "csrc"), str(ROOT / "include")]
include_dirs += sorted({include_dir_of(header, package) for header, package in BUILD_HEADERS.items()})

ParallelCompile("DG_BUILD_JOBS", default=min(os.cpu_count() or 1, 8)).install()

setup(
    version=VERSION,
    ext_modules=[
        Pybind11Extension(
            "deep_gemm._C",
            sources,
            include_dirs=include_dirs,
            define_macros=[("DG_VERSION", f'"{VERSION}"')],
            extra_compile_args=["-O2", "-g0", "-Wall", "-Wextra", "-fvisibility=hidden"],
            libraries=["dl"],
            cxx_std=20,
        )
    ],
    cmdclass={"build_py": BuildPy},
)
