"""E2M1 (FP4) in PyTorch: two codes a byte, the even column in the low nibble.

Defined to the byte, like the FP8 casts of ``math.py``; nothing here synchronises with the host.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..errors import refusal
from .blocks import align, ceil_div, column_blocks, fitted, require_packable, require_positive, scales_of
from .expect import require_tensor
from .ue8m0 import join_codes, ue8m0_codes, unpack_ue8m0_from_int

__all__ = ["cast_back_from_fp4", "per_token_cast_to_fp4", "transpose_packed_fp4"]

FP4_E2M1_MAX = 6.0
# Half-way points between neighbouring E2M1 magnitudes 0, .5, 1, 1.5, 2, 3, 4, 6.
FP4_E2M1_MIDPOINTS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)


def per_token_cast_to_fp4(
    x: torch.Tensor, use_ue8m0: bool, gran_k: int = 128, use_packed_ue8m0: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise each row in runs of ``gran_k`` columns to E2M1, two codes a byte.

    A code is the sign and the count of .25, .75, 1.25, 1.75, 2.5, 3.5, 5 that lie strictly below the
    magnitude of ``x * (1/sf)``: to nearest, ties towards zero. Zero has no sign. E2M1 has no NaN: a NaN
    becomes 0, and shows in its run's scaling factor alone (NaN in FP32, 2^127 in UE8M0).

    Args:
        x: ``[M, N]``, floating, N even (zeros stand in beyond N for the amax alone).
        use_ue8m0: round the scaling factors up to powers of two before quantising with them.
        gran_k: columns to one scaling factor.
        use_packed_ue8m0: return the scaling factors packed, filled up with 1.0 to a multiple of 4 columns;
            needs ``use_ue8m0``.

    Returns:
        ``(data, sf)``: data int8 ``[M, N/2]``, the even column in the low nibble; sf FP32
        ``[M, ceil(N/gran_k)]`` (amax / 6), or int32 ``[M, ceil(N/(4*gran_k))]``; both row-major.

    Raises:
        DeepGemmError: rank, dtype, granularity, odd N, or packing without ``use_ue8m0``.

    Source: E2M1 of the OCP MX specification, version 1.0; the rule for ties is this library's contract.
    """
    require_packable(use_ue8m0, use_packed_ue8m0)
    blocks, num_columns = column_blocks(x, gran_k)
    if num_columns % 2 != 0:
        raise refusal("x", "an even number of columns", num_columns, "Pad the columns with zeros")
    sf = scales_of(blocks.abs().amax(-1), FP4_E2M1_MAX, use_ue8m0)
    scaled = (blocks * sf.reciprocal().unsqueeze(-1)).flatten(1)[:, :num_columns]
    data = _join_nibbles(_encode_e2m1(scaled))
    if use_packed_ue8m0:
        sf = join_codes(ue8m0_codes(F.pad(sf, (0, -sf.shape[1] % 4), value=1.0)))
    return data, sf


def cast_back_from_fp4(
    packed: torch.Tensor, sf: torch.Tensor, gran_k: int = 128, use_packed_ue8m0: bool = False
) -> torch.Tensor:
    """Turn packed E2M1 codes and their scaling factors back into FP32.

    Args:
        packed: int8 (or ``torch.float4_e2m1fn_x2``) ``[M, N/2]``, low nibble first.
        sf: FP32 ``[M, ceil(N/gran_k)]``, or filled up to a multiple of 4 columns; with ``use_packed_ue8m0``
            int32 ``[M, ceil(N/(4*gran_k))]``; any strides.
        gran_k: columns to one scaling factor.
        use_packed_ue8m0: whether ``sf`` is packed.

    Returns:
        FP32 ``[M, N]``: the code's value times its scaling factor, an FP32 product.

    Raises:
        DeepGemmError: dtype, rank or shape of either argument.

    Source: E2M1 of the OCP MX specification, version 1.0.
    """
    codes = _split_nibbles(packed, "packed")
    require_positive(gran_k)
    require_tensor(sf, "sf")
    num_rows, num_columns = codes.shape
    wanted_dtype = torch.int32 if use_packed_ue8m0 else torch.float32
    wanted_shape = (num_rows, ceil_div(num_columns, 4 * gran_k if use_packed_ue8m0 else gran_k))
    filled_shape = wanted_shape if use_packed_ue8m0 else (num_rows, align(wanted_shape[1], 4))
    if sf.dtype != wanted_dtype or tuple(sf.shape) not in (wanted_shape, filled_shape):
        raise refusal(
            "sf",
            f"{wanted_dtype} {wanted_shape} for {num_columns} columns, gran_k = {gran_k}",
            f"{sf.dtype} {tuple(sf.shape)}",
            "Pass the scaling factors that belong to packed, and use_packed_ue8m0 as they were made",
        )
    scales = unpack_ue8m0_from_int(sf) if use_packed_ue8m0 else sf.detach()
    return _decode_e2m1(codes) * scales.repeat_interleave(fitted(gran_k, num_columns), dim=1)[:, :num_columns]


def transpose_packed_fp4(a: torch.Tensor) -> torch.Tensor:
    """Transpose a matrix of packed E2M1 codes.

    Args:
        a: int8 (or ``torch.float4_e2m1fn_x2``) ``[M, N/2]``, low nibble first, M even.

    Returns:
        ``[N, M/2]`` of the same dtype, row-major: the codes of the transposed ``[N, M]`` matrix, low nibble
        first.

    Raises:
        DeepGemmError: dtype, rank, or odd M.

    Source: the definition of the packed format; codes are moved, never decoded.
    """
    codes = _split_nibbles(a, "a")
    if codes.shape[0] % 2 != 0:
        raise refusal("a", "an even number of rows", codes.shape[0], "Pad the rows with zeros")
    return _join_nibbles(codes.t()).view(a.dtype)


def _encode_e2m1(scaled: torch.Tensor) -> torch.Tensor:
    """E2M1 codes (uint8, 0 … 15) of FP32 values, ties towards zero, no minus zero."""
    magnitude = scaled.abs()
    code = torch.zeros_like(magnitude, dtype=torch.uint8)
    for midpoint in FP4_E2M1_MIDPOINTS:
        code += magnitude > midpoint
    return code + ((scaled < 0) & (code > 0)).to(torch.uint8) * 8


def _decode_e2m1(codes: torch.Tensor) -> torch.Tensor:
    """FP32 values of E2M1 codes (uint8), put together as FP32 bits: no table has to travel to the device."""
    magnitude = (codes & 7).to(torch.int32)
    half_bits = 252 << 22  # 0.5; from 1.0 up, codes and FP32's upper bits count in the same steps
    bits = torch.where(magnitude >= 2, (magnitude + 252) << 22, magnitude * half_bits)
    return torch.where(codes >= 8, -bits.view(torch.float32), bits.view(torch.float32))


def _join_nibbles(codes: torch.Tensor) -> torch.Tensor:
    return (codes[:, 0::2] + codes[:, 1::2] * 16).contiguous().view(torch.int8)


def _split_nibbles(packed: torch.Tensor, argument: str) -> torch.Tensor:
    """E2M1 codes (uint8 ``[M, N]``) of a packed matrix ``[M, N/2]``."""
    require_tensor(packed, argument)
    if packed.dtype not in (torch.int8, getattr(torch, "float4_e2m1fn_x2", torch.int8)) or packed.dim() != 2:
        raise refusal(
            argument,
            "a matrix of two E2M1 codes a byte in torch.int8",
            f"{packed.dtype} with {packed.dim()} dimensions",
            "Quantise with per_token_cast_to_fp4",
        )
    both = packed.detach().contiguous().view(torch.uint8)
    return torch.stack((both & 15, both >> 4), dim=-1).flatten(1)
