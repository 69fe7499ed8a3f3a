"""Every name of the contract is importable, with its arguments, and refuses politely where it runs nowhere."""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch

import deep_gemm
from deep_gemm.ops.table import BY_NAME, OPS

LAYOUTS = ("nt", "nn", "tn", "tt")
OTHER_NAMES = """
__version__ DeepGemmError
set_num_sms get_num_sms get_tc_util set_tc_util set_pdl get_pdl set_block_size_multiple_of set_ignore_compile_dims
set_compile_mode get_compile_mode compile is_supported
set_mk_alignment_for_contiguous_layout get_mk_alignment_for_contiguous_layout get_m_alignment_for_contiguous_layout
get_k_alignment_for_contiguous_layout get_theoretical_mk_alignment_for_contiguous_layout get_tma_aligned_size
get_mn_major_tma_aligned_tensor get_mn_major_tma_aligned_packed_ue8m0_tensor
get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor transform_sf_into_required_layout
per_token_cast_to_fp8 per_channel_cast_to_fp8 per_block_cast_to_fp8 per_custom_dims_cast_to_fp8
per_token_cast_to_fp4 cast_back_from_fp4 transpose_packed_fp4
ceil_to_ue8m0 pack_ue8m0_to_int unpack_ue8m0_from_int ceil_div align
gemm_fp8_fp8_bf16_nt m_grouped_gemm_fp8_fp8_bf16_nt_contiguous m_grouped_gemm_fp8_fp8_bf16_nt_masked
get_col_major_tma_aligned_tensor calc_diff utils testing legacy jit_kernels
""".split()
# Written out, not read from the table: the table is what is under test.
OPERATION_NAMES = (
    [f"fp8_gemm_{layout}" for layout in LAYOUTS]
    + [f"fp8_fp4_gemm_{layout}" for layout in LAYOUTS]
    + [f"bf16_gemm_{layout}" for layout in LAYOUTS]
    + [f"cublaslt_gemm_{layout}" for layout in LAYOUTS]
    + [f"m_grouped_{kind}_gemm_{layout}_contiguous" for kind in ("fp8", "fp8_fp4", "bf16") for layout in ("nt", "nn")]
    + """
m_grouped_fp8_gemm_nt_masked m_grouped_fp8_fp4_gemm_nt_masked fp8_m_grouped_gemm_nt_masked
m_grouped_bf16_gemm_nt_masked bf16_m_grouped_gemm_nt_masked
fp8_fp4_mqa_logits get_paged_mqa_logits_metadata fp8_fp4_paged_mqa_logits fp8_mqa_logits fp8_paged_mqa_logits
k_grouped_fp8_gemm_nt_contiguous k_grouped_fp8_gemm_tn_contiguous k_grouped_bf16_gemm_tn_contiguous
fp8_einsum einsum tf32_hc_prenorm_gemm fp8_gemm_nt_skip_head_mid
SymmBuffer get_symm_buffer_for_mega_moe transform_weights_for_mega_moe fp8_fp4_mega_moe bf16_mega_moe
""".split()
)
LEGACY_NAMES = [
    *(f"m_grouped_bf16_gemm_{layout}_contiguous_tl" for layout in ("nt", "nn")),
    *(f"a_fused_m_grouped_bf16_gemm_{layout}_contiguous_tl" for layout in ("nt", "nn")),
    *(f"{side}_fused_k_grouped_bf16_gemm_tn_contiguous_tl" for side in "ab"),
]
RECIPES = "recipe=None, recipe_a=None, recipe_b=None"
SIGNATURES = {
    "fp8_gemm_nt": f"a, b, d, c=None, {RECIPES}, compiled_dims='nk', disable_ue8m0_cast=False",
    "fp8_gemm_nn": f"a, b, d, c=None, {RECIPES}, compiled_dims='nk', disable_ue8m0_cast=False",
    "fp8_gemm_tn": f"a, b, d, c=None, {RECIPES}, compiled_dims='mn', disable_ue8m0_cast=False",
    "fp8_gemm_tt": f"a, b, d, c=None, {RECIPES}, compiled_dims='mn', disable_ue8m0_cast=False",
    "m_grouped_fp8_gemm_nt_contiguous": f"a, b, d, grouped_layout, {RECIPES}, compiled_dims='nk', "
    "disable_ue8m0_cast=False, use_psum_layout=False, ensure_zero_padding=True, expected_m_for_psum_layout=None",
    "m_grouped_fp8_gemm_nn_contiguous": f"a, b, d, grouped_layout, {RECIPES}, compiled_dims='nk', "
    "disable_ue8m0_cast=False, use_psum_layout=False, ensure_zero_padding=True",
    "m_grouped_fp8_gemm_nt_masked": f"a, b, d, masked_m, expected_m, {RECIPES}, compiled_dims='nk', "
    "disable_ue8m0_cast=False",
    "bf16_gemm_tn": "a, b, d, c=None, compiled_dims='mn'",
    "m_grouped_bf16_gemm_nt_masked": "a, b, d, masked_m, expected_m, compiled_dims='nk'",
    "fp8_fp4_mqa_logits": "q, kv, weights, cu_seq_len_k_start, cu_seq_len_k_end, clean_logits=True, max_seqlen_k=0, "
    "logits_dtype=torch.float32",
    "fp8_mqa_logits": "q, kv, weights, cu_seq_len_k_start, cu_seq_len_k_end, clean_logits=True, max_seqlen_k=0",
    "get_paged_mqa_logits_metadata": "context_lens, block_kv, num_sms, indices=None",
    "fp8_fp4_paged_mqa_logits": "q, kv_cache, weights, context_lens, block_table, schedule_meta, max_context_len, "
    "clean_logits=False, logits_dtype=torch.float32, indices=None",
    "k_grouped_fp8_gemm_tn_contiguous": "a, b, d, ks_cpu, grouped_layout, c=None, recipe=(1, 1, 128), "
    "compiled_dims='mn', use_psum_layout=False",
    "k_grouped_bf16_gemm_tn_contiguous": "a, b, d, ks_cpu, grouped_layout, c=None, compiled_dims='mn', "
    "use_psum_layout=False",
    "fp8_einsum": "expr, a, b, d, c=None, recipe=(1, 128, 128)",
    "einsum": "expr, a, b, d, c=None, use_cublaslt=False",
    "tf32_hc_prenorm_gemm": "a, b, d, sqr_sum, num_splits=None",
    "fp8_gemm_nt_skip_head_mid": "a, b, d, head_splits, recipe=None, compiled_dims='nk', disable_ue8m0_cast=False",
    "cublaslt_gemm_nt": "a, b, d, c=None",
    "get_symm_buffer_for_mega_moe": "group, num_experts, num_max_tokens_per_rank, num_topk, hidden, "
    "intermediate_hidden, use_fp8_dispatch=None, mma_type='fp8xfp4', activation='swiglu'",
    "transform_weights_for_mega_moe": "l1_weights, l2_weights, activation='swiglu'",
    "fp8_fp4_mega_moe": "y, l1_weights, l2_weights, sym_buffer, cumulative_local_expert_recv_stats=None, "
    "recipe=(1, 1, 32), activation='swiglu', activation_clamp=None, fast_math=True",
    "bf16_mega_moe": "y, l1_weights, l2_weights, sym_buffer, cumulative_local_expert_recv_stats=None, "
    "activation='swiglu', activation_clamp=None, fast_math=True",
    "gemm_fp8_fp8_bf16_nt": "lhs, rhs, out",
    "m_grouped_gemm_fp8_fp8_bf16_nt_contiguous": "lhs, rhs, out, m_indices",
    "m_grouped_gemm_fp8_fp8_bf16_nt_masked": "lhs, rhs, out, masked_m, expected_m",
}


def home_of(op):
    """The module that an operation's name lives in."""
    return importlib.import_module(f"deep_gemm.{op.module}") if op.module else deep_gemm


def names_and_defaults(function_or_text):
    """[(argument, default)] of a function, or of an argument list as text."""
    if isinstance(function_or_text, str):
        function_or_text = eval(f"lambda {function_or_text}: None", {"torch": torch})
    parameters = inspect.signature(function_or_text).parameters.values()
    return [(parameter.name, parameter.default) for parameter in parameters]


@pytest.mark.parametrize("name", OTHER_NAMES + OPERATION_NAMES)
def test_name_is_importable(name):
    assert hasattr(deep_gemm, name)


@pytest.mark.parametrize("name", LEGACY_NAMES)
def test_legacy_name_is_importable(name):
    assert callable(getattr(deep_gemm.legacy, name))


def test_table_and_contract_name_the_same_operations():
    listed = {name for name, op in BY_NAME.items() if not op.module}
    old = {name for name in listed if name.startswith("m_grouped_gemm_fp8_fp8")}
    assert listed - old == set(OPERATION_NAMES)
    assert {name for name, op in BY_NAME.items() if op.module == "legacy"} == set(LEGACY_NAMES)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    assert names_and_defaults(getattr(deep_gemm, name)) == names_and_defaults(SIGNATURES[name])


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_table_row_matches_the_function(op):
    function = getattr(home_of(op), op.name)
    assert names_and_defaults(function) == names_and_defaults(op.signature)
    assert function.__name__ == op.name
    assert function.__doc__
    assert getattr(function, "is_pending", False) == (not op.archs)
    for alias in op.aliases:
        assert getattr(home_of(op), alias) is function


PENDING = [op for op in OPS if not op.archs]


@pytest.mark.parametrize("op", PENDING, ids=lambda op: op.name)
def test_pending_operation_says_what_is_supported(op):
    function = getattr(home_of(op), op.name)
    required = [name for name, default in names_and_defaults(op.signature) if default is inspect.Parameter.empty]
    arguments = {name: None for name in required if name not in ("args", "kwargs")}
    with pytest.raises(deep_gemm.DeepGemmError, match=f"{op.name}.*Supported: fp8_gemm_nt.*sm_90"):
        function(**arguments)
    if "kwargs" not in op.signature:
        with pytest.raises(TypeError, match="no_such_argument"):
            function(**arguments, no_such_argument=1)


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("m_grouped_bf16_gemm_nt_contiguous", {"a": 0, "b": 0, "d": 0, "m_indices": 0}),
        ("k_grouped_bf16_gemm_tn_contiguous", {"a": 0, "b": 0, "d": 0, "ks": 0, "ks_tensor": 0}),
        ("k_grouped_fp8_gemm_tn_contiguous", {"a": 0, "b": 0, "d": 0, "ks": 0, "ks_tensor": 0}),
    ],
)
def test_older_keywords_are_accepted(name, arguments):
    """The call is refused for what `a` is, no keyword is."""
    with pytest.raises(deep_gemm.DeepGemmError, match="^a must be"):
        getattr(deep_gemm, name)(**arguments)


def test_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="no_such_argument"):
        deep_gemm.fp8_gemm_nt(None, None, None, no_such_argument=1)


@pytest.mark.parametrize("operand", [None, 1, torch.zeros(2, 2), (torch.zeros(2, 2),), ()])
def test_operand_that_is_no_pair_is_refused(operand):
    good = (torch.zeros(2, 2).to(torch.float8_e4m3fn), torch.zeros(2, 1))
    with pytest.raises(deep_gemm.DeepGemmError, match="^a"):
        deep_gemm.fp8_gemm_nt(operand, good, torch.zeros(2, 2))


def test_utils_homes():
    from deep_gemm.jit_kernels import utils as utils_1x
    from deep_gemm.utils import layout, math

    assert deep_gemm.transform_sf_into_required_layout is layout.transform_sf_into_required_layout
    assert deep_gemm.per_token_cast_to_fp8 is math.per_token_cast_to_fp8
    assert utils_1x.get_col_major_tma_aligned_tensor is layout.get_mn_major_tma_aligned_tensor
    assert deep_gemm.calc_diff is deep_gemm.testing.calc_diff
    assert callable(deep_gemm.utils.dist.init_dist)


@pytest.mark.parametrize(
    "op, arch, expected",
    [
        ("fp8_gemm_nt", "sm_90a", True),
        ("fp8_gemm_nt", "sm_90", True),
        ("fp8_fp4_gemm_tt", (9, 0), True),
        ("fp8_gemm_nt", 90, True),
        ("fp8_gemm_nt", "cpu", True),
        ("fp8_gemm_nt", "sm_80", False),
        ("m_grouped_fp8_gemm_nt_contiguous", "sm_90a", True),
        ("fp8_m_grouped_gemm_nt_masked", 90, True),
        ("m_grouped_fp8_fp4_gemm_nn_contiguous", "cpu", True),
        ("m_grouped_gemm_fp8_fp8_bf16_nt_masked", "sm_90", True),
        ("m_grouped_fp8_gemm_nt_masked", "sm_100", False),
        ("einsum", "sm_90a", True),
        ("fp8_einsum", "sm_100", False),
    ],
)
def test_is_supported(op, arch, expected):
    assert deep_gemm.is_supported(op, arch) is expected


def test_is_supported_refuses_what_it_does_not_know():
    with pytest.raises(deep_gemm.DeepGemmError, match="no operation.*fp8_gemm_nt"):
        deep_gemm.is_supported("fp8_gemm", "sm_90")
    with pytest.raises(deep_gemm.DeepGemmError, match="arch"):
        deep_gemm.is_supported("fp8_gemm_nt", "hopper")


def test_star_import_keeps_the_built_in_compile():
    names: dict = {}
    exec("from deep_gemm import *", names)
    assert "compile" not in names and names["fp8_gemm_nt"] is deep_gemm.fp8_gemm_nt
    assert set(OPERATION_NAMES) <= set(names)
