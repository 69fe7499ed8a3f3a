"""From scaling factors as they were made to the layout that the kernels of an architecture read directly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..errors import refusal
from .arch import arch_major_of
from .blocks import ceil_div
from .expect import require_integer, require_integers, require_tensor
from .mn_major import (
    aligned_strides,
    get_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_mn_major_tma_aligned_tensor,
    is_mn_major_tma_aligned,
)
from .ue8m0 import is_e8m0, ue8m0_codes, ue8m0_codes_to_float

__all__ = ["transform_sf_into_required_layout"]

# (gran_mn, gran_k) of scaling factors that stay FP32, by architecture; those that are packed may have any.
_FP32_GRANULARITIES: dict[int | None, frozenset[tuple[int, int]]] = {
    None: frozenset({(1, 32), (1, 128), (128, 128)}),
    9: frozenset({(1, 128), (128, 128)}),
    10: frozenset({(1, 128), (128, 128)}),
}


@dataclass(frozen=True)
class _Request:
    """What the caller says of one operand's scaling factors."""

    mn: int
    k: int
    gran_mn: int
    gran_k: int
    num_groups: int | None

    @property
    def granularity(self) -> tuple[int, int]:
        return self.gran_mn, self.gran_k

    @property
    def leading(self) -> tuple[int, ...]:
        return () if self.num_groups is None else (self.num_groups,)

    @property
    def plain_shape(self) -> tuple[int, ...]:
        """Shape of unpacked scaling factors."""
        return *self.leading, ceil_div(self.mn, self.gran_mn), ceil_div(self.k, self.gran_k)

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """Shape of packed scaling factors: one row of words per row of the operand."""
        return *self.leading, self.mn, ceil_div(self.k, 4 * self.gran_k)


def transform_sf_into_required_layout(
    sf: torch.Tensor,
    mn: int,
    k: int,
    recipe: Sequence[int],
    num_groups: int | None = None,
    is_sfa: bool | None = None,
    disable_ue8m0_cast: bool = False,
    psum_layout: torch.Tensor | None = None,
) -> torch.Tensor:
    """Bring scaling factors into the layout that the kernels on their device read directly.

    Args:
        sf: FP32 or ``torch.float8_e8m0fnu`` ``[(G,) ceil(mn/gran_mn), ceil(k/gran_k)]``, any strides; or
            packed, int32 ``[(G,) mn, ceil(k/(4*gran_k))]``, MN-major with aligned pitch. 3-D exactly if
            ``num_groups`` is given.
        mn: rows of the operand in a group (M of A, N of B).
        k: K of the operand.
        recipe: ``(gran_m, gran_n, gran_k)`` with ``is_sfa``, or ``(gran_mn, gran_k)`` without.
        num_groups: G of a grouped operand.
        is_sfa: whether the factors are A's (take gran_m) or B's (take gran_n).
        disable_ue8m0_cast: keep FP32 factors FP32 on SM100 too.
        psum_layout: int32 ``[groups]``, end rows of A's groups: while packing, rows outside them may hold
            anything and pack to 0.

    Returns:
        What the kernels read; what is right already comes back as the same storage.

        - SM90, ``disable_ue8m0_cast``, or a CPU tensor: FP32 (1, 128) MN-major with aligned pitch, (128, 128)
          itself.
        - SM100: FP32 packed, int32 ``[(G,) mn, ceil(k/(4*gran_k))]``, factors of 128 rows repeated for each
          row. Nothing is rounded; a value that is neither a power of two nor 0 packs to 255 (NaN).
        - Packed, on SM100 or on the CPU: itself, checked.

    Raises:
        DeepGemmError: dtype, rank, shape, strides, recipe, or an architecture without kernels for it.

    Source: this library's contract; ``docs/scaling-factor-format.md``.
    """
    require_tensor(sf, "sf")
    request = _parse_request(mn, k, recipe, num_groups, is_sfa)
    if psum_layout is not None and (is_sfa is False or num_groups is not None):
        raise refusal(
            "psum_layout",
            "None for SFB and for 3-D factors",
            "a tensor",
            "Pass it for A's [M, S] only",
        )
    return _transform(sf, request, disable_ue8m0_cast, psum_layout)


def _transform(
    sf: torch.Tensor, request: _Request, disable_ue8m0_cast: bool, psum_layout: torch.Tensor | None
) -> torch.Tensor:
    arch_major = arch_major_of(sf)
    if arch_major not in _FP32_GRANULARITIES:
        raise refusal(
            "sf",
            "a CPU tensor or one on SM90 or SM100",
            f"SM{arch_major}x",
            "Use a supported device",
        )
    is_packed = sf.dtype == torch.int32
    if not (is_packed or sf.dtype == torch.float32 or is_e8m0(sf)):
        expected = "torch.float32, torch.float8_e8m0fnu, or packed torch.int32"
        raise refusal("sf", expected, sf.dtype, "Convert the scaling factors to one of these")
    _check_shape(sf, request, request.packed_shape if is_packed else request.plain_shape)
    if is_packed:
        return _checked_packed(sf, request, arch_major)
    # Bytes of UE8M0 need no cast, so that only FP32 can be kept from packing.
    if arch_major == 10 and (is_e8m0(sf) or not disable_ue8m0_cast):
        return get_mn_major_tma_aligned_packed_ue8m0_tensor(_one_per_row(sf, request), psum_layout)
    if request.granularity not in _FP32_GRANULARITIES[arch_major]:
        place = "the CPU" if arch_major is None else f"SM{arch_major}0"
        expected = f"(gran_mn, gran_k) among {sorted(_FP32_GRANULARITIES[arch_major])} for FP32 on {place}"
        raise refusal("recipe", expected, request.granularity, "Quantise with one of these")
    plain = ue8m0_codes_to_float(ue8m0_codes(sf)) if is_e8m0(sf) else sf
    return plain if request.gran_mn == 128 else get_mn_major_tma_aligned_tensor(plain)


def _parse_request(
    mn: int, k: int, recipe: Sequence[int], num_groups: int | None, is_sfa: bool | None
) -> _Request:
    require_integers(recipe, "recipe", "Pass (gran_m, gran_n, gran_k), or (gran_mn, gran_k)")
    for name, value in (("mn", mn), ("k", k), ("num_groups", 0 if num_groups is None else num_groups)):
        require_integer(value, name, "Pass the operand's extent")
    if len(recipe) not in (2, 3) or (len(recipe) == 3) != (is_sfa is not None):
        raise refusal(
            "recipe",
            "(gran_m, gran_n, gran_k) with is_sfa, or (gran_mn, gran_k) without",
            f"{tuple(recipe)} with is_sfa = {is_sfa}",
            "Pass is_sfa=True for A's factors or is_sfa=False for B's, with a recipe of three",
        )
    if mn < 0 or k < 0 or (num_groups is not None and num_groups < 0):
        raise refusal(
            "mn, k, num_groups",
            "no negative extent",
            (mn, k, num_groups),
            "Pass the operand's extents",
        )
    gran_mn = recipe[0] if is_sfa is not False else recipe[1]
    gran_k = recipe[-1]
    if gran_mn not in (1, 128) or gran_k not in (32, 128):
        expected = "granularities of 1 or 128 along M or N, and of 32 or 128 along K"
        raise refusal("recipe", expected, tuple(recipe), "Quantise with one of these")
    return _Request(mn, k, gran_mn, gran_k, num_groups)


def _check_shape(sf: torch.Tensor, request: _Request, expected: tuple[int, ...]) -> None:
    if tuple(sf.shape) != expected:
        raise refusal(
            "sf",
            f"shape {expected} in {sf.dtype} for mn = {request.mn}, k = {request.k}, granularity "
            f"{request.granularity}, num_groups = {request.num_groups}",
            f"shape {tuple(sf.shape)}",
            "Pass one factor per block of the operand, 3-D exactly if num_groups is given",
        )


def _checked_packed(sf: torch.Tensor, request: _Request, arch_major: int | None) -> torch.Tensor:
    """Packed factors, as they came; refused where no kernel reads them or their layout is another."""
    if arch_major == 9:
        raise refusal("sf", "torch.float32 on SM90", sf.dtype, "Unpack with unpack_ue8m0_from_int")
    if request.gran_mn != 1:
        came = f"gran_mn = {request.gran_mn}"
        raise refusal(
            "recipe",
            "gran_mn = 1 beside packed factors, which are one per row",
            came,
            "Pass 1 there",
        )
    if not is_mn_major_tma_aligned(sf):
        raise refusal(
            "sf",
            f"packed factors MN-major, strides {aligned_strides(sf.shape, 4)}, base aligned to 16 bytes",
            f"strides {tuple(sf.stride())}, storage offset {sf.storage_offset()}",
            "Pack with get_mn_major_tma_aligned_packed_ue8m0_tensor",
        )
    return sf


def _one_per_row(sf: torch.Tensor, request: _Request) -> torch.Tensor:
    """Unpacked factors repeated so that each of the mn rows has its own."""
    if request.gran_mn == 1:
        return sf
    # Bytes are repeated as uint8: not every operator knows PyTorch's 8-bit float dtypes.
    plain = sf.view(torch.uint8) if is_e8m0(sf) else sf
    rows = plain.repeat_interleave(request.gran_mn, dim=-2)[..., : request.mn, :]
    return rows.view(sf.dtype) if is_e8m0(sf) else rows
