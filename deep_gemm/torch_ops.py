"""Registration with `torch.library`: `torch.ops.<package>.*` with declared mutation and fake implementations.

Eager calls do not pass through here (a dispatcher round costs more than the whole launch); tracing, dispatch modes and
tensor subclasses do, because they must see an operator rather than a pointer. The namespace is the package's own name, so
a renamed copy registers beside the original.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.nn import Parameter

from . import _C
from .fake_checks import check_fp8_gemm, expect_kinds

NAMESPACE = __package__.replace(".", "_")
_library = torch.library.Library(NAMESPACE, "FRAGMENT")

# Operands keep their strides under the compiler: factors are read in the layout they came in.
_EXACT_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_TAGS = (torch.Tag.pt2_compliant_tag, _EXACT_STRIDES)

# Types whose memory is theirs alone; anything else is asked through the dispatcher.
_PLAIN = frozenset((Tensor, Parameter, type(None)))
_dispatch_modes = torch._C._len_torch_dispatch_stack


def needs_op(a: Any, b: Any, d: Any, c: Any) -> bool:
    """Whether a call on the pairs `a`, `b` and tensors `d`, `c` must go through the operator. False for what is no pair
    or no tensor: C++ refuses it by name, and look-alike tensors of other frameworks pass."""
    if is_compiling() or _dispatch_modes():
        return True
    try:
        if (
            type(d) in _PLAIN
            and type(c) in _PLAIN
            and type(a[0]) in _PLAIN
            and type(a[1]) in _PLAIN
            and type(b[0]) in _PLAIN
            and type(b[1]) in _PLAIN
        ):
            return False
        return any(isinstance(t, Tensor) and type(t) not in _PLAIN for t in (d, c, a[0], a[1], b[0], b[1]))
    except (TypeError, IndexError, KeyError):
        return False


_FP8_GEMM_SCHEMA = (
    "(Tensor a, Tensor sfa, Tensor b, Tensor sfb, Tensor(a!) d, Tensor? c, bool accumulate, int[]? recipe, "
    "int[]? recipe_a, int[]? recipe_b, str compiled_dims, bool disable_ue8m0_cast) -> ()"
)


def _register_fp8_gemm(layout: str) -> Any:
    """Defines `fp8_gemm_<layout>`. `accumulate` stands for `c` being `d` itself: an operator may not return or read a
    mutated argument under a second name, so the pair becomes one argument and a flag."""
    name = f"fp8_gemm_{layout}"
    launch = getattr(_C, name)

    def run(
        a: Tensor,
        sfa: Tensor,
        b: Tensor,
        sfb: Tensor,
        d: Tensor,
        c: Optional[Tensor],
        accumulate: bool,
        recipe: Optional[Sequence[int]],
        recipe_a: Optional[Sequence[int]],
        recipe_b: Optional[Sequence[int]],
        compiled_dims: str,
        disable_ue8m0_cast: bool,
    ) -> None:
        c = d if accumulate else c
        launch((a, sfa), (b, sfb), d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast)

    def fake(a, sfa, b, sfb, d, c, accumulate, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast) -> None:
        check_fp8_gemm(layout, (a, sfa), (b, sfb), d, c, (recipe, recipe_a, recipe_b), compiled_dims)

    _library.define(name + _FP8_GEMM_SCHEMA, tags=_TAGS)
    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_library)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


_FP8_GEMM = {layout: _register_fp8_gemm(layout) for layout in ("nt", "nn", "tn", "tt")}

Recipes = Tuple[Optional[Sequence[int]], Optional[Sequence[int]], Optional[Sequence[int]]]


def call_fp8_gemm(
    layout: str,
    a: Sequence[Tensor],
    b: Sequence[Tensor],
    d: Tensor,
    c: Optional[Tensor],
    recipes: Recipes,
    compiled_dims: str,
    disable_ue8m0_cast: bool,
) -> None:
    """Calls the operator `fp8_gemm_<layout>` with the arguments of the public function; recipes are (recipe, recipe_a,
    recipe_b). What no operator takes is refused here, by name."""
    expect_kinds(a, b, d, c, recipes, compiled_dims)
    a_data, sfa = a
    b_data, sfb = b
    accumulate = c is d
    separate = None if accumulate else c
    _FP8_GEMM[layout](a_data, sfa, b_data, sfb, d, separate, accumulate, *recipes, compiled_dims, disable_ue8m0_cast)
