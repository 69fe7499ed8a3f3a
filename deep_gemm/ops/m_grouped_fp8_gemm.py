"""FP8 GEMMs over experts, grouped along M: rows of one matrix (contiguous), or a matrix an expert (masked).

As in `fp8_gemm`, an eager call on plain tensors goes straight to C++, and through `torch.ops` where tracing, a dispatch mode
or a tensor subclass must see an operator.
"""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from .. import _C
from ..torch_ops import call_m_grouped_contiguous, call_m_grouped_masked, is_tracing, needs_op
from ..utils.layout import get_mk_alignment_for_contiguous_layout
from .fp8_gemm import Pair, Recipe
from .older_keywords import accept_older_keywords


@accept_older_keywords
def m_grouped_fp8_gemm_nt_contiguous(
    a: Pair,
    b: Pair,
    d: Tensor,
    grouped_layout: Tensor,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
    expected_m_for_psum_layout: Optional[int] = None,
) -> None:
    """Writes D[i] = A[i] @ B[grouped_layout[i]].T into each row i of `d`, zeros where `grouped_layout[i]` is -1.

    The layout is read on the device: no synchronisation, no allocation, legal inside CUDA graph capture, and a replay reads
    the layout of then. Experts start at multiples of `get_mk_alignment_for_contiguous_layout()`, 128 unless it was set. An
    aligned block of rows has one id: its real rows first, then -1 or the id again; blocks may be -1 as a whole, and the last
    one may be short. Rows of -1 are padding: their data and factors may hold anything, NaN included. CPU tensors run the
    reference. M, N, K or G of 0 succeed without a launch; K = 0 gives zeros.

    Args:
        a: (data, factors). Data `[M, K]` float8_e4m3fn, unit stride along K, row stride a multiple of 16 bytes. Factors
            float32 `[M, ceil(K / 128)]`, one per row and 128 of K: row-major, or MN-major with pitch M or M rounded up to 4.
        b: (data, factors). Data `[G, N, K]`, the experts' weights, each like `a`'s. Factors float32
            `[G, ceil(N / 128), ceil(K / 128)]`, one per block of 128 x 128, row-major or its transpose;
            `[G, N, ceil(K / 128)]` in any form of `a`'s under recipe (1, 1, 128).
        d: `[M, N]` bfloat16, unit stride along N. Every row is written.
        grouped_layout: int32 `[M]`, contiguous, on the tensors' device: the expert of each row, or -1. Older name:
            `m_indices`.
        recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast: as of `fp8_gemm_nt`.
        use_psum_layout: `grouped_layout` is int32 `[G]` and holds the end row of each expert. An expert starts at the end of
            the one before, rounded up to the alignment; an end at that row or before it means no rows. Rows outside of
            experts may hold anything in `a`; rows of `d` past the last aligned end are not written.
        ensure_zero_padding: with `use_psum_layout`, whether rows of `d` from an expert's end to the next aligned row become
            zeros; else they are unspecified.
        expected_m_for_psum_layout: rows expected in an expert, or None. A hint that chooses the kernel's tile, never a
            result; refused without `use_psum_layout`.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came. Values in `grouped_layout` are checked on CPU tensors only: elsewhere the
            host would have to wait for them, as it does under `DG_VALIDATE=1`.

    Source: grouped GEMM of mixture-of-experts layers, DeepSeek-V3 technical report, section 3.3; `docs/moe.md`.
    """
    alignment = get_mk_alignment_for_contiguous_layout()
    arguments = (a, b, d, grouped_layout, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)
    psum = (use_psum_layout, ensure_zero_padding, expected_m_for_psum_layout)
    if is_tracing() or needs_op(a, b, d, grouped_layout):
        return call_m_grouped_contiguous("nt", *arguments, *psum, alignment)
    return _C.m_grouped_fp8_gemm_nt_contiguous(*arguments, *psum, alignment)


@accept_older_keywords
def m_grouped_fp8_gemm_nn_contiguous(
    a: Pair,
    b: Pair,
    d: Tensor,
    grouped_layout: Tensor,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
) -> None:
    """`m_grouped_fp8_gemm_nt_contiguous` with B given as `[G, K, N]` and its factors as `[G, ceil(K / 128),
    ceil(N / 128)]`. On SM90 B's data is K-major, that is a transposed view of a `[G, N, K]` tensor. Other arguments and
    errors as there."""
    alignment = get_mk_alignment_for_contiguous_layout()
    arguments = (a, b, d, grouped_layout, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)
    psum = (use_psum_layout, ensure_zero_padding, None)
    if is_tracing() or needs_op(a, b, d, grouped_layout):
        return call_m_grouped_contiguous("nn", *arguments, *psum, alignment)
    return _C.m_grouped_fp8_gemm_nn_contiguous(*arguments, *psum, alignment)


def m_grouped_fp8_gemm_nt_masked(
    a: Pair,
    b: Pair,
    d: Tensor,
    masked_m: Tensor,
    expected_m: int,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """Writes D[g, i] = A[g, i] @ B[g].T for the first `masked_m[g]` rows i of each expert g; other rows stay as they are.

    The counts are read on the device when the kernel runs: no synchronisation, no allocation, legal inside CUDA graph
    capture, and a replay reads the counts of then. Any M is legal; rows of A past the count may hold anything, NaN included.
    CPU tensors run the reference. M, N, K or G of 0 succeed without a launch of a GEMM.

    Args:
        a: (data, factors). Data `[G, M, K]` float8_e4m3fn, M rows of room for each expert, unit stride along K, other
            strides multiples of 16 bytes. Factors float32 `[G, M, ceil(K / 128)]`, one per row and 128 of K: row-major, or
            MN-major in each expert with pitch M or M rounded up to 4.
        b: (data, factors). Data `[G, N, K]`, the experts' weights. Factors float32 `[G, ceil(N / 128), ceil(K / 128)]`, one
            per block of 128 x 128, row-major or its transpose; `[G, N, ceil(K / 128)]` under recipe (1, 1, 128).
        d: `[G, M, N]` bfloat16, unit stride along N. Rows past `masked_m[g]` are not written.
        masked_m: int32 `[G]`, contiguous, on the tensors' device: the rows of each expert, 0 to M.
        expected_m: rows expected in an expert. A hint that chooses the kernel's tile, never a result: 0, too low and too
            high are all right.
        recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast: as of `fp8_gemm_nt`.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came. Values in `masked_m` are checked on CPU tensors only: elsewhere the
            host would have to wait for them, as it does under `DG_VALIDATE=1`.

    Source: the decoding layout of mixture-of-experts layers in DeepEP's low-latency mode; `docs/moe.md`.
    """
    arguments = (a, b, d, masked_m, expected_m, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)
    if is_tracing() or needs_op(a, b, d, masked_m):
        return call_m_grouped_masked(*arguments)
    return _C.m_grouped_fp8_gemm_nt_masked(*arguments)


m_grouped_fp8_fp4_gemm_nt_contiguous = m_grouped_fp8_gemm_nt_contiguous
m_grouped_fp8_fp4_gemm_nn_contiguous = m_grouped_fp8_gemm_nn_contiguous
m_grouped_fp8_fp4_gemm_nt_masked = fp8_m_grouped_gemm_nt_masked = m_grouped_fp8_gemm_nt_masked
