"""The BF16 grouped GEMMs of the Triton releases, on today's kernels. Those grouped along K with gathered rows refuse every call
until they are implemented."""

from __future__ import annotations

from .ops.names_legacy import (
    a_fused_m_grouped_bf16_gemm_nn_contiguous_tl,
    a_fused_m_grouped_bf16_gemm_nt_contiguous_tl,
    m_grouped_bf16_gemm_nn_contiguous_tl,
    m_grouped_bf16_gemm_nt_contiguous_tl,
)
from .ops.pending import pending_functions as _pending_functions

globals().update(_pending_functions("legacy"))
