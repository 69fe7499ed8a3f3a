"""Contractions over batches: one GEMM launch each, on strided views, without a copy.

As everywhere, an eager call on plain tensors goes straight to C++, and through `torch.ops` where an operator must be seen.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from torch import Tensor

from .. import _C
from ..fake_checks import expect, expect_kinds, expect_tensor_kinds
from ..fake_einsum import check_einsum, check_fp8_einsum
from ..torch_ops import _register, is_tracing, needs_op
from ..vendor_product import vendor_einsum
from .fp8_gemm import Pair

_SCHEMA = "(str expr, Tensor a, Tensor b, Tensor(a!) d, Tensor? c, bool accumulate, bool use_cublaslt) -> ()"
_FP8_SCHEMA = (
    "(str expr, Tensor a, Tensor sfa, Tensor b, Tensor sfb, Tensor(a!) d, Tensor? c, bool accumulate, int[] recipe) -> ()"
)


def _run(expr: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool, use_cublaslt: bool) -> None:
    (vendor_einsum if use_cublaslt else _C.einsum)(expr, a, b, d, d if accumulate else c)


def _fake(expr: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool, use_cublaslt: bool) -> None:
    check_einsum(expr, a, b, d, c, use_cublaslt)


def _fp8_run(
    expr: str, a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool,
    recipe: Sequence[int],
) -> None:  # fmt: skip
    _C.fp8_einsum(expr, (a, sfa), (b, sfb), d, d if accumulate else c, tuple(recipe))


def _fp8_fake(
    expr: str, a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool,
    recipe: Sequence[int],
) -> None:  # fmt: skip
    check_fp8_einsum(expr, (a, sfa), (b, sfb), d, c, recipe)


_EINSUM = _register("einsum", _SCHEMA, _run, _fake)
_FP8_EINSUM = _register("fp8_einsum", _FP8_SCHEMA, _fp8_run, _fp8_fake)


def _expect_expression(expr: Any) -> None:
    expect(isinstance(expr, str), lambda: f"expr: expected a string such as 'bhr,hdr->bhd', got {expr!r}; pass one")


def einsum(
    expr: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor] = None, use_cublaslt: bool = False
) -> None:
    """Writes D = C + the contraction `expr` of A and B, both BF16, into `d`: one launch, no copy of an operand.

    "bmk,bnk->mn"   sums the products of all batches: one FP32 chain of sums through every k of every b
    "bhr,hdr->bhd"  a product for each h: A[:, h, :] @ B[h].T
    "bhd,hdr->bhr"  a product for each h: A[:, h, :] @ B[h]

    An element of D is one chain of FP32 sums in a fixed order, as of `bf16_gemm_nt`: K is never split, the bits depend on its
    own row of A, column of B and C alone. Runs on the current stream of the tensors' device, without synchronising; legal
    inside CUDA graph capture. CPU tensors run the reference. Extents of 0 succeed without a launch of a GEMM.

    Args:
        expr: one of the above; spaces do not matter.
        a, b: bfloat16 with the dimensions of `expr`, in any order in memory and with gaps: unit stride along the letter that
            is summed (k, r, d) or along the operand's letter of rows or columns; other strides multiples of 16 bytes.
        d: bfloat16 or float32, unit stride along its last letter, other strides multiples of 16 bytes.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.
        use_cublaslt: the vendor's library through PyTorch instead of our kernel, for the last two expressions.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came.

    Source: the absorbed projections of multi-head latent attention, DeepSeek-V2 technical report, section 2.1.
    """
    if is_tracing() or needs_op(a, b, d, c):
        _expect_expression(expr)
        expect_tensor_kinds({"a": a, "b": b, "d": d, **({} if c is None else {"c": c})}, "")
        return _EINSUM(expr, a, b, d, None if c is d else c, c is d, bool(use_cublaslt))
    if use_cublaslt:
        return vendor_einsum(expr, a, b, d, c)
    return _C.einsum(expr, a, b, d, c)


def fp8_einsum(
    expr: str,
    a: Pair,
    b: Pair,
    d: Tensor,
    c: Optional[Tensor] = None,
    recipe: Tuple[int, int, int] = (1, 128, 128),
) -> None:
    """Writes D = C + the contraction `expr` of A and B, both FP8 with factors, into `d`: one launch, no copy of an operand.

    "bhr,hdr->bhd"  a product for each h: A[:, h, :] @ B[h].T      SM90, CPU
    "bhd,hdr->bhr"  a product for each h: A[:, h, :] @ B[h]        CPU; refused on SM90, whose FP8 operands are K-major
    "bhd,bhr->hdr"  a product for each h: A[:, h].T @ B[:, h]      likewise

    The bits of each h are those of `fp8_gemm_nt` on its slices under the same tile. Stream, capture and CPU tensors as there.

    Args:
        expr: one of the above; spaces do not matter.
        a: (data, factors). Data float8_e4m3fn with the dimensions of `expr`, unit stride along the letter that is summed, other
            strides multiples of 16 bytes. Factors float32 of the same dimensions, one per 128 of the summed letter, in any
            strides: `[b, h, ceil(r / 128)]`.
        b: likewise; under recipe (1, 128, 128) one factor per 128 of its other letter, too: `[h, ceil(d / 128),
            ceil(r / 128)]`.
        d: bfloat16 or float32, unit stride along its last letter, other strides multiples of 16 bytes.
        c: None, `d` itself (accumulates in place), or a separate tensor of `d`'s shape and dtype, which is only read.
        recipe: (1, 128, 128), or (1, 1, 128): a factor per row of B; "bhd,bhr->hdr" takes the latter alone, "bhd,hdr->bhr"
            the former.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came.

    Source: the absorbed projections of multi-head latent attention, DeepSeek-V2 technical report, section 2.1.
    """
    if is_tracing() or needs_op(a, b, d, c):
        _expect_expression(expr)
        expect_kinds(a, b, d, c, (recipe,), "")
        return _FP8_EINSUM(expr, a[0], a[1], b[0], b[1], d, None if c is d else c, c is d, recipe or (1, 128, 128))
    return _C.fp8_einsum(expr, a, b, d, c, recipe)
