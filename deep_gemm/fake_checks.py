"""What can be refused before there is data: checks of the fake implementations, on shapes, dtypes and devices.

The full contract is C++'s. Extents may be symbolic: a comparison of known ones is decided here, one of unknown ones is
left to the compiled graph.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .errors import DeepGemmError

_OUTPUTS = (torch.bfloat16, torch.float32)
_FACTORS = tuple(
    getattr(torch, name) for name in ("float32", "int32", "float8_e8m0fnu") if hasattr(torch, name)
)


def expect(condition: Any, message: Callable[[], str]) -> None:
    """Refuses a call with `message()` if `condition` is false; a symbolic condition becomes a check of the graph."""
    if isinstance(condition, bool):
        if not condition:
            raise DeepGemmError(message())
    else:
        torch._check(condition, message)


def expect_shape(tensor: Tensor, name: str, shape: Sequence[Any], meaning: str) -> None:
    """Refuses `tensor` unless it has `shape`, written as `meaning` in the message."""

    def message() -> str:
        return f"{name}: expected shape {meaning} = {tuple(shape)}, got {tuple(tensor.shape)}"

    expect(tensor.dim() == len(shape), message)
    for got, wanted in zip(tensor.shape, shape):
        expect(got == wanted, message)


def expect_dtype(tensor: Tensor, name: str, dtypes: Sequence[torch.dtype]) -> None:
    """Refuses `tensor` unless its dtype is one of `dtypes`."""
    wanted = " or ".join(str(dtype) for dtype in dtypes)
    expect(tensor.dtype in dtypes, lambda: f"{name}: expected {wanted}, got {tensor.dtype}")


def expect_tensor(value: Any, name: str) -> None:
    """Refuses what is not a tensor."""
    expect(isinstance(value, Tensor), lambda: f"{name}: expected a tensor, got {type(value).__name__}; pass one")


def expect_kinds(a: Any, b: Any, d: Any, c: Any, recipes: Sequence[Any], compiled_dims: Any) -> None:
    """Refuses arguments of kinds that the dispatcher would refuse in words of its own, or not at all."""
    for name, pair in (("a", a), ("b", b)):
        came = f"{len(pair)} items" if isinstance(pair, (tuple, list)) else type(pair).__name__
        expect(came == "2 items", lambda: f"{name}: expected a pair (tensor, scales), got {came}; pass (data, factors)")
        expect_tensor(pair[0], name)
        expect_tensor(pair[1], f"sf{name} (scales of {name})")
    expect_tensor(d, "d")
    if c is not None:
        expect_tensor(c, "c")
    for name, recipe in zip(("recipe", "recipe_a", "recipe_b"), recipes):
        known = recipe is None or isinstance(recipe, (tuple, list)) and all(isinstance(gran, int) for gran in recipe)
        expect(known, lambda: f"{name}: expected None or a tuple of integers, got {recipe!r}; pass granularities")
    expect_compiled_dims(compiled_dims)


def expect_tensor_kinds(tensors: Dict[str, Any], compiled_dims: Any) -> None:
    """Refuses what is no tensor, by name, where every operand is one."""
    for name, tensor in tensors.items():
        expect_tensor(tensor, name)
    expect_compiled_dims(compiled_dims)


def expect_compiled_dims(compiled_dims: str) -> None:
    """Refuses anything but letters of "mnk"."""
    ok = isinstance(compiled_dims, str) and set(compiled_dims) <= set("mnk")
    expect(ok, lambda: f"compiled_dims: expected letters of 'mnk' or an empty string, got {compiled_dims!r}")


def recipe_parts(recipes: Sequence[Optional[Sequence[int]]], sfb: Tensor) -> Tuple[Tuple[int, int], Tuple[int, int]]:
    """((gran_m, gran_k), (gran_n, gran_k)) of (recipe, recipe_a, recipe_b), the default chosen by the dtype of `sfb`."""
    recipe, recipe_a, recipe_b = recipes
    expect(
        (recipe_a is None) == (recipe_b is None) and (recipe is None or recipe_a is None),
        lambda: f"recipe: give either recipe, or recipe_a and recipe_b, got {recipe}, {recipe_a}, {recipe_b}",
    )
    if recipe_a is not None and recipe_b is not None:
        for name, part in (("recipe_a", recipe_a), ("recipe_b", recipe_b)):
            expect(len(part) == 2, lambda: f"{name}: expected (gran_mn, gran_k), got {tuple(part)}")
        return (recipe_a[0], recipe_a[1]), (recipe_b[0], recipe_b[1])
    if recipe is None:
        recipe = (1, 128, 128) if sfb.dtype == torch.float32 else (1, 1, 128)
    expect(len(recipe) == 3, lambda: f"recipe: expected (gran_m, gran_n, gran_k), got {tuple(recipe)}")
    return (recipe[0], recipe[2]), (recipe[1], recipe[2])


def expect_factors(
    sf: Tensor, name: str, extents: Tuple[Any, Any], granularity: Tuple[int, int], groups: Tuple[Any, ...] = ()
) -> None:
    """Refuses factors `sf` of a `[mn, k]` operand that are not `[ceil(mn / gran_mn), ceil(k / gran_k)]`; packed ones hold
    four of K and one row each. `groups` is (G,) for an operand `[G, mn, k]`, whose factors lead with G as well."""
    expect_dtype(sf, name, _FACTORS)
    gran_mn, gran_k = granularity
    expect(gran_mn in (1, 128) and gran_k in (32, 128), lambda: f"recipe: unsupported granularity {granularity} of {name}")
    if sf.dtype == torch.int32:
        gran_mn, gran_k = 1, 4 * gran_k
    rows, columns = (-(-extent // gran) for extent, gran in zip(extents, (gran_mn, gran_k)))
    letter = "M" if name == "sfa" else "N"
    meaning = f"[{'G, ' if groups else ''}ceil({letter}/{gran_mn}), ceil(K/{gran_k})]"
    expect_shape(sf, name, (*groups, rows, columns), meaning)


def expect_ranks(tensors: Dict[str, Tensor], ranks: Sequence[int], device: torch.device) -> None:
    """Refuses tensors, by name, unless each has its rank and all are on `device`, which is d's."""
    for (name, tensor), rank in zip(tensors.items(), ranks):
        expect(tensor.dim() == rank, lambda: f"{name}: expected rank {rank}, got shape {tuple(tensor.shape)}")
        expect(tensor.device == device, lambda: f"{name}: expected the device of d, {device}, got {tensor.device}")


def check_fp8_gemm(
    layout: str,
    a: Tuple[Tensor, Tensor],
    b: Tuple[Tensor, Tensor],
    d: Tensor,
    c: Optional[Tensor],
    recipes: Sequence[Optional[Sequence[int]]],
    compiled_dims: str,
) -> None:
    """The refusals of `fp8_gemm_<layout>` that need no data. Raises DeepGemmError."""
    expect_compiled_dims(compiled_dims)
    tensors = {"a": a[0], "sfa": a[1], "b": b[0], "sfb": b[1], "d": d}
    if c is not None:
        tensors["c"] = c
    expect_ranks(tensors, (2,) * len(tensors), d.device)
    if layout[0] == "t":
        a = (a[0].t(), a[1].t())
    if layout[1] == "n":
        b = (b[0].t(), b[1].t())
    m, k = a[0].shape
    n = b[0].shape[0]
    for name, data in (("a", a[0]), ("b", b[0])):
        expect_dtype(data, name, (torch.float8_e4m3fn,))
    expect_shape(b[0], "b", (n, k), "[N, K] as nt sees it")
    expect_dtype(d, "d", _OUTPUTS)
    expect_shape(d, "d", (m, n), "[M, N]")
    if c is not None:
        expect_dtype(c, "c", (d.dtype,))
        expect_shape(c, "c", (m, n), "[M, N]")
    part_a, part_b = recipe_parts(recipes, b[1])
    expect_factors(a[1], "sfa", (m, k), part_a)
    expect_factors(b[1], "sfb", (n, k), part_b)


def expect_head_splits(splits: Any) -> None:
    """Refuses what is not (left, mid, right), multiples of 8 with columns of a product."""
    ok = isinstance(splits, (tuple, list)) and len(splits) == 3 and all(isinstance(x, int) for x in splits)
    ok = ok and all(x >= 0 and x % 8 == 0 for x in splits) and splits[0] + splits[2] > 0
    expect(ok, lambda: f"head_splits: expected (left, mid, right), each 0 or a multiple of 8, got {splits!r}; pad the heads")


def check_skip_head_mid(
    a: Tuple[Tensor, Tensor],
    b: Tuple[Tensor, Tensor],
    d: Tensor,
    splits: Sequence[int],
    recipe: Optional[Sequence[int]],
    compiled_dims: str,
) -> None:
    """The refusals of `fp8_gemm_nt_skip_head_mid` that need no data. Raises DeepGemmError."""
    expect_compiled_dims(compiled_dims)
    expect_head_splits(splits)
    expect_ranks({"a": a[0], "sfa": a[1], "b": b[0], "sfb": b[1], "d": d}, (2,) * 5, d.device)
    (m, k), n, per_head = a[0].shape, b[0].shape[0], splits[0] + splits[2]
    for name, data in (("a", a[0]), ("b", b[0])):
        expect_dtype(data, name, (torch.float8_e4m3fn,))
    expect_shape(b[0], "b", (n, k), "[N, K]")
    expect(n % per_head == 0, lambda: f"b: expected N = heads x (left + right), a multiple of {per_head}, got {n} rows")
    expect_dtype(d, "d", _OUTPUTS)
    expect_shape(d, "d", (m, n // per_head * sum(splits)), "[M, heads*(left+mid+right)]")
    part_a, part_b = recipe_parts((recipe, None, None), b[1])
    expect_factors(a[1], "sfa", (m, k), part_a)
    expect_factors(b[1], "sfb", (n, k), part_b)


def check_tensor_gemm(layout: str, tensors: Dict[str, Tensor], dtypes: Sequence[torch.dtype]) -> None:
    """Refuses the operands a, b, d and c (if there) of a dense GEMM, by name, unless a is of `dtypes`, b like it, and all
    fit each other."""
    a, b, d, c = (tensors.get(name) for name in "abdc")
    expect_ranks(tensors, (2,) * len(tensors), d.device)
    m, k = a.shape[::-1] if layout[0] == "t" else a.shape
    n = b.shape[1] if layout[1] == "n" else b.shape[0]
    expect_dtype(a, "a", dtypes)
    expect_dtype(b, "b", (a.dtype,))
    expect_shape(b.t() if layout[1] == "n" else b, "b", (n, k), "[N, K] as nt sees it")
    expect_dtype(d, "d", _OUTPUTS)
    expect_shape(d, "d", (m, n), "[M, N]")
    if c is not None:
        expect_dtype(c, "c", (d.dtype,))
        expect_shape(c, "c", (m, n), "[M, N]")


def check_bf16_gemm(layout: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], compiled_dims: str) -> None:
    """The refusals of `bf16_gemm_<layout>` that need no data. Raises DeepGemmError."""
    tensors = {"a": a, "b": b, "d": d, **({} if c is None else {"c": c})}
    expect_tensor_kinds(tensors, compiled_dims)
    check_tensor_gemm(layout, tensors, (torch.bfloat16,))


def check_cublaslt_gemm(layout: str, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor]) -> None:
    """The refusals of `cublaslt_gemm_<layout>` that need no data. Raises DeepGemmError."""
    tensors = {"a": a, "b": b, "d": d, **({} if c is None else {"c": c})}
    expect_tensor_kinds(tensors, "")
    check_tensor_gemm(layout, tensors, (torch.bfloat16, torch.float8_e4m3fn))


def expect_grouped_operands(
    a: Tuple[Tensor, Tensor], b: Tuple[Tensor, Tensor], d: Tensor, recipes: Sequence[Optional[Sequence[int]]]
) -> None:
    """Refuses operands of a GEMM grouped along M. B is `[G, N, K]`; A and D are `[M, .]`, or `[G, M, .]` (masked)."""
    groups, n, k = b[0].shape
    leading = a[0].shape[:-2] and (groups,)
    m = a[0].shape[-2]
    letters = "G, " if leading else ""
    for name, data in (("a", a[0]), ("b", b[0])):
        expect_dtype(data, name, (torch.float8_e4m3fn,))
    expect_shape(a[0], "a", (*leading, m, k), f"[{letters}M, K] with the G and K of b")
    expect_dtype(d, "d", (torch.bfloat16,))
    expect_shape(d, "d", (*leading, m, n), f"[{letters}M, N]")
    part_a, part_b = recipe_parts(recipes, b[1])
    expect_factors(a[1], "sfa", (m, k), part_a, leading)
    expect_factors(b[1], "sfb", (n, k), part_b, (groups,))


def check_m_grouped_contiguous(
    layout: str,
    a: Tuple[Tensor, Tensor],
    b: Tuple[Tensor, Tensor],
    d: Tensor,
    grouped_layout: Tensor,
    recipe: Optional[Sequence[int]],
    recipe_a: Optional[Sequence[int]],
    recipe_b: Optional[Sequence[int]],
    compiled_dims: str,
    disable_ue8m0_cast: bool,
    use_psum_layout: bool,
    ensure_zero_padding: bool,
    expected_m_for_psum_layout: Optional[int],
    alignment: int,
) -> None:
    """The refusals of `m_grouped_fp8_gemm_<layout>_contiguous` that need no data. Raises DeepGemmError."""
    expect_compiled_dims(compiled_dims)
    tensors = {"a": a[0], "sfa": a[1], "b": b[0], "sfb": b[1], "d": d, "grouped_layout": grouped_layout}
    expect_ranks(tensors, (2, 2, 3, 3, 2, 1), d.device)
    if layout[1] == "n":
        b = (b[0].transpose(1, 2), b[1].transpose(1, 2))
    expect_grouped_operands(a, b, d, (recipe, recipe_a, recipe_b))
    expect_dtype(grouped_layout, "grouped_layout", (torch.int32,))
    if expected_m_for_psum_layout is not None and not use_psum_layout:
        got = expected_m_for_psum_layout
        raise DeepGemmError(f"expected_m_for_psum_layout: expected None without use_psum_layout, got {got}; leave it out")
    length, meaning = (b[0].shape[0], "[G]") if use_psum_layout else (a[0].shape[0], "[M]")
    expect_shape(grouped_layout, "grouped_layout", (length,), meaning)


def check_m_grouped_masked(
    a: Tuple[Tensor, Tensor],
    b: Tuple[Tensor, Tensor],
    d: Tensor,
    masked_m: Tensor,
    expected_m: int,
    recipe: Optional[Sequence[int]],
    recipe_a: Optional[Sequence[int]],
    recipe_b: Optional[Sequence[int]],
    compiled_dims: str,
    disable_ue8m0_cast: bool,
) -> None:
    """The refusals of `m_grouped_fp8_gemm_nt_masked` that need no data. Raises DeepGemmError."""
    expect_compiled_dims(compiled_dims)
    tensors = {"a": a[0], "sfa": a[1], "b": b[0], "sfb": b[1], "d": d, "masked_m": masked_m}
    expect_ranks(tensors, (3, 3, 3, 3, 3, 1), d.device)
    expect_grouped_operands(a, b, d, (recipe, recipe_a, recipe_b))
    expect_dtype(masked_m, "masked_m", (torch.int32,))
    expect_shape(masked_m, "masked_m", (b[0].shape[0],), "[G]")
