"""UE8M0 scaling factors: exact powers of two, stored as the exponent byte of FP32 (255 is NaN).

Plain PyTorch, for CPU and GPU tensors. Nothing here waits for the device except the value check of
`pack_ue8m0_to_int`.
"""

from __future__ import annotations

import torch

from ..errors import refusal
from .expect import require_tensor

__all__ = [
    "ceil_to_ue8m0",
    "flat",
    "is_e8m0",
    "join_codes",
    "pack_ue8m0_to_int",
    "require_multiple_of_four",
    "ue8m0_codes",
    "ue8m0_codes_to_float",
    "unpack_ue8m0_from_int",
]

UE8M0_NAN = 255
_E8M0_DTYPE = getattr(torch, "float8_e8m0fnu", None)  # since PyTorch 2.7
_FP32_EXPONENT_MASK = 0x7F800000
_FP32_NAN_BITS = 0x7FC00000
_FP32_MINUS_ZERO_BITS = -(2**31)
_FP32_TWO_TO_MINUS_127_BITS = 0x00400000  # subnormal: the one value of UE8M0 below FP32's normal range


def ceil_to_ue8m0(x: torch.Tensor) -> torch.Tensor:
    """Round magnitudes up to a power of two.

    Args:
        x: any shape, any floating dtype (read as FP32).

    Returns:
        FP32 of the same shape: the least power of two at or above ``|x|``, held within 2^-126 … 2^127.
        Infinity and NaN give 2^127.

    Raises:
        DeepGemmError: ``x`` is no dense tensor.

    Source: exponent arithmetic on the IEEE 754 binary32 encoding; the range is that of FP32's normal numbers.
    """
    require_tensor(x, "x")
    magnitude_bits = x.detach().to(torch.float32).abs().view(torch.int32)
    exponent = (magnitude_bits >> 23) + ((magnitude_bits & 0x7FFFFF) != 0)
    return (exponent.clamp(1, 254) << 23).view(torch.float32)


def is_e8m0(sf: torch.Tensor) -> bool:
    """Whether ``sf`` has PyTorch's own UE8M0 dtype, one code a byte."""
    return _E8M0_DTYPE is not None and sf.dtype == _E8M0_DTYPE


def ue8m0_codes(sf: torch.Tensor) -> torch.Tensor:
    """UE8M0 code (the exponent byte) of every FP32 scaling factor; nothing is rounded.

    Args:
        sf: FP32, or ``torch.float8_e8m0fnu`` (whose bytes are the codes); any shape and strides.

    Returns:
        uint8 of the same shape: e for 2^(e-127), 0 for zero, 255 for whatever is neither a power of two that
        UE8M0 holds (2^-127 … 2^127) nor zero, so that what it scales turns NaN.

    Source: the E8M0 format of the OCP Microscaling Formats (MX) specification, version 1.0.
    """
    if is_e8m0(sf):
        return sf.detach().view(torch.uint8)
    bits = sf.detach().view(torch.int32)
    is_power = (bits & ~_FP32_EXPONENT_MASK) == 0  # neither sign nor mantissa; infinity's exponent is 255 too
    is_least = (bits == _FP32_TWO_TO_MINUS_127_BITS) | (bits == _FP32_MINUS_ZERO_BITS)
    return torch.where(is_power, bits >> 23, UE8M0_NAN).masked_fill(is_least, 0).to(torch.uint8)


def ue8m0_codes_to_float(codes: torch.Tensor) -> torch.Tensor:
    """FP32 value of every UE8M0 code (uint8, any shape): 2^(code-127), NaN for 255."""
    exponent = codes.to(torch.int32)
    bits = (exponent << 23).masked_fill(exponent == 0, _FP32_TWO_TO_MINUS_127_BITS)
    return bits.masked_fill(exponent == UE8M0_NAN, _FP32_NAN_BITS).view(torch.float32)


def pack_ue8m0_to_int(x: torch.Tensor) -> torch.Tensor:
    """Pack FP32 powers of two: four along the last dimension to one int32, the first in the lowest byte.

    Args:
        x: FP32 ``[..., 4n]``, every value a power of two in 2^-127 … 2^127.

    Returns:
        int32 ``[..., n]``, contiguous, four UE8M0 codes each.

    Raises:
        DeepGemmError: another dtype, a last dimension that is no multiple of 4, or a value that is no power
            of two. The value check waits for the device; while a CUDA graph is being captured, or a program
            traced, it is left out, and such a value packs to 255 (NaN), a zero to 0.

    Source: E8M0 of the OCP MX specification; little-endian byte order within the word.
    """
    require_tensor(x, "x")
    if x.dtype != torch.float32:
        raise refusal("x", "torch.float32", x.dtype, "Convert the scaling factors with .float() first")
    require_multiple_of_four(x)
    codes = ue8m0_codes(x)
    if _may_read_values(x) and bool(((codes == UE8M0_NAN) | (x.detach() == 0)).any()):
        raise refusal(
            "x",
            "powers of two in 2^-127 … 2^127",
            "at least one other value",
            "Round the scaling factors with ceil_to_ue8m0 before quantising with them",
        )
    return join_codes(codes)


def unpack_ue8m0_from_int(packed: torch.Tensor) -> torch.Tensor:
    """Unpack what `pack_ue8m0_to_int` packed.

    Args:
        packed: int32 ``[..., n]``, any strides.

    Returns:
        FP32 ``[..., 4n]``, contiguous: 2^(code-127) for each byte, lowest first; NaN for 255.

    Raises:
        DeepGemmError: another dtype, or no dimension.

    Source: E8M0 of the OCP MX specification.
    """
    require_tensor(packed, "packed")
    if packed.dtype != torch.int32 or packed.dim() == 0:
        raise refusal(
            "packed",
            "torch.int32 with at least one dimension",
            f"{packed.dtype} with {packed.dim()}",
            "Pass the packed scaling factors",
        )
    codes = flat(packed.detach()).view(torch.uint8)
    return ue8m0_codes_to_float(codes).view(*packed.shape[:-1], packed.shape[-1] * 4)


def join_codes(codes: torch.Tensor) -> torch.Tensor:
    """Four uint8 codes along the last dimension to one int32, the first in the lowest byte; contiguous."""
    return flat(codes).view(torch.int32).view(*codes.shape[:-1], codes.shape[-1] // 4)


def flat(x: torch.Tensor) -> torch.Tensor:
    """The elements of ``x`` in row-major order, one dimension, stride 1; a view where possible.

    Unlike ``view(-1)`` it yields stride 1 whatever strides extents of 0 and 1 have, as a view of another
    element size demands.
    """
    return x.contiguous().as_strided((x.numel(),), (1,))


def require_multiple_of_four(sf: torch.Tensor) -> None:
    """Refuse scaling factors whose last dimension does not fill whole words."""
    if sf.dim() == 0 or sf.shape[-1] % 4 != 0:
        raise refusal(
            "scaling factors to pack",
            "a last dimension that is a multiple of 4",
            f"shape {tuple(sf.shape)}",
            "Pad the columns, or use get_mn_major_tma_aligned_packed_ue8m0_tensor, which pads with 0",
        )


def _may_read_values(x: torch.Tensor) -> bool:
    """Whether the host may wait for ``x``: not while a program is traced or a CUDA graph captured."""
    if torch.compiler.is_compiling():
        return False
    if not x.is_cuda:
        return True
    with torch.cuda.device(x.device):
        return not torch.cuda.is_current_stream_capturing()
