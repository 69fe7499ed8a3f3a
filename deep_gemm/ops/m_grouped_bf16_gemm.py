"""BF16 GEMMs over experts, grouped along M: rows of one matrix (contiguous), or a matrix an expert (masked).

As in `bf16_gemm`, an eager call on plain tensors goes straight to C++, and through `torch.ops` where tracing, a dispatch mode
or a tensor subclass must see an operator.
"""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from .. import _C
from ..torch_ops import call_m_grouped_bf16, is_tracing, needs_op
from ..utils.layout import get_mk_alignment_for_contiguous_layout
from .older_keywords import accept_older_keywords


@accept_older_keywords
def m_grouped_bf16_gemm_nt_contiguous(
    a: Tensor,
    b: Tensor,
    d: Tensor,
    grouped_layout: Tensor,
    compiled_dims: str = "nk",
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
    expected_m_for_psum_layout: Optional[int] = None,
) -> None:
    """Writes D[i] = A[i] @ B[grouped_layout[i]].T into each row i of `d`, zeros where `grouped_layout[i]` is -1.

    Layouts, padding and the hint are those of `m_grouped_fp8_gemm_nt_contiguous`: experts start at multiples of
    `get_mk_alignment_for_contiguous_layout()`; the layout is read on the device, without a synchronisation or an allocation,
    legal inside CUDA graph capture. Padding rows of A may hold anything, NaN included. CPU tensors run the reference. M, N, K
    or G of 0 succeed without a launch; K = 0 gives zeros.

    Batch-invariant: an element of D is one FP32 chain of sums along K, never split. A row's bits depend on that row of A and
    its expert's B alone, and are those of `bf16_gemm_nt`: not on M, on how experts are packed, on the form of the layout or on
    the number of SMs.

    Args:
        a: `[M, K]` bfloat16, unit stride along K, row stride a multiple of 16 bytes.
        b: `[G, N, K]` bfloat16, the experts' weights, unit stride along K or along N, other strides multiples of 16 bytes.
        d: `[M, N]` bfloat16, unit stride along N. Every row is written.
        grouped_layout: int32 `[M]`, contiguous, on the tensors' device: the expert of each row, or -1. Older name:
            `m_indices`. With `use_psum_layout` int32 `[G]`, the end row of each expert.
        compiled_dims: letters of "mnk", or empty. Accepted for compatibility; never changes the result.
        use_psum_layout: see `grouped_layout`; an expert starts at the end of the one before, rounded up to the alignment, and
            is empty where it would end there or before. Rows of `d` past the last aligned end are not written.
        ensure_zero_padding: with `use_psum_layout`, whether rows of `d` from an expert's end to the next aligned row become
            zeros; else they are unspecified.
        expected_m_for_psum_layout: rows expected in an expert, or None. A hint that chooses the kernel's tile, never a
            result; refused without `use_psum_layout`.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came. Values in `grouped_layout` are checked on CPU tensors only: elsewhere the
            host would have to wait for them.

    Source: grouped GEMM of mixture-of-experts layers, DeepSeek-V3 technical report, section 3.3; `docs/moe.md`.
    """
    alignment = get_mk_alignment_for_contiguous_layout()
    psum = (use_psum_layout, ensure_zero_padding, expected_m_for_psum_layout)
    if is_tracing() or needs_op(a, b, d, grouped_layout):
        return call_m_grouped_bf16("nt_contiguous", a, b, d, grouped_layout, compiled_dims, *psum, alignment)
    return _C.m_grouped_bf16_gemm_nt_contiguous(a, b, d, grouped_layout, compiled_dims, *psum, alignment)


@accept_older_keywords
def m_grouped_bf16_gemm_nn_contiguous(
    a: Tensor,
    b: Tensor,
    d: Tensor,
    grouped_layout: Tensor,
    compiled_dims: str = "nk",
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
) -> None:
    """`m_grouped_bf16_gemm_nt_contiguous` with B given as `[G, K, N]`: D[i] = A[i] @ B[grouped_layout[i]]. Other arguments
    and errors as there."""
    alignment = get_mk_alignment_for_contiguous_layout()
    psum = (use_psum_layout, ensure_zero_padding, None)
    if is_tracing() or needs_op(a, b, d, grouped_layout):
        return call_m_grouped_bf16("nn_contiguous", a, b, d, grouped_layout, compiled_dims, *psum, alignment)
    return _C.m_grouped_bf16_gemm_nn_contiguous(a, b, d, grouped_layout, compiled_dims, *psum, alignment)


def m_grouped_bf16_gemm_nt_masked(
    a: Tensor, b: Tensor, d: Tensor, masked_m: Tensor, expected_m: int, compiled_dims: str = "nk"
) -> None:
    """Writes D[g, i] = A[g, i] @ B[g].T for the first `masked_m[g]` rows i of each expert g; other rows stay as they are.

    The counts are read on the device when the kernel runs: no synchronisation, no allocation, legal inside CUDA graph
    capture, and a replay reads the counts of then. Any M is legal; rows of A past the count may hold anything, NaN included.
    CPU tensors run the reference. M, N, K or G of 0 succeed without a launch of a GEMM. Batch-invariant as
    `m_grouped_bf16_gemm_nt_contiguous`.

    Args:
        a: `[G, M, K]` bfloat16, M rows of room for each expert, unit stride along K, other strides multiples of 16 bytes.
        b: `[G, N, K]` bfloat16, the experts' weights, unit stride along K or along N, other strides multiples of 16 bytes.
        d: `[G, M, N]` bfloat16, unit stride along N. Rows past `masked_m[g]` are not written.
        masked_m: int32 `[G]`, contiguous, on the tensors' device: the rows of each expert, 0 to M.
        expected_m: rows expected in an expert. A hint that chooses the kernel's tile, never a result: 0, too low and too
            high are all right.
        compiled_dims: letters of "mnk", or empty. Accepted for compatibility; never changes the result.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came. Values in `masked_m` are checked on CPU tensors only: elsewhere the
            host would have to wait for them.

    Source: the decoding layout of mixture-of-experts layers in DeepEP's low-latency mode; `docs/moe.md`.
    """
    if is_tracing() or needs_op(a, b, d, masked_m):
        return call_m_grouped_bf16("nt_masked", a, b, d, masked_m, expected_m, compiled_dims)
    return _C.m_grouped_bf16_gemm_nt_masked(a, b, d, masked_m, expected_m, compiled_dims)


bf16_m_grouped_gemm_nt_masked = m_grouped_bf16_gemm_nt_masked
