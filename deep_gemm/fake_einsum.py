"""What can be refused of contractions before there is data; the full contract is C++'s (`csrc/contract/einsum.cc`)."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .errors import DeepGemmError
from .fake_checks import expect, expect_dtype, expect_shape, expect_tensor

_OUTPUTS = (torch.bfloat16, torch.float32)
BF16_EXPRESSIONS = ("bmk,bnk->mn", "bhr,hdr->bhd", "bhd,hdr->bhr")
FP8_EXPRESSIONS = {"bhr,hdr->bhd": "r", "bhd,hdr->bhr": "d", "bhd,bhr->hdr": "b"}  # and the letter that is summed


def split(expr: Any, known: Sequence[str]) -> Tuple[str, str, str]:
    """The letters of a, b and d of a known expression, spaces aside."""
    plain = expr.replace(" ", "") if isinstance(expr, str) else expr
    if plain not in known:
        raise DeepGemmError(f"expr: expected one of {', '.join(map(repr, known))}, got {expr!r}; rename the dimensions")
    inputs, d = plain.split("->")
    a, b = inputs.split(",")
    return a, b, d


def expect_letters(tensors: Dict[str, Tensor], letters: Dict[str, str], device: torch.device) -> Dict[str, Any]:
    """Refuses tensors, by name, unless their dimensions are as `letters` say and agree; returns what each letter counts."""
    counts: Dict[str, Any] = {}
    for name, tensor in tensors.items():
        expect_tensor(tensor, name)
        wanted = letters[name]
        expect(tensor.dim() == len(wanted), lambda: f"{name}: expected dimensions {wanted}, got shape {tuple(tensor.shape)}")
        expect(tensor.device == device, lambda: f"{name}: expected the device of d, {device}, got {tensor.device}")
        for letter, extent in zip(wanted, tensor.shape):
            counts.setdefault(letter, extent)
        expect_shape(tensor, name, [counts[letter] for letter in wanted], f"[{', '.join(wanted)}]")
    return counts


def _expect_output(d: Tensor, c: Optional[Tensor]) -> None:
    expect_dtype(d, "d", _OUTPUTS)
    if c is not None:
        expect_dtype(c, "c", (d.dtype,))


def check_einsum(expr: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], use_cublaslt: bool) -> None:
    """The refusals of `einsum` that need no data. Raises DeepGemmError."""
    of_a, of_b, of_d = split(expr, BF16_EXPRESSIONS)
    expect_tensor(d, "d")
    tensors = {"a": a, "b": b, "d": d, **({} if c is None else {"c": c})}
    expect_letters(tensors, {"a": of_a, "b": of_b, "d": of_d, "c": of_d}, d.device)
    for name, data in (("a", a), ("b", b)):
        expect_dtype(data, name, (torch.bfloat16,))
    _expect_output(d, c)
    if use_cublaslt and len(of_d) != 3:
        raise DeepGemmError(f"use_cublaslt: expected False for {expr!r}, whose batches are summed, got True; leave it out")


def check_fp8_einsum(
    expr: str,
    a: Tuple[Tensor, Tensor],
    b: Tuple[Tensor, Tensor],
    d: Tensor,
    c: Optional[Tensor],
    recipe: Sequence[int],
) -> None:
    """The refusals of `fp8_einsum` that need no data. Raises DeepGemmError."""
    of_a, of_b, of_d = split(expr, tuple(FP8_EXPRESSIONS))
    tensors = {"a": a[0], "b": b[0], "d": d, **({} if c is None else {"c": c})}
    counts = expect_letters(tensors, {"a": of_a, "b": of_b, "d": of_d, "c": of_d}, d.device)
    for name, data in (("a", a[0]), ("b", b[0])):
        expect_dtype(data, name, (torch.float8_e4m3fn,))
    _expect_output(d, c)
    summed = FP8_EXPRESSIONS[f"{of_a},{of_b}->{of_d}"]
    blocks = (1, 1, 128) if summed == "b" else (1, 128, 128)
    expect(tuple(recipe) in (blocks, (1, 1, 128)) and len(recipe) == 3, lambda: f"recipe: expected {blocks}, got {tuple(recipe)}")
    columns = next(letter for letter in of_b if letter != summed and letter not in of_a)
    for name, sf, letters, shares in (
        ("sfa", a[1], of_a, {summed: 128}),
        ("sfb", b[1], of_b, {summed: 128, columns: recipe[1]}),
    ):
        expect_dtype(sf, name, (torch.float32,))
        shape = [-(-counts[letter] // shares.get(letter, 1)) for letter in letters]
        expect_shape(sf, name, shape, f"[{', '.join(letters)}], one per {shares}")
