"""Dense FP8 GEMMs: D = C + (A * SFA) @ (B * SFB), four operand layouts.

An eager call on plain tensors goes straight to C++. Under torch.compile, a dispatch mode such as FakeTensorMode, or with a
tensor subclass it goes through `torch.ops`, which those can see.
"""

from __future__ import annotations

from typing import Optional, Sequence

from torch import Tensor

from .. import _C
from ..torch_ops import call_fp8_gemm, is_tracing, needs_op

Pair = Sequence[Tensor]
Recipe = Optional[Sequence[int]]


def fp8_gemm_nt(
    a: Pair,
    b: Pair,
    d: Tensor,
    c: Optional[Tensor] = None,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """Writes D = C + A @ B.T, with A and B scaled by their factors, into `d`.

    Runs on the current stream of the tensors' device, without synchronising and without an allocation; legal inside CUDA
    graph capture. CPU tensors run the reference. M, N or K of 0 succeed without a launch; K = 0 gives C, or zeros.

    Args:
        a: (data, factors). Data `[M, K]` float8_e4m3fn, unit stride along K, row stride a multiple of 16 bytes. Factors
            float32 `[M, ceil(K / 128)]`, one per row and 128 of K: row-major, or MN-major with pitch M or M rounded up to
            4; every form gives the same bits.
        b: (data, factors). Data `[N, K]` like `a`. Factors float32 `[ceil(N / 128), ceil(K / 128)]`, one per block of
            128 x 128, row-major or its transpose; `[N, ceil(K / 128)]` in any form of `a`'s under recipe (1, 1, 128).
        d: `[M, N]` bfloat16 or float32, unit stride along N.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.
        recipe: (gran_m, gran_n, gran_k), rows and columns that share a factor; default (1, 128, 128) for float32
            factors of B, (1, 1, 128) for packed ones.
        recipe_a, recipe_b: (gran_m, gran_k) and (gran_n, gran_k), both or neither, in place of `recipe`.
        compiled_dims: letters of "mnk", or empty. Accepted for compatibility; never changes the result.
        disable_ue8m0_cast: refuse FP32 factors where the hardware needs power-of-two ones. No effect on SM90.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came.

    Source: block-scaled FP8 GEMM of the DeepSeek-V3 technical report, section 3.3.
    """
    if is_tracing() or needs_op(a, b, d, c):
        return call_fp8_gemm("nt", a, b, d, c, (recipe, recipe_a, recipe_b), compiled_dims, disable_ue8m0_cast)
    return _C.fp8_gemm_nt(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)


def fp8_gemm_nn(
    a: Pair,
    b: Pair,
    d: Tensor,
    c: Optional[Tensor] = None,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """`fp8_gemm_nt` with B given as `[K, N]` and its factors K-first: D = C + A @ B. On SM90 B's data is K-major, that is
    a transposed view of an `[N, K]` tensor. Other arguments and errors as there."""
    if is_tracing() or needs_op(a, b, d, c):
        return call_fp8_gemm("nn", a, b, d, c, (recipe, recipe_a, recipe_b), compiled_dims, disable_ue8m0_cast)
    return _C.fp8_gemm_nn(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)


def fp8_gemm_tn(
    a: Pair,
    b: Pair,
    d: Tensor,
    c: Optional[Tensor] = None,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "mn",
    disable_ue8m0_cast: bool = False,
) -> None:
    """`fp8_gemm_nt` with A given as `[K, M]`, B as `[K, N]` and both factors K-first: D = C + A.T @ B. On SM90 the data is
    K-major. Other arguments and errors as there."""
    if is_tracing() or needs_op(a, b, d, c):
        return call_fp8_gemm("tn", a, b, d, c, (recipe, recipe_a, recipe_b), compiled_dims, disable_ue8m0_cast)
    return _C.fp8_gemm_tn(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)


def fp8_gemm_tt(
    a: Pair,
    b: Pair,
    d: Tensor,
    c: Optional[Tensor] = None,
    recipe: Recipe = None,
    recipe_a: Recipe = None,
    recipe_b: Recipe = None,
    compiled_dims: str = "mn",
    disable_ue8m0_cast: bool = False,
) -> None:
    """`fp8_gemm_nt` with A given as `[K, M]` and its factors K-first: D = C + A.T @ B.T. On SM90 the data is K-major.
    Other arguments and errors as there."""
    if is_tracing() or needs_op(a, b, d, c):
        return call_fp8_gemm("tt", a, b, d, c, (recipe, recipe_a, recipe_b), compiled_dims, disable_ue8m0_cast)
    return _C.fp8_gemm_tt(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)


fp8_fp4_gemm_nt, fp8_fp4_gemm_nn, fp8_fp4_gemm_tn, fp8_fp4_gemm_tt = fp8_gemm_nt, fp8_gemm_nn, fp8_gemm_tn, fp8_gemm_tt
