"""Low-precision GEMMs for PyTorch: kernels compiled at run time, no CUDA toolkit needed.

Every public name of the contract is importable on any machine; a call that has no implementation raises DeepGemmError and
says what is supported. Importing initialises no CUDA and starts no compiler.
"""

from __future__ import annotations

from pathlib import Path as _Path

from . import _C
from .errors import DeepGemmError

__version__: str = _C.version

# Device headers: inside an installed package, beside it in a source tree.
_here = _Path(__file__).resolve().parent
_C.set_include_root(str(_here / "include" if (_here / "include").is_dir() else _here.parent / "include"))

from . import jit_kernels, legacy, testing, utils  # noqa: E402
from .nvrtc_paths import nvrtc_folders as _nvrtc_folders  # noqa: E402
from .ops.bf16_gemm import bf16_gemm_nn, bf16_gemm_nt, bf16_gemm_tn, bf16_gemm_tt  # noqa: E402
from .ops.cublaslt_gemm import (  # noqa: E402
    cublaslt_gemm_nn,
    cublaslt_gemm_nt,
    cublaslt_gemm_tn,
    cublaslt_gemm_tt,
)
from .ops.einsum import einsum, fp8_einsum  # noqa: E402
from .ops.fp8_gemm import (  # noqa: E402
    fp8_fp4_gemm_nn,
    fp8_fp4_gemm_nt,
    fp8_fp4_gemm_tn,
    fp8_fp4_gemm_tt,
    fp8_gemm_nn,
    fp8_gemm_nt,
    fp8_gemm_tn,
    fp8_gemm_tt,
)
from .ops.k_grouped_gemm import (  # noqa: E402
    k_grouped_bf16_gemm_tn_contiguous,
    k_grouped_fp8_gemm_nt_contiguous,
    k_grouped_fp8_gemm_tn_contiguous,
)
from .ops.m_grouped_fp8_gemm import (  # noqa: E402
    fp8_m_grouped_gemm_nt_masked,
    m_grouped_fp8_fp4_gemm_nn_contiguous,
    m_grouped_fp8_fp4_gemm_nt_contiguous,
    m_grouped_fp8_fp4_gemm_nt_masked,
    m_grouped_fp8_gemm_nn_contiguous,
    m_grouped_fp8_gemm_nt_contiguous,
    m_grouped_fp8_gemm_nt_masked,
)
from .ops.names_1x import (  # noqa: E402
    gemm_fp8_fp8_bf16_nt,
    m_grouped_gemm_fp8_fp8_bf16_nt_contiguous,
    m_grouped_gemm_fp8_fp8_bf16_nt_masked,
)
from .ops.pending import pending_functions as _pending_functions  # noqa: E402
from .ops.skip_head_mid import fp8_gemm_nt_skip_head_mid  # noqa: E402
from .ops.support import is_supported  # noqa: E402
from .precompile import compile  # noqa: E402
from .settings import (  # noqa: E402
    get_compile_mode,
    get_num_sms,
    get_pdl,
    get_tc_util,
    set_block_size_multiple_of,
    set_compile_mode,
    set_ignore_compile_dims,
    set_num_sms,
    set_pdl,
    set_tc_util,
)
from .testing import calc_diff  # noqa: E402
from .validation import check_call as _check_call  # noqa: E402
from .utils import (  # noqa: E402
    align,
    cast_back_from_fp4,
    ceil_div,
    ceil_to_ue8m0,
    get_k_alignment_for_contiguous_layout,
    get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_m_alignment_for_contiguous_layout,
    get_mk_alignment_for_contiguous_layout,
    get_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_mn_major_tma_aligned_tensor,
    get_theoretical_mk_alignment_for_contiguous_layout,
    get_tma_aligned_size,
    pack_ue8m0_to_int,
    per_block_cast_to_fp8,
    per_channel_cast_to_fp8,
    per_custom_dims_cast_to_fp8,
    per_token_cast_to_fp4,
    per_token_cast_to_fp8,
    set_mk_alignment_for_contiguous_layout,
    transform_sf_into_required_layout,
    transpose_packed_fp4,
    unpack_ue8m0_from_int,
)

get_col_major_tma_aligned_tensor = get_mn_major_tma_aligned_tensor  # 1.x

_C.set_validator(_check_call)
_C.set_nvrtc_search_path(_nvrtc_folders())
globals().update(_pending_functions())

# Without `compile`: a star import must not replace the built-in.
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in ("annotations", "compile"))
