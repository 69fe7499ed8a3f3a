"""Build of the extension: C++ only, every header from a build-time package, no PyTorch, no CUDA toolkit."""

import importlib.metadata
import os
import shutil
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
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


def project_files(folder: str, *suffixes: str) -> list:
    """Files under a folder of the project by suffix, relative to the project as setuptools wants them, in a fixed order."""
    files = (path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    return sorted(str(path.relative_to(ROOT)) for path in files)


def needs_recompile(obj: str, source: str) -> bool:
    """Whether an object is older than this script, its source, or a header that the compiler listed beside it."""
    try:
        built = os.stat(obj).st_mtime
        listed = Path(obj).with_suffix(".d").read_text().replace("\\\n", " ").split(":", 1)[1].split()
        return any(os.stat(file).st_mtime > built for file in [__file__, source, *listed])
    except (OSError, IndexError):
        return True


class BuildPy(build_py):
    """Copies the device headers into the package, where the runtime compiler reads them."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "deep_gemm" / "include"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(ROOT / "include", target)


class BuildExt(build_ext):
    """Also leaves the extension in the source tree, where an interpreter started in a checkout looks first."""

    def run(self):
        super().run()
        if not self.inplace:
            self.copy_extensions_to_source()


os.chdir(ROOT)
include_dirs = [str(ROOT / "csrc"), str(ROOT / "include")]
include_dirs += sorted({include_dir_of(header, package) for header, package in BUILD_HEADERS.items()})
exports = "csrc/bindings/exports.map"

ParallelCompile("DG_BUILD_JOBS", default=min(os.cpu_count() or 1, 8), needs_recompile=needs_recompile).install()

setup(
    version=VERSION,
    ext_modules=[
        Pybind11Extension(
            "deep_gemm._C",
            project_files("csrc", ".cc"),
            # Also what a source distribution carries besides the sources.
            depends=["setup.py", exports, *project_files("csrc", ".h"), *project_files("include", ".h", ".cuh")],
            include_dirs=include_dirs,
            define_macros=[("DG_VERSION", f'"{VERSION}"')],
            extra_compile_args=["-O2", "-g0", "-Wall", "-Wextra", "-fvisibility=hidden", "-MMD"],
            extra_link_args=[f"-Wl,--version-script={exports}"],
            libraries=["dl"],
            cxx_std=20,
        )
    ],
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
)
