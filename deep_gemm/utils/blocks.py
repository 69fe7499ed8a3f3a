"""What the casts to FP8 and FP4 share: integer rounding, blocks of a matrix, scaling factors of maxima."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..errors import refusal
from .expect import require_integer, require_tensor
from .ue8m0 import ceil_to_ue8m0

__all__ = [
    "align",
    "ceil_div",
    "column_blocks",
    "fitted",
    "float_matrix",
    "float_values",
    "require_packable",
    "require_positive",
    "scales_of",
]

AMAX_FLOOR = 1e-4


def ceil_div(x: int, y: int) -> int:
    """Quotient of two non-negative integers, rounded up (``y`` > 0)."""
    return (x + y - 1) // y


def align(x: int, y: int) -> int:
    """``x`` rounded up to a multiple of ``y`` (``y`` > 0)."""
    return ceil_div(x, y) * y


def scales_of(amax: torch.Tensor, largest: float, use_ue8m0: bool) -> torch.Tensor:
    """FP32 scaling factors of FP32 maxima: ``max(amax, 1e-4) / largest``, rounded up to UE8M0 if asked."""
    # The divisor is a tensor on purpose: PyTorch's CUDA division by a number multiplies by its reciprocal,
    # which differs from the quotient in the last bit.
    sf = amax.clamp(min=AMAX_FLOOR) / torch.full((), largest, dtype=torch.float32, device=amax.device)
    return ceil_to_ue8m0(sf) if use_ue8m0 else sf


def float_values(x: torch.Tensor) -> torch.Tensor:
    """``x`` in FP32, cut from autograd; refused unless it is a dense floating tensor."""
    require_tensor(x, "x")
    if not x.dtype.is_floating_point:
        raise refusal("x", "a floating-point dtype", x.dtype, "Pass the values before quantisation")
    return x.detach().to(torch.float32)


def float_matrix(x: torch.Tensor, gran_k: int) -> torch.Tensor:
    """The matrix ``x`` in FP32, row-major; refused unless it is one and ``gran_k`` is positive."""
    require_tensor(x, "x")
    if x.dim() != 2:
        raise refusal("x", "a matrix", f"shape {tuple(x.shape)}", "Flatten the leading dimensions")
    require_positive(gran_k)
    return float_values(x).contiguous()


def column_blocks(x: torch.Tensor, gran_k: int) -> tuple[torch.Tensor, int]:
    """The matrix ``x`` in FP32 as ``[M, ceil(N/gran_k), min(gran_k, N)]``, zero-padded, and its N."""
    values = float_matrix(x, gran_k)
    num_rows, num_columns = values.shape
    gran_k = fitted(gran_k, num_columns)
    padded = F.pad(values, (0, -num_columns % gran_k)) if num_columns % gran_k else values
    return padded.reshape(num_rows, ceil_div(num_columns, gran_k), gran_k), num_columns


def fitted(gran_k: int, extent: int) -> int:
    """The granularity that gives ``extent`` the same blocks and pads it least: one block is as long as it has to be."""
    return min(gran_k, max(extent, 1))


def require_positive(gran_k: int) -> None:
    """Refuse a granularity that is no positive integer."""
    require_integer(gran_k, "gran_k", "Use 32 or 128")
    if gran_k <= 0:
        raise refusal("gran_k", "a positive number", gran_k, "Use 32 or 128")


def require_packable(use_ue8m0: bool, use_packed_ue8m0: bool) -> None:
    """Refuse packing of scaling factors that are not powers of two by construction."""
    if use_packed_ue8m0 and not use_ue8m0:
        raise refusal("use_packed_ue8m0", "False while use_ue8m0 is False", True, "Pass use_ue8m0=True")
