"""Operators of the GEMMs grouped along K, registered as those of `torch_ops`: with declared mutation and fakes."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
from torch import Tensor

from . import _C
from .errors import DeepGemmError
from .fake_checks import (
    expect,
    expect_compiled_dims,
    expect_dtype,
    expect_kinds,
    expect_ranks,
    expect_shape,
    expect_tensor,
    expect_tensor_kinds,
)
from .torch_ops import _register

Pair = Tuple[Tensor, Tensor]


def _expect_output(d: Tensor, c: Optional[Tensor], grouped_layout: Tensor) -> None:
    """D `[G, M, N]` float32, C like it, an entry of the layout for each group."""
    expect_dtype(d, "d", (torch.float32,))
    expect_dtype(grouped_layout, "grouped_layout", (torch.int32,))
    expect_shape(grouped_layout, "grouped_layout", (d.shape[0],), "[G]")
    if c is not None:
        expect_dtype(c, "c", (torch.float32,))
        expect_shape(c, "c", tuple(d.shape), "[G, M, N]")


def _check_fp8_nt(a: Pair, b: Pair, d: Tensor, use_psum_layout: bool) -> None:
    """A, B flat, factors `[M|N, K / 128]`."""
    if use_psum_layout:
        raise DeepGemmError("use_psum_layout: expected False: K-major groups are matrices of their own; pass sizes")
    for name, (data, factors), rows in (("a", a, d.shape[1]), ("b", b, d.shape[2])):
        expect_dtype(data, name, (torch.float8_e4m3fn,))
        expect_dtype(factors, f"sf{name}", (torch.float32,))
        expect_shape(factors, f"sf{name}", (rows, a[1].shape[1]), f"[{'MN'[name == 'b']}, K/128]")
        expect_shape(data, name, (rows * factors.shape[1] * 128,), f"[{'MN'[name == 'b']} * K], K from sfa")


def _check_fp8_tn(a: Pair, b: Pair, d: Tensor, use_psum_layout: bool) -> None:
    """A `[K, M]`, B `[K, N]`, factors along K first. Which device runs it is the real call's to say."""
    for name, (data, factors), columns in (("a", a, d.shape[1]), ("b", b, d.shape[2])):
        letter = "MN"[name == "b"]
        expect_dtype(data, name, (torch.float8_e4m3fn,))
        expect_shape(data, name, (a[0].shape[0], columns), f"[K, {letter}]")
        expect_dtype(factors, f"sf{name}", (torch.float32,))
        expect_shape(factors, f"sf{name}", (a[1].shape[0], columns), f"[factors along K, {letter}]")


_FP8_SCHEMA = (
    "(Tensor a, Tensor sfa, Tensor b, Tensor sfb, Tensor(a!) d, int[]? ks_cpu, Tensor grouped_layout, Tensor? c, bool accumulate, "
    "int[]? recipe, str compiled_dims, bool use_psum_layout, int alignment) -> ()"
)
_BF16_SCHEMA = (
    "(Tensor a, Tensor b, Tensor(a!) d, int[]? ks_cpu, Tensor grouped_layout, Tensor? c, bool accumulate, str compiled_dims, "
    "bool use_psum_layout, int alignment) -> ()"
)


def _register_fp8(layout: str) -> Any:
    """Defines `k_grouped_fp8_gemm_<layout>_contiguous`; `accumulate` stands for `c` being `d` itself."""
    name = f"k_grouped_fp8_gemm_{layout}_contiguous"
    launch, check = getattr(_C, name), {"nt": _check_fp8_nt, "tn": _check_fp8_tn}[layout]

    def run(a, sfa, b, sfb, d, ks_cpu, grouped_layout, c, accumulate, recipe, *ending) -> None:
        launch((a, sfa), (b, sfb), d, ks_cpu, grouped_layout, d if accumulate else c, recipe, *ending)

    def fake(
        a, sfa, b, sfb, d, ks_cpu, grouped_layout, c, accumulate, recipe, compiled_dims, use_psum_layout, alignment
    ) -> None:
        rank = 1 if layout == "nt" else 2
        tensors = {"d": d, "a": a, "sfa": sfa, "b": b, "sfb": sfb, "grouped_layout": grouped_layout}
        expect_ranks({**tensors, **({} if c is None else {"c": c})}, (3, rank, 2, rank, 2, 1, 3)[: 6 + (c is not None)], d.device)
        expect_compiled_dims(compiled_dims)
        _expect_output(d, c, grouped_layout)
        check((a, sfa), (b, sfb), d, use_psum_layout)

    return _register(name, _FP8_SCHEMA, run, fake)


_FP8 = {layout: _register_fp8(layout) for layout in ("nt", "tn")}


def _register_bf16() -> Any:
    """Defines `k_grouped_bf16_gemm_tn_contiguous`."""
    name = "k_grouped_bf16_gemm_tn_contiguous"
    launch = getattr(_C, name)

    def run(a, b, d, ks_cpu, grouped_layout, c, accumulate, *ending) -> None:
        launch(a, b, d, ks_cpu, grouped_layout, d if accumulate else c, *ending)

    def fake(a, b, d, ks_cpu, grouped_layout, c, accumulate, compiled_dims, use_psum_layout, alignment) -> None:
        tensors = {"d": d, "a": a, "b": b, "grouped_layout": grouped_layout, **({} if c is None else {"c": c})}
        expect_ranks(tensors, (3, 2, 2, 1, 3)[: len(tensors)], d.device)
        expect_compiled_dims(compiled_dims)
        _expect_output(d, c, grouped_layout)
        for operand, tensor, columns in (("a", a, d.shape[1]), ("b", b, d.shape[2])):
            expect_dtype(tensor, operand, (torch.bfloat16,))
            expect_shape(tensor, operand, (a.shape[0], columns), f"[K, {'MN'[operand == 'b']}]")

    return _register(name, _BF16_SCHEMA, run, fake)


_BF16 = _register_bf16()


def _expect_sizes(ks_cpu: Any) -> Optional[list]:
    """`ks_cpu` as the operator takes it."""
    known = ks_cpu is None or isinstance(ks_cpu, (tuple, list))
    expect(known, lambda: f"ks_cpu: expected None or a list of integers, got {type(ks_cpu).__name__}; pass each group's K")
    return None if ks_cpu is None else list(ks_cpu)


def call_k_grouped_fp8(
    layout: str, a: Sequence[Tensor], b: Sequence[Tensor], d: Tensor, ks_cpu: Any, grouped_layout: Tensor, c: Optional[Tensor], *ending: Any
) -> None:
    """Calls the operator `k_grouped_fp8_gemm_<layout>_contiguous`; `ending` is (recipe, compiled_dims, use_psum_layout, alignment)."""
    expect_kinds(a, b, d, c, ending[:1], ending[1])
    expect_tensor(grouped_layout, "grouped_layout")
    accumulate = c is d
    separate = None if accumulate else c
    _FP8[layout](a[0], a[1], b[0], b[1], d, _expect_sizes(ks_cpu), grouped_layout, separate, accumulate, *ending)


def call_k_grouped_bf16(a: Tensor, b: Tensor, d: Tensor, ks_cpu: Any, grouped_layout: Tensor, c: Optional[Tensor], *ending: Any) -> None:
    """Calls the operator `k_grouped_bf16_gemm_tn_contiguous`; `ending` is (compiled_dims, use_psum_layout, alignment)."""
    tensors = {"a": a, "b": b, "d": d, "grouped_layout": grouped_layout, **({} if c is None else {"c": c})}
    expect_tensor_kinds(tensors, ending[0])
    accumulate = c is d
    _BF16(a, b, d, _expect_sizes(ks_cpu), grouped_layout, None if accumulate else c, accumulate, *ending)
