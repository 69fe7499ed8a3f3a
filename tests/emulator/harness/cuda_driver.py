"""The CUDA driver API through ctypes: the same calls reach the real driver and the emulator."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Sequence


class _AttributeValue(ctypes.Union):
    _fields_ = [("bytes", ctypes.c_char * 64), ("flag", ctypes.c_int), ("dims", ctypes.c_uint * 3)]


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_char * 4), ("value", _AttributeValue)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


class CudaError(RuntimeError):
    """A driver call failed; ``report`` is the emulator's text (empty on a real driver)."""

    def __init__(self, call: str, code: int, report: str) -> None:
        super().__init__(f"{call} failed with code {code}\n{report}")
        self.report = report


@dataclass(frozen=True)
class TensorMapSpec:
    """Arguments of ``cuTensorMapEncodeTiled``; ``buffer`` names a buffer of the case, strides are bytes."""

    buffer: str
    dtype: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    offset: int = 0
    nan_fill: bool = False


class CudaDriver:
    """One device and its primary context. ``path`` is ``libcuda.so.1`` or the emulator's library."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        self.is_emulator = hasattr(self.lib, "dg_emulator_report")
        if self.is_emulator:
            for name in ("report", "statistics", "timeline"):
                getattr(self.lib, f"dg_emulator_{name}").restype = ctypes.c_char_p
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Calls a driver function; raises CudaError unless it returns zero."""
        code = getattr(self.lib, name)(*arguments)
        if code:
            raise CudaError(name, code, self.text("report") if self.is_emulator else "")

    def text(self, what: str) -> str:
        """``report``, ``statistics`` (JSON) or ``timeline`` of the emulator."""
        return getattr(self.lib, f"dg_emulator_{what}")().decode()

    def set(self, key: str, value: str) -> None:
        """An emulator setting; an unknown key raises KeyError."""
        if self.lib.dg_emulator_set(key.encode(), value.encode()):
            raise KeyError(key)

    def compute_capability(self) -> tuple[int, int]:
        values = []
        for attribute in (75, 76):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, 0)
            values.append(value.value)
        return values[0], values[1]

    def alloc(self, data: bytes) -> int:
        """Device memory with this content."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
        return pointer.value

    def read(self, pointer: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data.raw

    def free(self, pointer: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def load(self, image: bytes) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def function(self, module: ctypes.c_void_p, name: str, shared: int = 0, large_cluster: bool = False) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, 8, shared)
        if large_cluster:
            self.call("cuFuncSetAttribute", function, 14, 1)
        return function

    def tensor_map(self, spec: TensorMapSpec, base: int) -> bytes:
        """The 128 bytes of a tensor map."""
        rank = len(spec.dims)
        storage = ctypes.create_string_buffer(128 + 64)
        aligned = (ctypes.addressof(storage) + 63) // 64 * 64
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(aligned), spec.dtype, rank, ctypes.c_void_p(base + spec.offset),
                  (ctypes.c_uint64 * rank)(*spec.dims), (ctypes.c_uint64 * max(rank - 1, 1))(*spec.strides), (ctypes.c_uint32 * rank)(*spec.box),
                  (ctypes.c_uint32 * rank)(*[1] * rank), 0, spec.swizzle, 0, int(spec.nan_fill))
        return ctypes.string_at(aligned, 128)

    def launch(self, function: ctypes.c_void_p, grid: Sequence[int], block: Sequence[int], params: Sequence[bytes], *,
               cluster: Sequence[int] = (1, 1, 1), shared: int = 0) -> None:
        """Launches and waits. ``params`` are the raw bytes of each parameter."""
        buffers = [self._aligned(p) for p in params]
        array = (ctypes.c_void_p * max(len(buffers), 1))(*[address for _, address in buffers])
        attribute = _Attribute(id=4)
        attribute.value.dims[:] = list(cluster)
        config = _LaunchConfig(*_three(grid), *_three(block), shared, None, ctypes.pointer(attribute), int(tuple(cluster) != (1, 1, 1)))
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, array, None)
        self.call("cuCtxSynchronize")

    @staticmethod
    def _aligned(data: bytes) -> tuple[ctypes.Array, int]:
        storage = ctypes.create_string_buffer(len(data) + 64)
        address = (ctypes.addressof(storage) + 63) // 64 * 64
        ctypes.memmove(address, data, len(data))
        return storage, address


def _three(dims: Sequence[int]) -> tuple[int, int, int]:
    return (*dims, 1, 1)[:3]
