"""Scaling factors laid out MN-major with a TMA-aligned pitch: as FP32, or packed to UE8M0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from ..errors import refusal
from .alignment import TMA_ALIGNMENT_BYTES, get_mk_alignment_for_contiguous_layout, get_tma_aligned_size
from .blocks import align, ceil_div
from .expect import require_tensor
from .ue8m0 import is_e8m0, ue8m0_codes

__all__ = [
    "aligned_strides",
    "get_mn_major_tma_aligned_packed_ue8m0_tensor",
    "get_mn_major_tma_aligned_tensor",
    "is_mn_major_tma_aligned",
]


def get_mn_major_tma_aligned_tensor(sf: torch.Tensor) -> torch.Tensor:
    """Lay FP32 scaling factors out as SM90's kernels read them.

    Args:
        sf: FP32 ``[MN, S]`` or ``[G, MN, S]``, any strides.

    Returns:
        FP32 of the same shape, strides ``(1, P)`` or ``(P*S, 1, P)`` with P = MN rounded up to 4. The same
        storage if ``sf`` is laid out so (strides of extents 0 and 1 mean nothing); otherwise a copy whose
        storage spans the whole pitch, its padding unspecified.

    Raises:
        DeepGemmError: rank or dtype.

    Source: CUDA driver API, ``cuTensorMapEncodeTiled``, for the 16-byte pitch.
    """
    _require_rank(sf)
    if sf.dtype != torch.float32:
        raise refusal(
            "sf",
            "torch.float32",
            sf.dtype,
            "Convert with .float(); packed scaling factors stay as they are",
        )
    strides = aligned_strides(sf.shape, sf.element_size())
    if is_mn_major_tma_aligned(sf):
        return sf if tuple(sf.stride()) == strides else sf.as_strided(sf.shape, strides)
    buffer = _aligned_buffer(sf.shape, torch.float32, sf.device)
    aligned = buffer.as_strided(sf.shape, strides)
    aligned.copy_(sf.detach())
    return aligned


def get_mn_major_tma_aligned_packed_ue8m0_tensor(
    sf: torch.Tensor, psum_layout: torch.Tensor | None = None
) -> torch.Tensor:
    """Pack scaling factors to UE8M0, laid out as SM100's kernels read them.

    Args:
        sf: FP32 powers of two or 0 (or ``torch.float8_e8m0fnu``) ``[MN, S]`` or ``[G, MN, S]``, any strides.
        psum_layout: int32 ``[G]``, the end row of each group (its start: the previous end rounded up to
            `get_mk_alignment_for_contiguous_layout`), for a 2-D ``sf``. Rows outside every group may hold
            anything and pack to 0.

    Returns:
        int32 ``[MN, ceil(S/4)]`` or ``[G, MN, ceil(S/4)]``, strides ``(1, P)`` or ``(P*ceil(S/4), 1, P)``
        with P = MN rounded up to 4: four codes along S in a word, the first in the lowest byte, missing ones
        and the pitch's padding 0. Nothing is rounded: another value packs to 255, so that its row turns NaN.

    Raises:
        DeepGemmError: rank, dtype or device of either argument.

    Source: E8M0 of the OCP Microscaling Formats (MX) specification, version 1.0.
    """
    _require_rank(sf)
    if sf.dtype != torch.float32 and not is_e8m0(sf):
        raise refusal(
            "sf",
            "torch.float32 or torch.float8_e8m0fnu",
            sf.dtype,
            "Pass unpacked scaling factors; packed ones need no packing",
        )
    codes = ue8m0_codes(sf)
    if psum_layout is not None:
        codes = codes.masked_fill(~_rows_in_groups(sf, psum_layout).unsqueeze(-1), 0)
    num_columns = sf.shape[-1]
    num_words = ceil_div(num_columns, 4)
    shape = (*sf.shape[:-1], num_words)
    buffer = _aligned_buffer(shape, torch.int32, sf.device)
    if buffer.numel() > 0:
        num_groups, num_rows = (sf.shape[0] if sf.dim() == 3 else 1), sf.shape[-2]
        quads = F.pad(codes, (0, num_words * 4 - num_columns)).reshape(num_groups, num_rows, num_words, 4)
        by_bytes = buffer.view(torch.uint8).view(num_groups, num_words, -1, 4)
        by_bytes[:, :, :num_rows].copy_(quads.transpose(1, 2))
    return buffer.as_strided(shape, aligned_strides(shape, 4))


def aligned_strides(shape: Sequence[int], element_size: int) -> tuple[int, ...]:
    """Strides, in elements, of an MN-major ``[(G,) MN, S]`` with TMA-aligned pitch."""
    pitch = get_tma_aligned_size(shape[-2], element_size)
    return (1, pitch) if len(shape) == 2 else (pitch * shape[-1], 1, pitch)


def is_mn_major_tma_aligned(sf: torch.Tensor) -> bool:
    """Whether ``sf`` ``[(G,) MN, S]`` can be read MN-major with the aligned pitch from where it lies."""
    if sf.numel() == 0:
        return True
    wanted = aligned_strides(sf.shape, sf.element_size())
    fits = all(extent == 1 or has == want for extent, has, want in zip(sf.shape, sf.stride(), wanted))
    return fits and _has_aligned_base(sf)


def _has_aligned_base(sf: torch.Tensor) -> bool:
    if not torch.compiler.is_compiling():
        try:
            return sf.data_ptr() % TMA_ALIGNMENT_BYTES == 0
        except RuntimeError:  # a fake tensor has a layout, but no address
            pass
    return sf.storage_offset() * sf.element_size() % TMA_ALIGNMENT_BYTES == 0


def _aligned_buffer(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Storage ``[G, S, P]`` for an MN-major tensor of ``shape``; the padding of packed words is 0."""
    pitch = get_tma_aligned_size(shape[-2], dtype.itemsize)
    size = (shape[0] if len(shape) == 3 else 1, shape[-1], pitch)
    needs_zeros = dtype == torch.int32 and pitch != shape[-2]
    return (torch.zeros if needs_zeros else torch.empty)(size, dtype=dtype, device=device)


def _rows_in_groups(sf: torch.Tensor, psum_layout: torch.Tensor) -> torch.Tensor:
    """bool ``[MN]``: the rows that belong to a group, by the groups' end rows, without reading them here."""
    require_int32_vector(psum_layout, "psum_layout", sf)
    if sf.dim() != 2:
        raise refusal("sf", "[M, S] beside psum_layout", f"shape {tuple(sf.shape)}", "Drop psum_layout")
    ends = psum_layout.to(torch.int64)
    starts = align(F.pad(ends[:-1], (1, 0)), get_mk_alignment_for_contiguous_layout())
    row = torch.arange(sf.shape[0], device=sf.device).unsqueeze(-1)
    return ((row >= starts) & (row < ends)).any(-1)


def require_int32_vector(vector: torch.Tensor, argument: str, sf: torch.Tensor) -> None:
    """Refuse what is not an int32 vector on the device of ``sf``."""
    require_tensor(vector, argument)
    if vector.dtype != torch.int32 or vector.dim() != 1:
        came = f"{vector.dtype} of shape {tuple(vector.shape)}"
        raise refusal(
            argument,
            "torch.int32 of one dimension, an element a group",
            came,
            "Convert with .int()",
        )
    if vector.device != sf.device:
        raise refusal(
            argument,
            f"a tensor on {sf.device}, where sf is",
            vector.device,
            f"Move {argument} there",
        )


def _require_rank(sf: torch.Tensor) -> None:
    require_tensor(sf, "sf")
    if sf.dim() not in (2, 3):
        raise refusal(
            "sf",
            "[MN, S] or [G, MN, S]",
            f"shape {tuple(sf.shape)}",
            "Pass one row of factors per MN index",
        )
