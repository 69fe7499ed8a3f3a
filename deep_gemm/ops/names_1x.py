"""The names and argument names of the 1.x releases, on today's functions."""

from __future__ import annotations

from torch import Tensor

from .fp8_gemm import Pair, fp8_gemm_nt


def gemm_fp8_fp8_bf16_nt(lhs: Pair, rhs: Pair, out: Tensor) -> None:
    """1.x name of `fp8_gemm_nt(lhs, rhs, out)`; shapes, dtypes and errors as there."""
    fp8_gemm_nt(lhs, rhs, out)
