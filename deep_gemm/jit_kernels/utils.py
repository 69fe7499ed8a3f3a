"""The layout helpers under their 1.x names."""

from ..settings import get_num_sms, set_num_sms
from ..utils import (
    ceil_div,
    get_m_alignment_for_contiguous_layout,
    get_tma_aligned_size,
)
from ..utils import get_mn_major_tma_aligned_tensor as get_col_major_tma_aligned_tensor

__all__ = [
    "ceil_div",
    "get_col_major_tma_aligned_tensor",
    "get_m_alignment_for_contiguous_layout",
    "get_num_sms",
    "get_tma_aligned_size",
    "set_num_sms",
]
