"""The names and argument names of the 1.x releases, on today's functions."""

from __future__ import annotations

from torch import Tensor

from .fp8_gemm import Pair, fp8_gemm_nt
from .m_grouped_fp8_gemm import m_grouped_fp8_gemm_nt_contiguous, m_grouped_fp8_gemm_nt_masked


def gemm_fp8_fp8_bf16_nt(lhs: Pair, rhs: Pair, out: Tensor) -> None:
    """1.x name of `fp8_gemm_nt(lhs, rhs, out)`; shapes, dtypes and errors as there."""
    fp8_gemm_nt(lhs, rhs, out)


def m_grouped_gemm_fp8_fp8_bf16_nt_contiguous(lhs: Pair, rhs: Pair, out: Tensor, m_indices: Tensor) -> None:
    """1.x name of `m_grouped_fp8_gemm_nt_contiguous(lhs, rhs, out, m_indices)`; shapes, dtypes and errors as there."""
    m_grouped_fp8_gemm_nt_contiguous(lhs, rhs, out, m_indices)


def m_grouped_gemm_fp8_fp8_bf16_nt_masked(lhs: Pair, rhs: Pair, out: Tensor, masked_m: Tensor, expected_m: int) -> None:
    """1.x name of `m_grouped_fp8_gemm_nt_masked(lhs, rhs, out, masked_m, expected_m)`; shapes, dtypes and errors as
    there."""
    m_grouped_fp8_gemm_nt_masked(lhs, rhs, out, masked_m, expected_m)
