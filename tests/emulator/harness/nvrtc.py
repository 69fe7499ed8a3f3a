"""CUDA text to PTX or cubin with the NVRTC of the pip wheel (or of a toolkit on the loader's path)."""
from __future__ import annotations

import ctypes
import functools
import site
import sys
from pathlib import Path


def _library_folders() -> list[Path]:
    roots = [Path(p) for p in [*site.getsitepackages(), site.getusersitepackages(), *sys.path] if p]
    return [folder for root in roots for folder in sorted(root.glob("nvidia/*/lib"))]


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    for folder in _library_folders():
        libraries = sorted(folder.glob("libnvrtc.so*"))
        if not libraries:
            continue
        for builtins in sorted(folder.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)  # NVRTC looks it up by name only
        return ctypes.CDLL(str(libraries[0]))
    return ctypes.CDLL("libnvrtc.so")


def _check(code: int, what: str) -> None:
    if code:
        _nvrtc().nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"{what}: {_nvrtc().nvrtcGetErrorString(code).decode()}")


def _log(program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _nvrtc().nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    _nvrtc().nvrtcGetProgramLog(program, text)
    return text.value.decode()


@functools.cache
def compile_cuda(source: str, arch: str, options: tuple[str, ...] = ()) -> bytes:
    """Compiles CUDA text. ``arch`` is ``compute_90a`` (returns PTX) or ``sm_90a`` (returns a cubin).

    Raises RuntimeError with the compiler's log.
    """
    lib, program = _nvrtc(), ctypes.c_void_p()
    _check(lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None), "nvrtcCreateProgram")
    flags = [f"--gpu-architecture={arch}", "-lineinfo", *options]
    array = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
    if lib.nvrtcCompileProgram(program, len(flags), array):
        raise RuntimeError("NVRTC failed:\n" + _log(program))
    kind = "PTX" if arch.startswith("compute") else "CUBIN"
    size = ctypes.c_size_t()
    _check(getattr(lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)), "size")
    image = ctypes.create_string_buffer(size.value)
    _check(getattr(lib, f"nvrtcGet{kind}")(program, image), "image")
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return image.raw
