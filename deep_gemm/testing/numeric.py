"""Comparison of tensors: by one number, by bytes, or in full."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import refusal
from ..utils.expect import require_tensor

__all__ = ["Comparison", "assert_bitwise_equal", "calc_diff", "compare", "count_bytes"]


def calc_diff(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Distance of two tensors as one number, blind to neither direction nor size.

    Args:
        x: any shape and dtype that converts to FP64.
        y: the same shape.

    Returns:
        FP64 of no dimension: ``1 - 2<x, y> / (|x|^2 + |y|^2)``, computed in FP64; 0 if both are all zeros.
        NaN in either gives NaN, which is below no bound.

    Raises:
        DeepGemmError: no tensors, or shapes that differ in more than leading extents of 1: broadcasting would
            count elements more than once.
    """
    for tensor, name in ((x, "x"), (y, "y")):
        require_tensor(tensor, name)
    if _trimmed(x.shape) != _trimmed(y.shape):
        raise refusal("y", f"the shape of x, {tuple(x.shape)}", tuple(y.shape), "Reshape one of them")
    x, y = x.detach().double(), y.detach().double()
    norms = (x * x + y * y).sum()
    return torch.where(norms == 0, torch.zeros_like(norms), 1 - 2 * (x * y).sum() / norms)


def _trimmed(shape: torch.Size) -> tuple[int, ...]:
    """``shape`` without leading extents of 1."""
    kept = tuple(shape)
    while kept and kept[0] == 1:
        kept = kept[1:]
    return kept


def count_bytes(*tensors: object) -> int:
    """Bytes of all elements of the tensors given, in nested tuples and lists too; None counts nothing."""
    total = 0
    for item in tensors:
        if isinstance(item, (tuple, list)):
            total += count_bytes(*item)
        elif item is not None:
            total += item.numel() * item.element_size()
    return total


def assert_bitwise_equal(x: torch.Tensor, y: torch.Tensor, label: str = "") -> None:
    """Assert that two tensors have the same shape, the same dtype and the same bytes.

    Minus zero differs from zero, and a NaN equals only a NaN of the same bits. Strides do not matter.

    Raises:
        AssertionError: naming ``label``, how many elements differ, and the first of them.
    """
    prefix = f"{label}: " if label else ""
    if x.shape != y.shape or x.dtype != y.dtype:
        raise AssertionError(f"{prefix}{x.dtype} {tuple(x.shape)} against {y.dtype} {tuple(y.shape)}")
    if x.numel() == 0:
        return
    differs = (_element_bytes(x) != _element_bytes(y.to(x.device))).any(-1)
    count = int(differs.sum())
    if count > 0:
        where = _coordinate(int(differs.int().argmax()), x.shape)
        raise AssertionError(
            f"{prefix}{count} of {x.numel()} elements differ in their bits, first at {where}: "
            f"{x[where].float().item()!r} against {y[where].float().item()!r}"
        )


@dataclass(frozen=True)
class Comparison:
    """What `compare` measured.

    Attributes:
        relative_error: the largest ``|actual - reference| / max(|reference|, rms)`` over finite elements,
            where rms is the root mean square of the reference's finite elements.
        cosine_gap: 1 minus the cosine of the angle between the two, over finite elements.
        diff: `calc_diff` over finite elements.
        worst: coordinate of the largest relative error; None if there is no finite element.
    """

    relative_error: float
    cosine_gap: float
    diff: float
    worst: tuple[int, ...] | None


def compare(
    actual: torch.Tensor,
    reference: torch.Tensor,
    *,
    max_relative_error: float = 2e-2,
    max_cosine_gap: float = 1e-5,
    label: str = "",
) -> Comparison:
    """Assert that a result agrees with its reference: NaN and infinity in the same places, small errors
    elsewhere.

    Args:
        actual: the result; any float dtype.
        reference: the same shape, FP32 or FP64.
        max_relative_error: bound on `Comparison.relative_error`.
        max_cosine_gap: bound on `Comparison.cosine_gap`.
        label: what the message starts with.

    Returns:
        What was measured, when it is within the bounds.

    Raises:
        AssertionError: naming what is beyond its bound, and the worst coordinate with both values.
    """
    prefix = f"{label}: " if label else ""
    if actual.shape != reference.shape:
        raise AssertionError(f"{prefix}shape {tuple(actual.shape)} against {tuple(reference.shape)}")
    got, want = actual.detach().double(), reference.detach().to(actual.device).double()
    _assert_same_places(got, want, prefix)
    finite = want.isfinite()
    if not bool(finite.any()):
        return Comparison(0.0, 0.0, 0.0, None)
    got, want = got.where(finite, 0.0), want.where(finite, 0.0)
    measured = _measure(got, want, int(finite.sum()))
    at = measured.worst
    # The negated form catches NaN, too.
    if not (measured.relative_error <= max_relative_error and measured.cosine_gap <= max_cosine_gap):
        raise AssertionError(
            f"{prefix}relative error {measured.relative_error:.3e} (bound {max_relative_error:.1e}), "
            f"cosine gap {measured.cosine_gap:.3e} (bound {max_cosine_gap:.1e}), diff {measured.diff:.3e}; "
            f"worst at {at}: {got[at].item()!r} against {want[at].item()!r}"
        )
    return measured


def _measure(got: torch.Tensor, want: torch.Tensor, num_finite: int) -> Comparison:
    """Errors of finite FP64 tensors, of whose elements ``num_finite`` count."""
    # Scaled by the largest magnitude, so that no square leaves FP64's range.
    scale = torch.maximum(got.abs().amax(), want.abs().amax())
    if float(scale) == 0.0:
        return Comparison(0.0, 0.0, 0.0, (0,) * want.dim())
    got, want = got / scale, want / scale
    rms = (want.square().sum() / num_finite).sqrt()
    errors = (got - want).abs()
    errors = torch.where(errors == 0, errors, errors / want.abs().clamp(min=float(rms)))
    norms = (got.square().sum() * want.square().sum()).sqrt()
    cosine = torch.where(norms == 0, torch.zeros_like(norms), (got * want).sum() / norms)
    return Comparison(
        relative_error=float(errors.max()),
        cosine_gap=float(1 - cosine),
        diff=float(calc_diff(got, want)),
        worst=_coordinate(int(errors.argmax()), want.shape),
    )


def _assert_same_places(got: torch.Tensor, want: torch.Tensor, prefix: str) -> None:
    """Assert that NaN, infinity and minus infinity stand at the same coordinates."""
    kinds = (("NaN", torch.isnan), ("infinity", torch.isposinf), ("minus infinity", torch.isneginf))
    for kind, is_kind in kinds:
        differs = is_kind(got) != is_kind(want)
        count = int(differs.sum())
        if count > 0:
            at = _coordinate(int(differs.int().argmax()), want.shape)
            raise AssertionError(
                f"{prefix}{kind} in {count} places where only one side has it, first at {at}: "
                f"{got[at].item()!r} against {want[at].item()!r}"
            )


def _element_bytes(x: torch.Tensor) -> torch.Tensor:
    """uint8 ``[numel, element size]`` of the elements in row-major order."""
    flat = x.detach().contiguous().as_strided((x.numel(),), (1,))
    return flat.view(torch.uint8).view(x.numel(), x.element_size())


def _coordinate(flat_index: int, shape: torch.Size) -> tuple[int, ...]:
    coordinate = []
    for extent in reversed(shape):
        coordinate.append(flat_index % extent)
        flat_index //= extent
    return tuple(reversed(coordinate))
