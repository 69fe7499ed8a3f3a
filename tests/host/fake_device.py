"""Runs code in a fresh process where the CUDA driver is the one of fake_driver.cc and tensors are look-alikes.

The extension is loaded alone (a package of its own name, no PyTorch), so these tests also hold it to needing neither.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PRELUDE = '''
import ctypes, os, sys, types
from renamed import _C

fake = ctypes.CDLL(os.environ["DG_DRIVER_LIBRARY"])
fake.fake_log.restype = ctypes.c_char_p
_C.set_include_root(os.environ["DG_TEST_INCLUDE"])
_C.set_nvrtc_search_path(os.environ["DG_TEST_NVRTC"].split(os.pathsep))

framework = types.ModuleType("lookalike")
framework.cuda = types.SimpleNamespace(
    current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x1000 + device))
sys.modules["lookalike"] = framework

class Tensor:
    """Memory that nobody reads, at an address of our choice."""
    __module__ = "lookalike"

    def __init__(self, address, dtype, shape, stride=None, device=("cuda", 0)):
        self.address, self.dtype, self.shape = address, "lookalike." + dtype, tuple(shape)
        self.strides = tuple(stride) if stride else tuple(_packed(shape))
        self.device = types.SimpleNamespace(type=device[0], index=device[1])

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.strides

def _packed(shape):
    step, out = 1, []
    for extent in reversed(shape):
        out.insert(0, step)
        step *= extent
    return out

def operands(m, n, k, device=0, d_dtype="bfloat16"):
    where = ("cuda", device)
    blocks = (k + 127) // 128
    a = (Tensor(0x100000000, "float8_e4m3fn", (m, k), device=where), Tensor(0x200000000, "float32", (m, blocks), device=where))
    b = (Tensor(0x300000000, "float8_e4m3fn", (n, k), device=where),
         Tensor(0x400000000, "float32", ((n + 127) // 128, blocks), device=where))
    return a, b, Tensor(0x500000000, d_dtype, (m, n), device=where)

def gemm(a, b, d, c=None):
    return _C.fp8_gemm_nt(a, b, d, c, None, None, None, "nk", False)

def log(name=""):
    """Lines of the driver's log since the last call that hold `name`."""
    lines = [line for line in fake.fake_log().decode().splitlines() if name in line]
    fake.fake_clear()
    return lines

def refusal(call, *args):
    try:
        call(*args)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("not refused")
'''


def build_driver(folder):
    """Compiles the fake driver; returns its path, or None where there is no C++ compiler."""
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        return None
    library = folder / "libfakecuda.so"
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", str(HERE / "fake_driver.cc"), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def lone_extension(folder):
    """A package `renamed` that holds the built extension and its error class alone; returns the folder to import from."""
    import deep_gemm._C

    package = folder / "renamed"
    package.mkdir()
    built = Path(deep_gemm._C.__file__)
    shutil.copy(built, package / built.name)
    shutil.copy(built.parent / "errors.py", package / "errors.py")
    (package / "__init__.py").touch()
    return folder


def run(code, environment):
    """Runs `code` after the prelude in a fresh process; fails with its output if it does not exit with 0."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + code], env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert done.returncode == 0, done.stdout
    return done.stdout
