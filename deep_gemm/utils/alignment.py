"""What must be a multiple of what: group starts in the contiguous layouts, extents that TMA addresses."""

from __future__ import annotations

import operator

from ..errors import refusal
from .arch import current_arch_major
from .blocks import align
from .expect import require_integer

__all__ = [
    "get_k_alignment_for_contiguous_layout",
    "get_m_alignment_for_contiguous_layout",
    "get_mk_alignment_for_contiguous_layout",
    "get_theoretical_mk_alignment_for_contiguous_layout",
    "get_tma_aligned_size",
    "set_mk_alignment_for_contiguous_layout",
]

TMA_ALIGNMENT_BYTES = 16
ALIGNMENT_STEP = 16

_mk_alignment = 128


def set_mk_alignment_for_contiguous_layout(v: int) -> None:
    """Set the alignment of every group's first row (M-grouped) or first K index (k-grouped), process-wide.

    Args:
        v: rows; a positive multiple of 16. K-grouped functions need a multiple of 32.

    Raises:
        DeepGemmError: another value; the setting stays what it was.
    """
    global _mk_alignment
    try:
        value = None if isinstance(v, bool) else operator.index(v)
    except TypeError:
        value = None
    if value is None or value <= 0 or value % ALIGNMENT_STEP != 0:
        raise refusal(
            "v",
            f"a positive multiple of {ALIGNMENT_STEP}",
            repr(v),
            "Use 128 unless groups are small",
        )
    _mk_alignment = value


def get_mk_alignment_for_contiguous_layout() -> int:
    """The alignment, in rows, of groups in the contiguous layouts: 128 until it is set."""
    return _mk_alignment


def get_m_alignment_for_contiguous_layout() -> int:
    """The same as `get_mk_alignment_for_contiguous_layout`."""
    return _mk_alignment


def get_k_alignment_for_contiguous_layout() -> int:
    """The same as `get_mk_alignment_for_contiguous_layout`."""
    return _mk_alignment


def get_theoretical_mk_alignment_for_contiguous_layout(expected_m: int | None = None) -> int:
    """The alignment that suits the current device's tiles best, for `set_mk_alignment_for_contiguous_layout`.

    Args:
        expected_m: rows expected in a group, if known.

    Returns:
        128; on SM100 224 or, if less, ``max(32, expected_m rounded up to 32)``. Without a GPU SM90's value.
    """
    if current_arch_major() != 10:
        return 128
    return 224 if expected_m is None else min(224, max(32, align(expected_m, 32)))


def get_tma_aligned_size(x: int, element_size: int) -> int:
    """Elements after which a TMA row may start again.

    Args:
        x: extent in elements.
        element_size: bytes of an element: 1, 2, 4, 8 or 16.

    Returns:
        ``x`` rounded up to a multiple of ``16 / element_size``.

    Raises:
        DeepGemmError: an element size that does not divide 16.

    Source: CUDA driver API, ``cuTensorMapEncodeTiled``: global strides are multiples of 16 bytes.
    """
    require_integer(x, "x", "Pass an extent in elements")
    require_integer(element_size, "element_size", "Pass tensor.element_size()")
    if element_size <= 0 or TMA_ALIGNMENT_BYTES % element_size != 0:
        raise refusal("element_size", "bytes that divide 16", element_size, "Pass tensor.element_size()")
    return align(x, TMA_ALIGNMENT_BYTES // element_size)
