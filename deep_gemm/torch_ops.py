"""Registration with `torch.library`: `torch.ops.<package>.*` with declared mutation and fake implementations.

Eager calls do not pass through here (a dispatcher round costs more than the whole launch); tracing, dispatch modes and
tensor subclasses do, because they must see an operator rather than a pointer. The namespace is the package's own name, so
a renamed copy registers beside the original.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import Parameter

from . import _C
from .fake_checks import (
    check_bf16_gemm,
    check_fp8_gemm,
    check_m_grouped_bf16_contiguous,
    check_m_grouped_bf16_masked,
    check_m_grouped_contiguous,
    check_m_grouped_masked,
    expect_kinds,
    expect_tensor_kinds,
)

NAMESPACE = __package__.replace(".", "_")
_library = torch.library.Library(NAMESPACE, "FRAGMENT")

# Operands keep their strides under the compiler: factors are read in the layout they came in.
_EXACT_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_TAGS = (torch.Tag.pt2_compliant_tag, _EXACT_STRIDES)

# A call goes through its operator if `is_tracing() or needs_op(*operands)`. Dynamo takes the first for True and traces no
# further; `needs_op` tells dispatch modes and tensor subclasses from plain tensors.
is_tracing = torch.compiler.is_dynamo_compiling
needs_op = _C.needs_op
_C.set_framework(Tensor, Parameter, torch._C._len_torch_dispatch_stack)


def _register(name: str, schema: str, run: Callable[..., None], fake: Callable[..., None]) -> Any:
    """Defines the operator `name` with its kernel for both devices and its fake; returns its overload."""
    _library.define(name + schema, tags=_TAGS)
    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_library)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


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

    return _register(name, _FP8_GEMM_SCHEMA, run, fake)


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


_OPTIONS_SCHEMA = "int[]? recipe, int[]? recipe_a, int[]? recipe_b, str compiled_dims, bool disable_ue8m0_cast"
_CONTIGUOUS_SCHEMA = (
    f"(Tensor a, Tensor sfa, Tensor b, Tensor sfb, Tensor(a!) d, Tensor grouped_layout, {_OPTIONS_SCHEMA}, "
    "bool use_psum_layout, bool ensure_zero_padding, SymInt? expected_m_for_psum_layout, int alignment) -> ()"
)
_MASKED_SCHEMA = (
    "(Tensor a, Tensor sfa, Tensor b, Tensor sfb, Tensor(a!) d, Tensor masked_m, SymInt expected_m, "
    f"{_OPTIONS_SCHEMA}) -> ()"
)


def _register_m_grouped(name: str, schema: str, check: Callable[..., None]) -> Any:
    """Defines the grouped operator `name`, whose arguments are the binding's with the pairs taken apart."""
    launch = getattr(_C, name)

    def run(a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, *others: Any) -> None:
        launch((a, sfa), (b, sfb), *others)

    def fake(a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, *others: Any) -> None:
        check((a, sfa), (b, sfb), *others)

    return _register(name, schema, run, fake)


_CONTIGUOUS = {
    layout: _register_m_grouped(
        f"m_grouped_fp8_gemm_{layout}_contiguous", _CONTIGUOUS_SCHEMA, partial(check_m_grouped_contiguous, layout)
    )
    for layout in ("nt", "nn")
}
_MASKED = _register_m_grouped("m_grouped_fp8_gemm_nt_masked", _MASKED_SCHEMA, check_m_grouped_masked)


def call_m_grouped_contiguous(layout: str, a: Sequence[Tensor], b: Sequence[Tensor], *others: Any) -> None:
    """Calls the operator `m_grouped_fp8_gemm_<layout>_contiguous` with the arguments of the binding of that name."""
    a_data, sfa = a
    b_data, sfb = b
    _CONTIGUOUS[layout](a_data, sfa, b_data, sfb, *others)


def call_m_grouped_masked(a: Sequence[Tensor], b: Sequence[Tensor], *others: Any) -> None:
    """Calls the operator `m_grouped_fp8_gemm_nt_masked` with the arguments of the binding of that name."""
    a_data, sfa = a
    b_data, sfb = b
    _MASKED(a_data, sfa, b_data, sfb, *others)


_BF16_GEMM_SCHEMA = "(Tensor a, Tensor b, Tensor(a!) d, Tensor? c, bool accumulate, str compiled_dims) -> ()"


def _register_bf16_gemm(layout: str) -> Any:
    """Defines `bf16_gemm_<layout>`; `accumulate` stands for `c` being `d` itself, as in `fp8_gemm_<layout>`."""
    launch = getattr(_C, f"bf16_gemm_{layout}")

    def run(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool, compiled_dims: str) -> None:
        launch(a, b, d, d if accumulate else c, compiled_dims)

    def fake(a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], accumulate: bool, compiled_dims: str) -> None:
        check_bf16_gemm(layout, a, b, d, c, compiled_dims)

    return _register(f"bf16_gemm_{layout}", _BF16_GEMM_SCHEMA, run, fake)


_BF16_GEMM = {layout: _register_bf16_gemm(layout) for layout in ("nt", "nn", "tn", "tt")}


def call_bf16_gemm(layout: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], compiled_dims: str) -> None:
    """Calls the operator `bf16_gemm_<layout>` with the arguments of the public function."""
    expect_tensor_kinds({"a": a, "b": b, "d": d, **({} if c is None else {"c": c})}, compiled_dims)
    accumulate = c is d
    _BF16_GEMM[layout](a, b, d, None if accumulate else c, accumulate, compiled_dims)


_BF16_CONTIGUOUS_SCHEMA = (
    "(Tensor a, Tensor b, Tensor(a!) d, Tensor grouped_layout, str compiled_dims, bool use_psum_layout, "
    "bool ensure_zero_padding, SymInt? expected_m_for_psum_layout, int alignment) -> ()"
)
_BF16_MASKED_SCHEMA = "(Tensor a, Tensor b, Tensor(a!) d, Tensor masked_m, SymInt expected_m, str compiled_dims) -> ()"


def _register_m_grouped_bf16(form: str, schema: str, check: Callable[..., None]) -> Any:
    """Defines `m_grouped_bf16_gemm_<form>`, whose arguments are the binding's."""
    name = f"m_grouped_bf16_gemm_{form}"
    launch = getattr(_C, name)

    def run(*arguments: Any) -> None:
        launch(*arguments)

    return _register(name, schema, run, check)


_M_GROUPED_BF16 = {
    f"{layout}_contiguous": _register_m_grouped_bf16(
        f"{layout}_contiguous", _BF16_CONTIGUOUS_SCHEMA, partial(check_m_grouped_bf16_contiguous, layout)
    )
    for layout in ("nt", "nn")
}
_M_GROUPED_BF16["nt_masked"] = _register_m_grouped_bf16("nt_masked", _BF16_MASKED_SCHEMA, check_m_grouped_bf16_masked)


def call_m_grouped_bf16(form: str, *arguments: Any) -> None:
    """Calls the operator `m_grouped_bf16_gemm_<form>` with the arguments of the binding of that name."""
    masked = "masked" in form
    tensors = dict(zip(("a", "b", "d", "masked_m" if masked else "grouped_layout"), arguments))
    expect_tensor_kinds(tensors, arguments[5 if masked else 4])
    _M_GROUPED_BF16[form](*arguments)
