"""Quantisation and scaling-factor arithmetic in plain PyTorch, for CPU and GPU tensors.

Every function here is defined to the byte, so that quantised data can be compared across devices and across
tools: FP32 amax of at least 1e-4, a true FP32 division by the format's largest value, an FP32 reciprocal, an
FP32 product, rounding to nearest even. ``docs/scaling-factor-format.md`` draws the layouts. Nothing here
synchronises with the host except the value check of `pack_ue8m0_to_int`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from ..errors import refusal
from .blocks import (
    align,
    ceil_div,
    column_blocks,
    fitted,
    float_matrix,
    float_values,
    require_packable,
    scales_of,
)
from .expect import require_integers
from .fp4 import cast_back_from_fp4, per_token_cast_to_fp4, transpose_packed_fp4
from .ue8m0 import (
    ceil_to_ue8m0,
    join_codes,
    pack_ue8m0_to_int,
    require_multiple_of_four,
    ue8m0_codes,
    unpack_ue8m0_from_int,
)

__all__ = [
    "align",
    "cast_back_from_fp4",
    "ceil_div",
    "ceil_to_ue8m0",
    "pack_ue8m0_to_int",
    "per_block_cast_to_fp8",
    "per_channel_cast_to_fp8",
    "per_custom_dims_cast_to_fp8",
    "per_token_cast_to_fp4",
    "per_token_cast_to_fp8",
    "transpose_packed_fp4",
    "unpack_ue8m0_from_int",
]

FP8_E4M3_MAX = 448.0


def per_token_cast_to_fp8(
    x: torch.Tensor, use_ue8m0: bool, gran_k: int = 128, use_packed_ue8m0: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise each row in runs of ``gran_k`` columns to E4M3.

    Args:
        x: ``[M, N]``, floating; N need not be a multiple of ``gran_k`` (zeros stand in for the amax alone).
        use_ue8m0: round the scaling factors up to powers of two before quantising with them.
        gran_k: columns to one scaling factor.
        use_packed_ue8m0: return the scaling factors packed; needs ``use_ue8m0`` and
            ``ceil(N/gran_k) % 4 = 0``.

    Returns:
        ``(data, sf)``: data ``torch.float8_e4m3fn`` ``[M, N]``; sf FP32 ``[M, ceil(N/gran_k)]``, or int32
        ``[M, ceil(N/gran_k)/4]``; both row-major. ``x`` is about ``data * sf``.

    Raises:
        DeepGemmError: rank, dtype, granularity, or scaling factors that cannot be packed.

    Source: 1 x 128 activation scaling of the DeepSeek-V3 technical report, section 3.3.2.
    """
    require_packable(use_ue8m0, use_packed_ue8m0)
    blocks, num_columns = column_blocks(x, gran_k)
    sf = scales_of(blocks.abs().amax(-1), FP8_E4M3_MAX, use_ue8m0)
    if use_packed_ue8m0:
        require_multiple_of_four(sf)
    data = _quantise_fp8(blocks, sf.unsqueeze(-1)).flatten(1)[:, :num_columns].contiguous()
    return data, join_codes(ue8m0_codes(sf)) if use_packed_ue8m0 else sf


def per_channel_cast_to_fp8(
    x: torch.Tensor, use_ue8m0: bool, gran_k: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise each column in runs of ``gran_k`` rows to E4M3.

    Args:
        x: ``[M, N]``, floating, M a multiple of ``gran_k``.
        use_ue8m0: round the scaling factors up to powers of two before quantising with them.
        gran_k: rows to one scaling factor.

    Returns:
        ``(data, sf)``: data ``torch.float8_e4m3fn`` ``[M, N]``, sf FP32 ``[M/gran_k, N]``, both row-major.

    Raises:
        DeepGemmError: rank, dtype, granularity, or M that is no multiple of ``gran_k``.

    Source: the transposed form of `per_token_cast_to_fp8`, for operands that are contracted along their rows.
    """
    values = float_matrix(x, gran_k)
    num_rows, num_columns = values.shape
    if num_rows % gran_k != 0:
        raise refusal(
            "x",
            f"a row count that is a multiple of gran_k = {gran_k}",
            num_rows,
            "Pad with zero rows",
        )
    blocks = values.reshape(num_rows // gran_k, gran_k, num_columns)
    sf = scales_of(blocks.abs().amax(1), FP8_E4M3_MAX, use_ue8m0)
    return _quantise_fp8(blocks, sf.unsqueeze(1)).view(num_rows, num_columns), sf


def per_block_cast_to_fp8(
    x: torch.Tensor, use_ue8m0: bool, gran_k: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise square blocks of ``gran_k`` x ``gran_k`` to E4M3.

    Args:
        x: ``[M, N]``, floating; blocks at the edges are filled with zeros for the amax.
        use_ue8m0: round the scaling factors up to powers of two before quantising with them.
        gran_k: rows and columns to one scaling factor.

    Returns:
        ``(data, sf)``: data ``torch.float8_e4m3fn`` ``[M, N]``, sf FP32 ``[ceil(M/gran_k), ceil(N/gran_k)]``,
        both row-major.

    Raises:
        DeepGemmError: rank, dtype or granularity.

    Source: 128 x 128 weight scaling of the DeepSeek-V3 technical report, section 3.3.2.
    """
    values = float_matrix(x, gran_k)
    num_rows, num_columns = values.shape
    high, wide = fitted(gran_k, num_rows), fitted(gran_k, num_columns)
    padded = F.pad(values, (0, -num_columns % wide, 0, -num_rows % high))
    blocks = padded.view(ceil_div(num_rows, high), high, ceil_div(num_columns, wide), wide)
    sf = scales_of(blocks.abs().amax((1, 3)), FP8_E4M3_MAX, use_ue8m0)
    data = _quantise_fp8(blocks, sf[:, None, :, None]).view(padded.shape)
    return data[:num_rows, :num_columns].contiguous(), sf


def per_custom_dims_cast_to_fp8(
    x: torch.Tensor, dims: Sequence[int], use_ue8m0: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise to E4M3 with one scaling factor for each index of ``dims``.

    Args:
        x: any shape, floating.
        dims: the dimensions that keep a scaling factor of their own (negative ones count from the end); the
            amax runs over all others.
        use_ue8m0: round the scaling factors up to powers of two before quantising with them.

    Returns:
        ``(data, sf)``: data ``torch.float8_e4m3fn`` of ``x``'s shape; sf FP32, ``x``'s shape without the
        dimensions outside ``dims`` and without those of extent 1.

    Raises:
        DeepGemmError: dtype, or a dimension that ``x`` does not have.

    Source: `per_token_cast_to_fp8` with the reduced dimensions chosen freely.
    """
    values = float_values(x)
    require_integers(dims, "dims", "Name dimensions of x, such as (0,)")
    rank = values.dim()
    if any(not -rank <= dim < rank for dim in dims):
        raise refusal("dims", f"dimensions of x, which has {rank}", tuple(dims), "Name dimensions that x has")
    kept = {dim % rank for dim in dims}
    reduced = tuple(dim for dim in range(rank) if dim not in kept)
    magnitude = values.abs()
    if values.numel() == 0:  # an amax over nothing is the floor
        amax = magnitude.new_zeros([extent if dim in kept else 1 for dim, extent in enumerate(values.shape)])
    else:
        amax = magnitude.amax(reduced, keepdim=True) if reduced else magnitude
    sf = scales_of(amax, FP8_E4M3_MAX, use_ue8m0)
    return _quantise_fp8(values, sf).contiguous(), sf.squeeze()


def _quantise_fp8(values: torch.Tensor, sf: torch.Tensor) -> torch.Tensor:
    return (values * sf.reciprocal()).to(torch.float8_e4m3fn)
