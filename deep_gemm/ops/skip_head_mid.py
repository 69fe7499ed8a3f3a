"""An FP8 GEMM whose output has room in the middle of each head: the projection of MLA's queries writes around it."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from torch import Tensor

from .. import _C
from ..fake_checks import check_skip_head_mid, expect_head_splits, expect_kinds
from ..torch_ops import _register, is_tracing, needs_op
from .fp8_gemm import Pair, Recipe

_SCHEMA = (
    "(Tensor a, Tensor sfa, Tensor b, Tensor sfb, Tensor(a!) d, int[] head_splits, int[]? recipe, str compiled_dims, "
    "bool disable_ue8m0_cast) -> ()"
)


def _run(a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, d: Tensor, splits: Sequence[int], *options: Any) -> None:
    _C.fp8_gemm_nt_skip_head_mid((a, sfa), (b, sfb), d, tuple(splits), *options)


def _fake(
    a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, d: Tensor, splits: Sequence[int], recipe: Optional[Sequence[int]],
    compiled_dims: str, disable_ue8m0_cast: bool,
) -> None:  # fmt: skip
    check_skip_head_mid((a, sfa), (b, sfb), d, splits, recipe, compiled_dims)


_OPERATOR = _register("fp8_gemm_nt_skip_head_mid", _SCHEMA, _run, _fake)


def fp8_gemm_nt_skip_head_mid(
    a: Pair,
    b: Pair,
    d: Tensor,
    head_splits: Tuple[int, int, int],
    recipe: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """Writes A @ B.T into `d` around the middle columns of each head, which stay as they are.

    With head_splits = (left, mid, right), each `left + right` columns of the product are one head; its first `left` go to the
    first columns of the head in `d`, its last `right` to the last ones. The same kernel and the same bits as `fp8_gemm_nt`: no
    second pass over D. No synchronisation, no allocation; legal inside CUDA graph capture. CPU tensors run the reference. M, N
    or K of 0 succeed without a launch of a GEMM; K = 0 gives zeros around the middles.

    Args:
        a, b: as of `fp8_gemm_nt`; N = heads x (left + right).
        d: `[M, heads x (left + mid + right)]` bfloat16 or float32, unit stride along N, row stride a multiple of 16 bytes.
        head_splits: (left, mid, right), multiples of 8 columns, left + right > 0. Multiples of 64 (float32: 32) store
            fastest.
        recipe, compiled_dims, disable_ue8m0_cast: as of `fp8_gemm_nt`.

    Raises:
        DeepGemmError (a RuntimeError): the call is refused; nothing was written or launched. The message names the
            argument, what was expected and what came.

    Source: the query projections of DeepSeek-V3's attention, technical report, section 2.1.1.
    """
    if is_tracing() or needs_op(a, b, d):
        expect_kinds(a, b, d, None, (recipe,), compiled_dims)
        expect_head_splits(head_splits)
        return _OPERATOR(a[0], a[1], b[0], b[1], d, head_splits, recipe, compiled_dims, disable_ue8m0_cast)
    return _C.fp8_gemm_nt_skip_head_mid(a, b, d, head_splits, recipe, compiled_dims, disable_ue8m0_cast)
