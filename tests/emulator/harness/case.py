"""Replayable cases: the same buffers, tensor maps, parameters and kernel run on the emulator and on a GPU."""
from __future__ import annotations

import contextlib
import ctypes
import hashlib
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

from harness.cuda_driver import CudaDriver, CudaError, TensorMapSpec
from harness.nvrtc import compile_cuda

PRELUDE = (Path(__file__).resolve().parent.parent / "cases" / "prelude.inl").read_text()


@dataclass(frozen=True)
class Pointer:
    """A kernel parameter that points into a buffer of the case."""

    buffer: str
    offset: int = 0


Param = Union[Pointer, TensorMapSpec, bytes]


@dataclass(frozen=True)
class Case:
    """One launch. ``source`` follows the common prelude; ``outputs`` names the buffers to compare, bit for bit."""

    name: str
    source: str
    buffers: dict[str, bytes]
    params: tuple[Param, ...]
    outputs: tuple[str, ...]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (128,)
    cluster: tuple[int, ...] = (1, 1, 1)
    shared: int = 0
    arch: str = "sm90a"
    defines: tuple[str, ...] = field(default=())
    keeps_all: bool = False  # the record holds the whole outputs, not only their digests and heads

    def image(self, kind: str) -> bytes:
        """``kind`` is ``compute`` (PTX) or ``sm`` (cubin)."""
        return compile_cuda(self.prelude() + self.source, f"{kind}_{self.arch[2:]}", (*self.options(), *[f"-D{d}" for d in self.defines]))

    def prelude(self) -> str:
        """Text in front of the source."""
        return PRELUDE

    def options(self) -> tuple[str, ...]:
        """Further compiler options."""
        return ("-std=c++17",)

    def fingerprint(self) -> str:
        """Changes with everything that the outputs depend on."""
        text = [self.prelude(), self.source, self.options(), self.defines, self.params, self.outputs, self.grid, self.block, self.cluster, self.shared]
        state = hashlib.sha256(repr(text).encode())
        for name, data in sorted(self.buffers.items()):
            state.update(f"{name} {len(data)}".encode() + data)
        return state.hexdigest()[:16]

    def pack(self, parts: list[bytes]) -> list[bytes]:
        """The kernel's parameters from the bytes of ``params``: one each."""
        return parts


def run_case(driver: CudaDriver, case: Case) -> dict[str, bytes]:
    """Runs the case; returns the contents of its output buffers."""
    module = driver.load(case.image("compute" if driver.is_emulator else "sm"))
    pointers = {name: driver.alloc(data) for name, data in case.buffers.items()}
    try:
        function = driver.function(module, "kernel_main", case.shared)
        params = [_param_bytes(driver, param, pointers) for param in case.params]
        driver.launch(function, case.grid, case.block, case.pack(params), cluster=case.cluster, shared=case.shared)
        outputs = {name: driver.read(pointers[name], len(case.buffers[name])) for name in case.outputs}
    except CudaError:
        # After an error of the kernel every further call fails, too; the first error is the one to show.
        with contextlib.suppress(CudaError):
            _release(driver, module, pointers)
        raise
    _release(driver, module, pointers)
    return outputs


def _release(driver: CudaDriver, module: ctypes.c_void_p, pointers: dict[str, int]) -> None:
    for pointer in pointers.values():
        driver.free(pointer)
    driver.call("cuModuleUnload", module)


def _param_bytes(driver: CudaDriver, param: Param, pointers: dict[str, int]) -> bytes:
    if isinstance(param, Pointer):
        return struct.pack("<Q", pointers[param.buffer] + param.offset)
    if isinstance(param, TensorMapSpec):
        return driver.tensor_map(param, pointers[param.buffer])
    return param


def i32(value: int) -> bytes:
    return struct.pack("<i", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def random_bytes(seed: int, count: int) -> bytes:
    """The same bytes on every platform and Python version."""
    return random.Random(seed).randbytes(count)


def random_e4m3(seed: int, count: int, mask: int = 0xFF) -> bytes:
    """Random E4M3 values without NaN; ``mask`` clears bits (0xBF: small exponents)."""
    return bytes((b & mask) if (b & mask & 0x7F) != 0x7F else 0x38 for b in random_bytes(seed, count))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
