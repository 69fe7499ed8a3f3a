"""GEMMs grouped along K, for gradients of experts' weights: D[g] = C[g] + A[g] @ B[g].T over each group's part of K.

As in `fp8_gemm`, an eager call on plain tensors goes straight to C++, and through `torch.ops` where tracing, a dispatch mode
or a tensor subclass must see an operator.
"""

from __future__ import annotations

from typing import Optional, Sequence

from torch import Tensor

from .. import _C
from ..torch_ops import is_tracing, needs_op
from ..torch_ops_k_grouped import call_k_grouped_bf16, call_k_grouped_fp8
from ..utils.layout import get_mk_alignment_for_contiguous_layout
from .fp8_gemm import Pair
from .older_keywords import accept_older_keywords

Sizes = Optional[Sequence[int]]


@accept_older_keywords
def k_grouped_fp8_gemm_nt_contiguous(
    a: Pair,
    b: Pair,
    d: Tensor,
    ks_cpu: Sizes,
    grouped_layout: Tensor,
    c: Optional[Tensor] = None,
    recipe: Sequence[int] = (1, 1, 128),
    compiled_dims: str = "mn",
    use_psum_layout: bool = False,
) -> None:
    """Writes D[g] = C[g] + A[g] @ B[g].T, with A and B scaled by their factors, into each `d[g]`.

    The sizes are read from `grouped_layout` on the device: no synchronisation, legal inside CUDA graph capture, and a replay
    reads the sizes of then. A call takes a few hundred KiB from PyTorch's allocator until its kernel has run: the kernel
    makes the tensor maps of its groups there. CPU tensors run the reference. M, N, G or all K of 0 succeed without a GEMM;
    a group of K = 0 gives C, or zeros. The result has the same bits on every run.

    Args:
        a: (data, factors). Data float8_e4m3fn of one dimension, contiguous: group after group a K-major matrix `[M, K_g]`.
            Factors float32 `[M, K / 128]`, K being the sum of all K_g: those of the groups side by side; any strides, MN-major
            ones are read fastest.
        b: (data, factors), likewise with N.
        d: `[G, M, N]` float32, unit stride along N, other strides multiples of 16 bytes.
        ks_cpu: each group's K on the host, multiples of 128 (0 counts), or None or empty if only the device knows them.
            They are checked; the kernel goes by `grouped_layout`. Older name: `ks`.
        grouped_layout: int32 `[G]`, contiguous, on the tensors' device: each group's K. Older name: `ks_tensor`.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.
        recipe: (1, 1, 128): a factor per row and 128 of K.
        compiled_dims: letters of "mnk", or empty. Accepted for compatibility; never changes the result.
        use_psum_layout: refused here: K-major groups are matrices of their own.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came. Values in `grouped_layout` are checked on CPU tensors only.

    Source: weight gradients of grouped GEMMs, DeepSeek-V3 technical report, section 3.3; `docs/moe.md`.
    """
    arguments = (a, b, d, ks_cpu, grouped_layout, c, recipe, compiled_dims, use_psum_layout)
    alignment = get_mk_alignment_for_contiguous_layout()
    if is_tracing() or needs_op(a, b, d, grouped_layout, c):
        return call_k_grouped_fp8("nt", *arguments, alignment)
    return _C.k_grouped_fp8_gemm_nt_contiguous(*arguments, alignment)


@accept_older_keywords
def k_grouped_fp8_gemm_tn_contiguous(
    a: Pair,
    b: Pair,
    d: Tensor,
    ks_cpu: Sizes,
    grouped_layout: Tensor,
    c: Optional[Tensor] = None,
    recipe: Sequence[int] = (1, 1, 128),
    compiled_dims: str = "mn",
    use_psum_layout: bool = False,
) -> None:
    """`k_grouped_fp8_gemm_nt_contiguous` with A given as `[K, M]` and B as `[K, N]`, rows of all groups together.

    SM90 refuses it: its tensor cores read FP8 operands along K alone, so each group would have to be transposed first. CPU
    tensors run the reference.

    Args:
        a: (data, factors). Data `[K, M]` float8_e4m3fn, unit stride along M, row stride a multiple of 16 bytes. Factors float32
            `[sum of ceil(K_g / gran_k), M]`, without gaps in either layout.
        b: (data, factors), likewise with N.
        ks_cpu: multiples of `get_mk_alignment_for_contiguous_layout()`; with `use_psum_layout` rounded up to it.
        grouped_layout: int32 `[G]`: each group's K; with `use_psum_layout` its end along K, its start being the previous end
            rounded up to the alignment (an end at or before it: K = 0). Rows of gaps are zeros.
        recipe: (1, 1, 128) or (1, 1, 32).
        d, c, compiled_dims: as there. Errors, too.
    """
    arguments = (a, b, d, ks_cpu, grouped_layout, c, recipe, compiled_dims, use_psum_layout)
    alignment = get_mk_alignment_for_contiguous_layout()
    if is_tracing() or needs_op(a, b, d, grouped_layout, c):
        return call_k_grouped_fp8("tn", *arguments, alignment)
    return _C.k_grouped_fp8_gemm_tn_contiguous(*arguments, alignment)


@accept_older_keywords
def k_grouped_bf16_gemm_tn_contiguous(
    a: Tensor,
    b: Tensor,
    d: Tensor,
    ks_cpu: Sizes,
    grouped_layout: Tensor,
    c: Optional[Tensor] = None,
    compiled_dims: str = "mn",
    use_psum_layout: bool = False,
) -> None:
    """Writes D[g] = C[g] + A[rows of g].T @ B[rows of g] into each `d[g]`, in BF16 with FP32 sums.

    The rows of each group are read from `grouped_layout` on the device: no synchronisation, no allocation, legal inside CUDA
    graph capture, and a replay reads those of then. CPU tensors run the reference. M, N, G or K of 0 succeed without a GEMM;
    a group of K = 0 gives C, or zeros. An element of D is one FP32 chain of sums along K: the same bits on every run.

    Args:
        a: `[K, M]` bfloat16, all groups' rows together; unit stride along M, row stride a multiple of 16 bytes.
        b: `[K, N]` bfloat16, likewise.
        d: `[G, M, N]` float32, unit stride along N, other strides multiples of 16 bytes.
        ks_cpu: each group's K on the host, multiples of `get_mk_alignment_for_contiguous_layout()` (0 counts; with
            `use_psum_layout` rounded up to it), or None or empty if only the device knows them. They are checked; the kernel
            goes by `grouped_layout`. Older name: `ks`.
        grouped_layout: int32 `[G]`, contiguous, on the tensors' device: each group's K; with `use_psum_layout` its end along
            K, its start being the previous end rounded up to the alignment (an end at or before it: K = 0). Older name:
            `ks_tensor`.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.
        compiled_dims: letters of "mnk", or empty. Accepted for compatibility; never changes the result.
        use_psum_layout: how to read `grouped_layout`. Rows of `a` and `b` between groups must be zeros.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came. Values in `grouped_layout` are checked on CPU tensors only.

    Source: weight gradients of grouped GEMMs; products and sums as the tensor cores of SM90 make them; `docs/moe.md`.
    """
    arguments = (a, b, d, ks_cpu, grouped_layout, c, compiled_dims, use_psum_layout)
    alignment = get_mk_alignment_for_contiguous_layout()
    if is_tracing() or needs_op(a, b, d, grouped_layout, c):
        return call_k_grouped_bf16(*arguments, alignment)
    return _C.k_grouped_bf16_gemm_tn_contiguous(*arguments, alignment)
