"""Calls of fp8_gemm_* that must be refused, one row of data each, and unusual ones that must not."""

import torch

from fp8_calls import BF16, F32, K, M, N, Case, both, c_beside_d, moved, of_dtype
from fp8_calls import on_meta, options, overlapping_d, put, reshaped, separate_c, strided
from fp8_operands import FP8

SFA, SFB = "sfa (scales of a)", "sfb (scales of b)"

DTYPES = [
    Case(
        "a_bf16",
        of_dtype("a", BF16),
        ("a: ", "torch.float8_e4m3fn", "torch.bfloat16", "per_token_cast_to_fp8"),
    ),
    Case("a_f32", of_dtype("a", F32), ("a: ", "torch.float8_e4m3fn", "torch.float32")),
    Case("a_f16", of_dtype("a", torch.float16), ("a: ", "torch.float8_e4m3fn", "torch.float16")),
    Case("a_e5m2", of_dtype("a", torch.float8_e5m2), ("a: ", "torch.float8_e4m3fn", "torch.float8_e5m2")),
    Case("a_u8", of_dtype("a", torch.uint8), ("a: ", "torch.float8_e4m3fn", "torch.uint8")),
    Case(
        "a_fp4",
        of_dtype("a", torch.int8),
        ("a: ", "torch.float8_e4m3fn", "torch.int8", "FP4", "SM90", "SM100"),
    ),
    Case("b_bf16", of_dtype("b", BF16), ("b: ", "torch.float8_e4m3fn", "torch.bfloat16")),
    Case("b_f64", of_dtype("b", torch.float64), ("b: ", "torch.float8_e4m3fn", "torch.float64")),
    Case("b_i32", of_dtype("b", torch.int32), ("b: ", "torch.float8_e4m3fn", "torch.int32")),
    Case(
        "b_fp4",
        of_dtype("b", torch.int8),
        ("b: ", "torch.float8_e4m3fn", "torch.int8", "FP4", "SM90", "SM100"),
    ),
    Case("b_fp4_half_k", reshaped("b", N, K // 2), ("b: ", "[256, 384]", "[256, 192]")),
    Case("sfa_bf16", of_dtype("sfa", BF16), (SFA, "torch.float32", "torch.bfloat16")),
    Case("sfa_f64", of_dtype("sfa", torch.float64), (SFA, "torch.float32", "torch.float64")),
    Case("sfa_i64", of_dtype("sfa", torch.int64), (SFA, "torch.float32", "torch.int64")),
    Case("sfa_packed", of_dtype("sfa", torch.int32), (SFA, "torch.float32", "torch.int32", "UE8M0", "SM90")),
    Case(
        "sfa_e8m0",
        of_dtype("sfa", torch.float8_e8m0fnu),
        (SFA, "torch.float32", "torch.float8_e8m0fnu", "SM90"),
    ),
    Case("sfb_f16", of_dtype("sfb", torch.float16), (SFB, "torch.float32", "torch.float16")),
    Case("sfb_u8", of_dtype("sfb", torch.uint8), (SFB, "torch.float32", "torch.uint8")),
    Case("sfb_packed", of_dtype("sfb", torch.int32), (SFB, "torch.float32", "torch.int32", "UE8M0", "SM90")),
    Case(
        "sfb_e8m0",
        of_dtype("sfb", torch.float8_e8m0fnu),
        (SFB, "torch.float32", "torch.float8_e8m0fnu", "SM90"),
    ),
    Case("d_f16", of_dtype("d", torch.float16), ("d: ", "torch.bfloat16 or torch.float32", "torch.float16")),
    Case("d_f64", of_dtype("d", torch.float64), ("d: ", "torch.bfloat16 or torch.float32", "torch.float64")),
    Case("d_fp8", of_dtype("d", FP8), ("d: ", "torch.bfloat16 or torch.float32", "torch.float8_e4m3fn")),
    Case("d_i32", of_dtype("d", torch.int32), ("d: ", "torch.bfloat16 or torch.float32", "torch.int32")),
    Case("c_f32_for_bf16", separate_c(dtype=F32), ("c: ", "torch.bfloat16", "torch.float32")),
    Case("c_f16", separate_c(dtype=torch.float16), ("c: ", "torch.bfloat16", "torch.float16")),
    Case(
        "c_bf16_for_f32", both(separate_c(), of_dtype("d", F32)), ("c: ", "torch.float32", "torch.bfloat16")
    ),
]

RANKS = [
    Case("a_1d", reshaped("a", M * K), ("a: ", "2 dimensions", "[M, K]", "got 1")),
    Case("a_3d", reshaped("a", 1, M, K), ("a: ", "2 dimensions", "got 3", "[1, 64, 384]")),
    Case("b_1d", reshaped("b", N * K), ("b: ", "2 dimensions", "[N, K]", "got 1")),
    Case("b_3d", reshaped("b", 2, N, K), ("b: ", "2 dimensions", "got 3", "[2, 256, 384]")),
    Case("sfa_0d", reshaped("sfa"), (SFA, "2 dimensions", "got 0")),
    Case("sfa_1d", reshaped("sfa", M), (SFA, "2 dimensions", "got 1")),
    Case("sfa_3d", reshaped("sfa", 1, M, 3), (SFA, "2 dimensions", "got 3", "[1, 64, 3]")),
    Case("sfb_1d", reshaped("sfb", 6), (SFB, "2 dimensions", "got 1")),
    Case("sfb_3d", reshaped("sfb", 1, 2, 3), (SFB, "2 dimensions", "got 3", "[1, 2, 3]")),
    Case("d_1d", reshaped("d", M * N), ("d: ", "2 dimensions", "[M, N]", "got 1")),
    Case("d_3d", reshaped("d", M, N, 1), ("d: ", "2 dimensions", "got 3", "[64, 256, 1]")),
    Case("c_1d_bias", separate_c((N,)), ("c: ", "2 dimensions", "[M, N]", "got 1")),
    Case("c_3d", separate_c((1, M, N)), ("c: ", "2 dimensions", "got 3")),
]

SHAPES = [
    Case("k_differs", reshaped("b", N, K + 128), ("b: ", "[256, 384]", "[256, 512]", "K comes from a")),
    Case("b_not_transposed", put(layout="nn"), ("b: ", "[384, 384]", "[384, 256]", "layout")),
    Case("a_not_transposed", put(layout="tn"), ("b: ", "layout")),
    Case("d_rows", reshaped("d", M + 1, N), ("d: ", "[64, 256]", "[65, 256]")),
    Case("d_columns", reshaped("d", M, N - 8), ("d: ", "[64, 256]", "[64, 248]")),
    Case("d_transposed", reshaped("d", N, M), ("d: ", "[64, 256]", "[256, 64]")),
    Case("sfa_rows", reshaped("sfa", M - 1, 3), (SFA, "[64, 3]", "[63, 3]")),
    Case("sfa_columns", reshaped("sfa", M, 4), (SFA, "[64, 3]", "[64, 4]")),
    Case("sfa_k_first", reshaped("sfa", 3, M), (SFA, "[64, 3]", "[3, 64]")),
    Case("sfa_per_tensor", reshaped("sfa", 1, 1), (SFA, "[64, 3]", "[1, 1]")),
    Case("sfb_rows", reshaped("sfb", 3, 3), (SFB, "[2, 3]", "[3, 3]")),
    Case("sfb_columns", reshaped("sfb", 2, 2), (SFB, "[2, 3]", "[2, 2]")),
    Case("sfb_k_first", reshaped("sfb", 3, 2), (SFB, "[2, 3]", "[3, 2]")),
    Case(
        "sfb_per_row_without_recipe", reshaped("sfb", N, 3), (SFB, "[2, 3]", "[256, 3]", "recipe=(1, 1, 128)")
    ),
    Case("sfb_per_block_for_1d1d", options(recipe=(1, 1, 128)), (SFB, "[256, 3]", "[2, 3]", "(1, 128, 128)")),
    Case(
        "k_tail_needs_a_factor",
        both(reshaped("a", M, K + 16), reshaped("b", N, K + 16)),
        (SFA, "[64, 4]", "[64, 3]"),
    ),
    Case("c_rows", separate_c((M + 8, N)), ("c: ", "[64, 256]", "[72, 256]")),
    Case("c_row_vector", separate_c((1, N)), ("c: ", "[64, 256]", "[1, 256]")),
    Case("c_column", separate_c((M, 1)), ("c: ", "[64, 256]", "[64, 1]")),
]

LAYOUTS = [
    Case("a_m_major", strided("a", (M, K), (1, M)), ("a: ", "stride 1 along K", "got 64", "[1, 64]")),
    Case("b_n_major", strided("b", (N, K), (1, N)), ("b: ", "stride 1 along K", "got 256", "[1, 256]")),
    Case(
        "nn_row_major",
        both(put(layout="nn"), reshaped("b", K, N), put(sfb=lambda call: call.sfb.t())),
        ("b: ", "stride 1 along K"),
    ),
    Case(
        "tn_row_major",
        both(
            put(layout="tn"),
            reshaped("a", K, M),
            put(sfa=lambda call: call.sfa.t()),
            put(b=lambda call: call.b.t(), sfb=lambda call: call.sfb.t()),
        ),
        ("a: ", "stride 1 along K"),
    ),
    Case("a_every_other", strided("a", (M, K), (2 * K, 2)), ("a: ", "stride 1 along K", "got 2")),
    Case("b_every_other", strided("b", (N, K), (2 * K, 2)), ("b: ", "stride 1 along K", "got 2")),
    Case("a_odd_rows", strided("a", (M, K), (K + 8, 1)), ("a: ", "multiple of 16 bytes", "got 392 bytes")),
    Case("b_odd_rows", strided("b", (N, K), (K + 1, 1)), ("b: ", "multiple of 16 bytes", "got 385 bytes")),
    Case(
        "a_odd_address",
        strided("a", (M, K), (K, 1), offset=4),
        ("a: ", "multiple of 16 bytes", "4 bytes past"),
    ),
    Case(
        "b_odd_address",
        strided("b", (N, K), (K, 1), offset=1),
        ("b: ", "multiple of 16 bytes", "1 bytes past"),
    ),
    Case("a_expanded", strided("a", (M, K), (0, 1)), ("a: ", "at least 384", "got 0")),
    Case("b_windows", strided("b", (N, K), (16, 1)), ("b: ", "at least 384", "got 16")),
    Case("d_column_major", strided("d", (M, N), (1, M)), ("d: ", "stride 1 along N", "got 64")),
    Case("d_every_other", strided("d", (M, N), (2 * N, 2)), ("d: ", "stride 1 along N", "got 2")),
    Case("d_odd_rows", strided("d", (M, N), (N + 4, 1)), ("d: ", "multiple of 16 bytes", "got 520 bytes")),
    Case(
        "d_odd_address",
        strided("d", (M, N), (N, 1), offset=1),
        ("d: ", "multiple of 16 bytes", "2 bytes past"),
    ),
    Case("d_expanded", strided("d", (M, N), (0, 1)), ("d: ", "at least 256", "got 0")),
    Case(
        "d_odd_n",
        both(reshaped("b", 100, K), reshaped("sfb", 1, 3), reshaped("d", M, 100)),
        ("d: ", "multiple of 16 bytes", "got 200 bytes", "208 bytes"),
    ),
    Case(
        "c_column_major",
        both(separate_c(), strided("c", (M, N), (1, M))),
        ("c: ", "stride 1 along N", "got 64"),
    ),
    Case(
        "c_odd_rows",
        both(separate_c(), strided("c", (M, N), (N + 2, 1))),
        ("c: ", "multiple of 16 bytes", "516 bytes"),
    ),
    Case(
        "c_odd_address",
        both(separate_c(), strided("c", (M, N), (N, 1), 3)),
        ("c: ", "multiple of 16 bytes", "6 bytes"),
    ),
    Case("c_expanded", both(separate_c(), strided("c", (M, N), (0, 1))), ("c: ", "at least 256", "got 0")),
]

RECIPES = [
    Case("gran_k_32", options(recipe=(1, 1, 32)), ("recipe: ", "(1, 1, 32)", "(1, 128, 128)", "(1, 1, 128)")),
    Case("gran_k_64", options(recipe=(1, 128, 64)), ("recipe: ", "(1, 128, 64)", "(1, 128, 128)")),
    Case("gran_m_128", options(recipe=(128, 128, 128)), ("recipe: ", "(128, 128, 128)", "(1, 128, 128)")),
    Case("gran_n_64", options(recipe=(1, 64, 128)), ("recipe: ", "(1, 64, 128)", "(1, 128, 128)")),
    Case("recipe_of_zeros", options(recipe=(0, 0, 0)), ("recipe ", "positive", "(0, 0, 0)")),
    Case("recipe_negative", options(recipe=(1, -128, 128)), ("recipe ", "positive", "(1, -128, 128)")),
    Case("recipe_of_two", options(recipe=(128, 128)), ("recipe ", "3 positive integers", "(128, 128)")),
    Case(
        "recipe_a_of_three",
        options(recipe_a=(1, 128, 128)),
        ("recipe_a ", "2 positive integers", "(1, 128, 128)"),
    ),
    Case("recipe_of_floats", options(recipe=(1, 1.5, 128)), ("recipe ", "positive integers", "1.5")),
    Case("recipe_word", options(recipe="1d1d"), ("recipe ", "positive integers", "1d1d")),
    Case("compiled_dims_letter", options(compiled_dims="nx"), ("compiled_dims", "m, n, k", "nx")),
    Case("recipe_a_alone", options(recipe_a=(1, 128)), ("recipe_b: ", "None", "recipe_a", "both or neither")),
    Case(
        "recipe_b_alone", options(recipe_b=(128, 128)), ("recipe_a: ", "None", "recipe_b", "both or neither")
    ),
    Case(
        "recipe_and_a", options(recipe=(1, 128, 128), recipe_a=(1, 128)), ("recipe: ", "either", "recipe_a")
    ),
    Case(
        "recipe_and_b", options(recipe=(1, 128, 128), recipe_b=(128, 128)), ("recipe: ", "either", "recipe_b")
    ),
    Case(
        "recipe_and_both",
        options(recipe=(1, 128, 128), recipe_a=(1, 128), recipe_b=(128, 128)),
        ("recipe: ", "either"),
    ),
    Case(
        "parts_gran_k", options(recipe_a=(1, 128), recipe_b=(128, 32)), ("recipe_b: ", "gran_k", "128", "32")
    ),
    Case(
        "parts_32",
        options(recipe_a=(1, 32), recipe_b=(1, 32)),
        ("recipe_a, recipe_b: ", "(1, 1, 32)", "(1, 1, 128)"),
    ),
    Case(
        "parts_block_a",
        options(recipe_a=(128, 128), recipe_b=(128, 128)),
        ("recipe_a, recipe_b: ", "(128, 128, 128)"),
    ),
]

ALIASES = [
    Case("d_over_a", overlapping_d("a"), ("d: ", "memory of its own", "overlap with a")),
    Case("d_over_b", overlapping_d("b"), ("d: ", "memory of its own", "overlap with b")),
    Case("d_over_sfa", overlapping_d("sfa"), ("d: ", "memory of its own", "overlap with " + SFA)),
    Case("d_over_sfb", overlapping_d("sfb"), ("d: ", "memory of its own", "overlap with " + SFB)),
    Case("c_one_row_down", c_beside_d(1, 0), ("c: ", "d itself", "partial overlap with d")),
    Case("c_last_row", c_beside_d(M - 1, 0), ("c: ", "d itself", "partial overlap with d")),
    Case("c_eight_columns_right", c_beside_d(0, 8), ("c: ", "d itself", "partial overlap with d")),
    Case(
        "c_other_strides",
        put(
            d=lambda call: torch.zeros(2 * M, N, dtype=BF16)[:M],
            c=lambda call: call.d.as_strided((M, N), (N + 8, 1)),
        ),
        ("c: ", "[264, 1]", "[256, 1]"),
    ),
]

DEVICES = [
    Case("sfa_on_cuda", moved("sfa", "cuda:1"), (SFA, "cpu, where a is", "cuda:1")),
    Case("b_on_cuda", moved("b", "cuda:0"), ("b: ", "cpu, where a is", "cuda:0")),
    Case("sfb_on_cuda", moved("sfb", "cuda:1"), (SFB, "cpu, where a is", "cuda:1")),
    Case("c_on_cuda", both(separate_c(), moved("c", "cuda:1")), ("c: ", "cpu, where a is", "cuda:1")),
    Case("a_on_cuda", moved("a", "cuda:1"), (SFA, "cuda:1, where a is", "cpu")),
    Case(
        "two_gpus", both(moved("a", "cuda:1"), moved("sfa", "cuda:0")), (SFA, "cuda:1, where a is", "cuda:0")
    ),
    Case("a_on_xpu", moved("a", "xpu:0"), ("a: ", "CUDA device", "CPU")),
    Case("d_without_memory", on_meta("d"), ("d ", "meta")),
    Case("b_without_memory", on_meta("b"), ("b ", "meta")),
    Case("c_without_memory", both(separate_c(), on_meta("c")), ("c ", "meta")),
]

BAD_CALLS = DTYPES + RANKS + SHAPES + LAYOUTS + RECIPES + ALIASES + DEVICES

# Unusual, and right: the contract refuses nothing that works.
GOOD_CALLS = [
    Case("c_right_of_d", c_beside_d(0, N)),
    Case("c_below_d", c_beside_d(M, 0)),
    Case("c_below_and_right", c_beside_d(M // 2, N)),
    Case("d_itself_as_another_view", put(d=torch.ones(M, N, dtype=BF16), c=lambda call: call.d.view(M, N))),
    Case("wide_rows", both(strided("a", (M, K), (K + 16, 1)), strided("d", (M, N), (N + 8, 1)))),
    Case("offset_base", strided("b", (N, K), (K, 1), offset=32)),
    Case("odd_m", both(reshaped("a", 3, K), reshaped("sfa", 3, 3), reshaped("d", 3, N))),
    Case(
        "one_row_any_stride",
        both(strided("a", (1, K), (7, 1)), reshaped("sfa", 1, 3), strided("d", (1, N), (1, 1))),
    ),
    Case("no_rows", both(reshaped("a", 0, K), reshaped("sfa", 0, 3), reshaped("d", 0, N))),
    Case("no_columns", both(reshaped("b", 0, K), reshaped("sfb", 0, 3), reshaped("d", M, 0))),
    Case(
        "no_k", both(reshaped("a", M, 0), reshaped("sfa", M, 0), reshaped("b", N, 0), reshaped("sfb", 2, 0))
    ),
    Case("sfa_repeated", put(sfa=lambda call: torch.ones(1, 1).expand(M, 3))),
    Case("parts", options(recipe_a=(1, 128), recipe_b=(128, 128))),
]
