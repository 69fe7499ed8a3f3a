"""Memory layouts of scaling factors (SF), and the row alignment of grouped problems. For CPU and GPU tensors.

Kernels read SFs MN-major: neighbouring rows are neighbours in memory, and the pitch between columns is the
row count rounded up to 16 bytes, which is what TMA can address. What is laid out so already comes back as the
same storage. Nothing here synchronises with the host. ``docs/scaling-factor-format.md`` draws the layouts.
"""

from __future__ import annotations

from .alignment import (
    get_k_alignment_for_contiguous_layout,
    get_m_alignment_for_contiguous_layout,
    get_mk_alignment_for_contiguous_layout,
    get_theoretical_mk_alignment_for_contiguous_layout,
    get_tma_aligned_size,
    set_mk_alignment_for_contiguous_layout,
)
from .k_grouped import get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor
from .mn_major import get_mn_major_tma_aligned_packed_ue8m0_tensor, get_mn_major_tma_aligned_tensor
from .required_layout import transform_sf_into_required_layout

__all__ = [
    "get_k_alignment_for_contiguous_layout",
    "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor",
    "get_m_alignment_for_contiguous_layout",
    "get_mk_alignment_for_contiguous_layout",
    "get_mn_major_tma_aligned_packed_ue8m0_tensor",
    "get_mn_major_tma_aligned_tensor",
    "get_theoretical_mk_alignment_for_contiguous_layout",
    "get_tma_aligned_size",
    "set_mk_alignment_for_contiguous_layout",
    "transform_sf_into_required_layout",
]
