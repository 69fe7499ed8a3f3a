"""A good FP8 GEMM call and the ways to spoil it, as data for tables of cases."""

import dataclasses
import math
import types
from typing import Callable, Optional

import torch

import deep_gemm
from fp8_operands import random_fp8, random_scales, storage_bytes

M, N, K = 64, 256, 384
BF16, F32 = torch.bfloat16, torch.float32


@dataclasses.dataclass
class Call:
    """A good call, for a case to spoil."""

    a: torch.Tensor
    sfa: torch.Tensor
    b: torch.Tensor
    sfb: torch.Tensor
    d: torch.Tensor
    c: Optional[torch.Tensor] = None
    layout: str = "nt"
    options: dict = dataclasses.field(default_factory=dict)

    def run(self):
        gemm = getattr(deep_gemm, f"fp8_gemm_{self.layout}")
        return gemm((self.a, self.sfa), (self.b, self.sfb), self.d, c=self.c, **self.options)


def good_call() -> Call:
    return Call(
        a=random_fp8(M, K, seed=1),
        sfa=random_scales(M, K // 128, seed=2),
        b=random_fp8(N, K, seed=3),
        sfb=random_scales(N // 128, K // 128, seed=4),
        d=torch.full((M, N), math.nan, dtype=BF16),
    )


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    spoil: Callable[[Call], object]
    words: tuple = ()  # all of them are in the message: the argument, what was expected, what came

    def __str__(self):
        return self.name


def put(**fields):
    """Replaces fields of the call; a value may be a function of the call."""

    def spoil(call: Call):
        for field, value in fields.items():
            setattr(call, field, value(call) if callable(value) else value)

    return spoil


def options(**values):
    return put(options=values)


def of_dtype(field: str, dtype: torch.dtype):
    """The argument, same shape, in another dtype."""
    return put(**{field: lambda call: torch.empty(getattr(call, field).shape, dtype=dtype)})


def reshaped(field: str, *shape: int):
    """The argument, same dtype, as zeros of another shape."""
    return put(**{field: lambda call: torch.zeros(shape, dtype=torch.float32).to(getattr(call, field).dtype)})


def separate_c(shape=(M, N), dtype=BF16):
    return put(c=lambda call: torch.full(shape, 3.0, dtype=dtype))


def strided(field: str, shape, strides, offset=0):
    """The argument as a view with these strides of a big enough buffer of its dtype."""
    last = offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    return put(
        **{
            field: lambda call: torch.zeros(last + 16)
            .to(getattr(call, field).dtype)
            .as_strided(shape, strides, offset)
        }
    )


class LookAlike:
    """What another framework's tensor shows of itself. It claims to live elsewhere: nobody may touch its memory."""

    def __init__(self, tensor: torch.Tensor, device: str):
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, torch.device(device)
        self.tensor = tensor

    def stride(self):
        return self.tensor.stride()

    def data_ptr(self):
        return self.tensor.data_ptr()


def stream_of(device: int) -> int:
    """The handle of the stream that look-alikes on CUDA device `device` are used on."""
    return 0x1000 * (1 + device)


cuda = types.SimpleNamespace(
    current_stream=lambda device: types.SimpleNamespace(cuda_stream=stream_of(device))
)


def moved(field: str, device: str):
    return put(**{field: lambda call: LookAlike(getattr(call, field), device)})


def on_meta(field: str):
    return put(**{field: lambda call: getattr(call, field).to("meta")})


def overlapping_d(field: str):
    """D placed over the bytes of an input."""

    def spoil(call: Call):
        size = 2 * M * N
        source = getattr(call, field)
        flat = source.contiguous().view(torch.uint8).flatten()
        buffer = torch.zeros(size + flat.numel(), dtype=torch.uint8)
        begin = size - 16  # the last 16 bytes of D are the first of the input
        buffer[begin : begin + flat.numel()] = flat
        setattr(call, field, buffer[begin : begin + flat.numel()].view(source.dtype).view(source.shape))
        call.d = buffer[:size].view(BF16).view(M, N)

    return spoil


def c_beside_d(row_shift: int, column_shift: int):
    """C and D as windows of one buffer."""

    def spoil(call: Call):
        buffer = torch.zeros(2 * M, 2 * N, dtype=BF16)
        call.d = buffer[:M, :N]
        call.c = buffer[row_shift : row_shift + M, column_shift : column_shift + N]

    return spoil


def both(*spoils):
    def spoil(call: Call):
        for each in spoils:
            each(call)

    return spoil


POISON = 0x5A


def lives_here(t) -> bool:
    """Whether `t` is a tensor whose memory can be read."""
    return isinstance(t, torch.Tensor) and t.device.type in ("cpu", "cuda")


def poison(t: Optional[torch.Tensor]):
    """Overwrites every byte behind `t`, so that whatever a refused call writes there shows."""
    if lives_here(t):
        torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage()).fill_(POISON)


def still_poisoned(t: Optional[torch.Tensor]) -> bool:
    """Whether nothing was written behind `t` since poison()."""
    return not lives_here(t) or bool((storage_bytes(t) == POISON).all())


def copied_to(call: Call, device: str) -> Call:
    """The call with its tensors on `device`: one copy of each storage, so that views, gaps and overlaps stay."""
    storages = {}

    def copy(t):
        if not lives_here(t):
            return t
        source = t.untyped_storage()
        if source.data_ptr() not in storages:
            whole = torch.empty(0, dtype=torch.uint8).set_(source)
            storages[source.data_ptr()] = whole.to(device, copy=True).untyped_storage()
        target = storages[source.data_ptr()]
        return torch.empty(0, dtype=t.dtype, device=device).set_(
            target, t.storage_offset(), t.shape, t.stride()
        )

    fields = {name: copy(getattr(call, name)) for name in ("a", "sfa", "b", "sfb", "d", "c")}
    return dataclasses.replace(call, **fields)
