"""Packed scaling factors of K-grouped problems, whose groups lie one after another along K."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from ..errors import refusal
from .alignment import get_mk_alignment_for_contiguous_layout
from .blocks import align, ceil_div
from .expect import require_integer, require_integers, require_tensor
from .mn_major import require_int32_vector
from .ue8m0 import is_e8m0, join_codes, ue8m0_codes

__all__ = ["get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor"]

K_ALIGNMENT_STEP = 32


def get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(
    sf: torch.Tensor,
    grouped_layout: torch.Tensor,
    ks_cpu: Sequence[int] | None,
    gran_k: int,
    k_alignment: int | None = None,
    use_psum_layout: bool = False,
) -> torch.Tensor:
    """Pack the scaling factors of a K-grouped problem to UE8M0, each group starting on a row of its own.

    Args:
        sf: FP32 powers of two or 0 (or ``torch.float8_e8m0fnu``) ``[sum of ceil(K_g/gran_k), MN]``: the
            groups' factors one after another, without gaps in either layout.
        grouped_layout: int32 ``[G]`` on the device of ``sf``: each group's K; with ``use_psum_layout`` its
            end along K, its start being the previous end rounded up to ``k_alignment`` (an end at or before
            it: K = 0).
        ks_cpu: the same sizes on the host, in the psum layout rounded up to ``k_alignment``; None or empty if
            only the device knows them.
        gran_k: K indices to one scaling factor, 32 or 128.
        k_alignment: a positive multiple of 32; None for `get_k_alignment_for_contiguous_layout`.
        use_psum_layout: how to read ``grouped_layout``.

    Returns:
        int32 ``[sum of ceil(K_g/(4*gran_k)), MN]``, contiguous: four codes along K in a word, the first in
        the lowest byte, missing ones 0. K_g is ``ks_cpu``'s; without it there are ``(rows + 3*G) // 4`` rows.
        Rows past the last group's are unspecified. Values that UE8M0 cannot hold pack to 255.

    Raises:
        DeepGemmError: dtype, rank, device, granularity, alignment, or sizes that do not fit ``sf``.

    Source: E8M0 of the OCP Microscaling Formats (MX) specification, version 1.0.
    """
    _check_operands(sf, grouped_layout, gran_k)
    alignment = _checked_alignment(k_alignment)
    num_rows, num_mn = sf.shape
    num_words = _num_word_rows(num_rows, ks_cpu, grouped_layout, gran_k, use_psum_layout)
    if 0 in (num_rows, num_words, num_mn, grouped_layout.shape[0]):
        return torch.zeros((num_words, num_mn), dtype=torch.int32, device=sf.device)

    k_extents = grouped_layout.to(torch.int64)
    if use_psum_layout:
        k_extents = (k_extents - align(F.pad(k_extents[:-1], (1, 0)), alignment)).clamp(min=0)
    factors_of = ceil_div(k_extents, gran_k)
    words_of = ceil_div(factors_of, 4)
    factor_start = factors_of.cumsum(0) - factors_of
    word_end = words_of.cumsum(0)

    word = torch.arange(num_words, device=sf.device)
    group = torch.searchsorted(word_end, word, right=True).clamp(max=grouped_layout.shape[0] - 1)
    first = 4 * (word - (word_end - words_of)[group])  # the word's first factor within its group
    local = first.unsqueeze(-1) + torch.arange(4, device=sf.device)
    row = factor_start[group].unsqueeze(-1) + local
    is_missing = (local >= factors_of[group].unsqueeze(-1)) | (row >= num_rows)
    quads = ue8m0_codes(sf)[row.clamp(0, num_rows - 1)]  # [words, 4, MN]
    quads = quads.masked_fill(is_missing.unsqueeze(-1), 0)
    return join_codes(quads.transpose(1, 2)).squeeze(-1)


def _check_operands(sf: torch.Tensor, grouped_layout: torch.Tensor, gran_k: int) -> None:
    require_tensor(sf, "sf")
    if sf.dim() != 2 or (sf.dtype != torch.float32 and not is_e8m0(sf)):
        raise refusal(
            "sf",
            "torch.float32 or torch.float8_e8m0fnu of shape [sum of ceil(K_g/gran_k), MN]",
            f"{sf.dtype} of shape {tuple(sf.shape)}",
            "Pass the unpacked factors of all groups, stacked along K",
        )
    require_int32_vector(grouped_layout, "grouped_layout", sf)
    if gran_k not in (32, 128):
        raise refusal("gran_k", "32 or 128", gran_k, "Quantise with one of these granularities")


def _checked_alignment(k_alignment: int | None) -> int:
    alignment = get_mk_alignment_for_contiguous_layout() if k_alignment is None else k_alignment
    require_integer(alignment, "k_alignment", "Pass what set_mk_alignment_for_contiguous_layout was given")
    if alignment <= 0 or alignment % K_ALIGNMENT_STEP != 0:
        raise refusal(
            "k_alignment",
            f"a positive multiple of {K_ALIGNMENT_STEP}",
            alignment,
            "Pass what set_mk_alignment_for_contiguous_layout was given",
        )
    return alignment


def _num_word_rows(
    num_rows: int,
    ks_cpu: Sequence[int] | None,
    grouped_layout: torch.Tensor,
    gran_k: int,
    use_psum_layout: bool,
) -> int:
    """Rows of the packed result, from the host's sizes where they are known; refuses sizes that cannot be."""
    num_groups = grouped_layout.shape[0]
    if ks_cpu is not None:
        require_integers(ks_cpu, "ks_cpu", "Pass each group's K as a list, or None")
    if not ks_cpu:
        return (num_rows + 3 * num_groups) // 4
    if len(ks_cpu) != num_groups or any(k < 0 for k in ks_cpu):
        raise refusal(
            "ks_cpu",
            f"{num_groups} sizes, as in grouped_layout",
            list(ks_cpu),
            "Pass each group's K",
        )
    num_factors = sum(ceil_div(k, gran_k) for k in ks_cpu)
    # In the psum layout the host knows aligned sizes only, which may hold more factors than there are.
    if num_rows > num_factors or (num_rows < num_factors and not use_psum_layout):
        raise refusal(
            "sf",
            f"{num_factors} rows for ks_cpu and gran_k = {gran_k}",
            num_rows,
            "Pass matching sizes",
        )
    return sum(ceil_div(k, 4 * gran_k) for k in ks_cpu)
