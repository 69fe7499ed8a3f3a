"""The BF16 grouped GEMMs of the Triton releases by their names, on today's functions."""

from __future__ import annotations

from typing import Tuple

import torch
from torch import Tensor

from ..errors import DeepGemmError
from .m_grouped_bf16_gemm import m_grouped_bf16_gemm_nn_contiguous, m_grouped_bf16_gemm_nt_contiguous


def m_grouped_bf16_gemm_nt_contiguous_tl(a: Tensor, b: Tensor, d: Tensor, m_indices: Tensor) -> None:
    """Older name of `m_grouped_bf16_gemm_nt_contiguous(a, b, d, m_indices)`; shapes, dtypes and errors as there."""
    m_grouped_bf16_gemm_nt_contiguous(a, b, d, m_indices)


def m_grouped_bf16_gemm_nn_contiguous_tl(a: Tensor, b: Tensor, d: Tensor, m_indices: Tensor) -> None:
    """Older name of `m_grouped_bf16_gemm_nn_contiguous(a, b, d, m_indices)`; shapes, dtypes and errors as there."""
    m_grouped_bf16_gemm_nn_contiguous(a, b, d, m_indices)


def _gathered(a: Tensor, mappings: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
    """The rows of A that are named, zeros where the name is -1; and the expert of each."""
    if not isinstance(mappings, (tuple, list)) or len(mappings) != 2:
        raise DeepGemmError(f"mappings: expected a pair (m_indices, m_row_indices), got {mappings!r}; pass both tensors")
    experts, rows = mappings
    for tensor, name, rank in ((a, "a", 2), (rows, "m_row_indices", 1)):
        if not isinstance(tensor, Tensor) or tensor.dim() != rank:
            came = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
            raise DeepGemmError(f"{name}: expected a tensor of rank {rank}, got {came}; check the arguments' order")
    if rows.dtype not in (torch.int32, torch.int64):
        raise DeepGemmError(f"m_row_indices: expected dtype torch.int32 or torch.int64, got {rows.dtype}; convert it")
    named = rows >= 0
    if a.shape[0] == 0:
        return a.new_zeros(rows.shape[0], a.shape[1]), experts
    return torch.where(named[:, None], a[rows.clamp(0, a.shape[0] - 1).long()], a.new_zeros(())), experts


def a_fused_m_grouped_bf16_gemm_nt_contiguous_tl(
    a: Tensor, b: Tensor, d: Tensor, mappings: Tuple[Tensor, Tensor]
) -> None:
    """Writes D[i] = A[rows[i]] @ B[experts[i]].T into each row i of `d`, A's row being zero where `rows[i]` is -1.

    A copy of the rows of A is made first, by PyTorch, without synchronising; the product is that of
    `m_grouped_bf16_gemm_nt_contiguous`. Rows past A's last stand for the last.

    Args:
        a: `[T, K]` bfloat16, tokens in any order.
        b: `[G, N, K]` bfloat16, as there. d: `[M, N]` bfloat16.
        mappings: (m_indices, m_row_indices): the expert of each row of `d`, int32 `[M]` as `grouped_layout` there, and the
            row of `a` it is made of, int32 or int64 `[M]`, or -1.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written. The message names the argument.

    Source: the Triton kernels of the 2.x releases of DeepGEMM, by their published interface.
    """
    rows, experts = _gathered(a, mappings)
    m_grouped_bf16_gemm_nt_contiguous(rows, b, d, experts)


def a_fused_m_grouped_bf16_gemm_nn_contiguous_tl(
    a: Tensor, b: Tensor, d: Tensor, mappings: Tuple[Tensor, Tensor]
) -> None:
    """`a_fused_m_grouped_bf16_gemm_nt_contiguous_tl` with B given as `[G, K, N]`. Other arguments and errors as there."""
    rows, experts = _gathered(a, mappings)
    m_grouped_bf16_gemm_nn_contiguous(rows, b, d, experts)
