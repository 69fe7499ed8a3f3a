"""Calls of the grouped FP8 GEMMs that must be refused, one row of data each, and unusual ones that must not."""

from __future__ import annotations

import dataclasses
import math

import torch

from deep_gemm import _C
from fp8_calls import BF16, F32, Case, both, moved, of_dtype, on_meta, put, reshaped, strided
from fp8_operands import FP8, random_fp8, random_scales

G, M, N, K = 3, 256, 136, 384
CAPACITY = 72  # of a masked group
SFA, SFB = "sfa (scales of a)", "sfb (scales of b)"


@dataclasses.dataclass
class GroupedCall:
    """A good call, for a case to spoil. `layout` is grouped_layout or masked_m."""

    name: str
    a: torch.Tensor
    sfa: torch.Tensor
    b: torch.Tensor
    sfb: torch.Tensor
    d: torch.Tensor
    layout: torch.Tensor
    recipe: object = None
    recipe_a: object = None
    recipe_b: object = None
    compiled_dims: object = "nk"
    expected_m: object = 30
    use_psum_layout: object = False
    expected_m_for_psum_layout: object = None
    alignment: object = 128

    def run(self):
        shared = ((self.a, self.sfa), (self.b, self.sfb), self.d, self.layout)
        options = (self.recipe, self.recipe_a, self.recipe_b, self.compiled_dims, False)
        if self.name.endswith("masked"):
            return getattr(_C, self.name)(*shared, self.expected_m, *options)
        psum = (self.use_psum_layout, True, self.expected_m_for_psum_layout)
        return getattr(_C, self.name)(*shared, *options, *psum, self.alignment)


def good_b(groups: int = G):
    b = torch.stack([random_fp8(N, K, seed=3 + g).contiguous() for g in range(groups)])
    return b, torch.stack([random_scales(2, K // 128, seed=40 + g) for g in range(groups)])


def good_contiguous() -> GroupedCall:
    layout = torch.tensor([2] * 100 + [-1] * 28 + [0] * 128, dtype=torch.int32)
    operands = random_fp8(M, K, seed=1), random_scales(M, K // 128, seed=2), *good_b()
    return GroupedCall("m_grouped_fp8_gemm_nt_contiguous", *operands, torch.full((M, N), math.nan, dtype=BF16), layout)


def good_masked() -> GroupedCall:
    a = torch.stack([random_fp8(CAPACITY, K, seed=g).contiguous() for g in range(G)])
    sfa = torch.stack([random_scales(CAPACITY, K // 128, seed=20 + g) for g in range(G)])
    d = torch.full((G, CAPACITY, N), math.nan, dtype=BF16)
    counts = torch.tensor([CAPACITY] * G, dtype=torch.int32)
    return GroupedCall("m_grouped_fp8_gemm_nt_masked", a, sfa, *good_b(), d, counts)


def d_over(field: str):
    """D placed so that its last 16 bytes are an input's first."""

    def spoil(call: GroupedCall):
        source = getattr(call, field)
        flat, size = source.contiguous().view(torch.uint8).flatten(), call.d.numel() * 2
        buffer = torch.zeros(size + flat.numel(), dtype=torch.uint8)
        buffer[size - 16 : size - 16 + flat.numel()] = flat
        setattr(call, field, buffer[size - 16 : size - 16 + flat.numel()].view(source.dtype).view(source.shape))
        call.d = buffer[:size].view(BF16).view(call.d.shape)

    return spoil


def psum_call(**changes):
    """The call with a layout of ends, and `changes`."""
    return put(**{"use_psum_layout": True, "layout": torch.tensor([100, 128, 256], dtype=torch.int32), **changes})


EITHER = [
    Case("a_bf16", of_dtype("a", BF16), ("a: ", "torch.float8_e4m3fn", "torch.bfloat16")),
    Case("a_fp4", of_dtype("a", torch.int8), ("a: ", "FP4", "SM100")),
    Case("b_f16", of_dtype("b", torch.float16), ("b: ", "torch.float8_e4m3fn", "torch.float16")),
    Case("sfa_packed", of_dtype("sfa", torch.int32), (SFA, "UE8M0", "SM90")),
    Case("sfb_f64", of_dtype("sfb", torch.float64), (SFB, "torch.float32", "torch.float64")),
    Case("d_f32", of_dtype("d", F32), ("d: ", "torch.bfloat16", "torch.float32", "grouped")),
    Case("layout_i64", of_dtype("layout", torch.int64), ("torch.int32", "torch.int64", ".int()")),
    Case("layout_2d", put(layout=lambda call: call.layout[None]), ("1 dimensions", "got 2")),
    Case("layout_of_zero_stride", put(layout=lambda call: call.layout[:1].expand(call.layout.shape)), ("stride 1", "got 0")),
    Case("b_2d", reshaped("b", N, K), ("b: ", "3 dimensions [G, N, K]", "got 2")),
    Case("sfb_2d", reshaped("sfb", 2, 3), (SFB, "3 dimensions [G, ceil(N/gran_n), ceil(K/128)]", "got 2")),
    Case("k_differs", reshaped("b", G, N, K + 128), ("b: ", "[3, 136, 384] ([G, N, K])", "[3, 136, 512]")),
    Case("sfb_groups", reshaped("sfb", G + 1, 2, 3), (SFB, "[3, 2, 3]", "[4, 2, 3]")),
    Case("sfb_rows", reshaped("sfb", G, 1, 3), (SFB, "[3, 2, 3]", "[3, 1, 3]")),
    Case("sfb_per_row_without_recipe", reshaped("sfb", G, N, 3), (SFB, "[3, 2, 3]", "recipe=(1, 1, 128)")),
    Case("b_n_major", strided("b", (G, N, K), (N * K, 1, N)), ("b: ", "stride 1 along K", "got 136")),
    Case("b_odd_rows", strided("b", (G, N, K), (N * (K + 8), K + 8, 1)), ("b: ", "multiple of 16 bytes", "392 bytes")),
    Case("b_odd_groups", strided("b", (G, N, K), (N * K + 8, K, 1)), ("b: ", "group stride", "16 bytes", "got 52232 bytes")),
    Case("b_one_for_all", strided("b", (G, N, K), (0, K, 1)), ("b: ", "groups that do not overlap", "52224", "got 0")),
    Case("b_groups_overlap", strided("b", (G, N, K), (K, K, 1)), ("b: ", "groups that do not overlap", "got 384")),
    Case("b_odd_address", strided("b", (G, N, K), (N * K, K, 1), offset=8), ("b: ", "8 bytes past")),
    Case("gran_k_32", put(recipe=(1, 1, 32)), ("recipe: ", "(1, 1, 32)", "(1, 128, 128)")),
    Case("recipe_a_alone", put(recipe_a=(1, 128)), ("recipe_b: ", "both or neither")),
    Case("recipe_of_two", put(recipe=(1, 128)), ("recipe ", "3 positive integers")),
    Case("compiled_dims_letter", put(compiled_dims="z"), ("compiled_dims", "m, n, k")),
    Case("d_over_b", d_over("b"), ("d: ", "overlap with b")),
    Case("d_over_a", d_over("a"), ("d: ", "overlap with a")),
    Case("d_over_sfa", d_over("sfa"), ("d: ", "overlap with " + SFA)),
    Case("d_over_sfb", d_over("sfb"), ("d: ", "overlap with " + SFB)),
    Case("b_on_cuda", moved("b", "cuda:0"), ("b: ", "cpu, where a is", "cuda:0")),
    Case("layout_on_cuda", moved("layout", "cuda:0"), ("cpu, where a is", "cuda:0")),
    Case("layout_without_memory", on_meta("layout"), ("meta",)),
    Case("layout_missing", put(layout=None), ("must be a tensor", "NoneType")),
    Case("a_bare", put(a=None), ("a ", "must be a tensor")),
]

CONTIGUOUS = [
    Case("a_3d", reshaped("a", 1, M, K), ("a: ", "2 dimensions [M, K]", "got 3")),
    Case("d_3d", reshaped("d", 1, M, N), ("d: ", "2 dimensions [M, N]", "got 3")),
    Case("d_rows", reshaped("d", M + 1, N), ("d: ", "[256, 136]", "[257, 136]")),
    Case("sfa_columns", reshaped("sfa", M, 4), (SFA, "[256, 3]", "[256, 4]")),
    Case("layout_short", put(layout=lambda call: call.layout[:-1].clone()), ("grouped_layout: ", "[256] ([M])", "[255]")),
    Case("layout_of_groups", put(layout=torch.tensor([128] * G, dtype=torch.int32)), ("grouped_layout: ", "[256]", "[3]")),
    Case("layout_every_other", strided("layout", (M,), (2,)), ("grouped_layout: ", "stride 1 along M", "got 2")),
    Case("layout_f32", of_dtype("layout", F32), ("grouped_layout: ", "torch.int32", "torch.float32")),
    Case("not_transposed", put(name="m_grouped_fp8_gemm_nn_contiguous"), ("b: ", "check the layout letters")),
    Case(
        "nn_row_major",
        both(
            put(name="m_grouped_fp8_gemm_nn_contiguous"),
            reshaped("b", G, K, N),
            put(sfb=lambda call: call.sfb.transpose(1, 2)),
        ),
        ("b: ", "stride 1 along K", "got 136"),
    ),
    Case("psum_of_rows", put(use_psum_layout=True), ("grouped_layout: ", "[3] ([G])", "[256]", "use_psum_layout")),
    Case("psum_short", psum_call(layout=torch.tensor([1, 128], dtype=torch.int32)), ("grouped_layout: ", "[3]", "[2]")),
    Case("psum_i64", psum_call(layout=torch.tensor([1, 128, 256])), ("grouped_layout: ", "torch.int32", "torch.int64")),
    Case("psum_hint_negative", psum_call(expected_m_for_psum_layout=-1), ("expected_m_for_psum_layout: ", "0 or more", "-1")),
    Case("psum_alignment_96", psum_call(alignment=96), ("alignment: ", "multiple of 64", "got 96")),
    Case("psum_d_over_layout", both(psum_call(), d_over("layout")), ("d: ", "overlap with grouped_layout")),
    Case("psum_hint", put(expected_m_for_psum_layout=7), ("expected_m_for_psum_layout: ", "None", "got 7")),
    Case("psum_hint_word", put(expected_m_for_psum_layout="7"), ("expected_m_for_psum_layout must be an integer", "'7'")),
    Case("alignment_16", put(alignment=16), ("alignment: ", "multiple of 64", "got 16", "set_mk_alignment")),
    Case("alignment_0", put(alignment=0), ("alignment: ", "multiple of 64", "got 0")),
    Case("alignment_negative", put(alignment=-128), ("alignment: ", "positive", "got -128")),
    Case("alignment_float", put(alignment=128.0), ("alignment must be an integer", "128.0")),
    Case("d_over_layout", d_over("layout"), ("d: ", "overlap with grouped_layout")),
]

MASKED = [
    Case("a_2d", reshaped("a", CAPACITY, K), ("a: ", "3 dimensions [G, M, K]", "got 2")),
    Case("d_2d", reshaped("d", CAPACITY, N), ("d: ", "3 dimensions [G, M, N]", "got 2")),
    Case("sfa_2d", reshaped("sfa", CAPACITY, 3), (SFA, "3 dimensions [G, M, ceil(K/128)]", "got 2")),
    Case("b_groups", reshaped("b", G - 1, N, K), ("b: ", "[3, 136, 384]", "[2, 136, 384]", "G and K come from a")),
    Case("d_groups", reshaped("d", G + 1, CAPACITY, N), ("d: ", "[3, 72, 136]", "[4, 72, 136]")),
    Case("d_rows", reshaped("d", G, CAPACITY - 8, N), ("d: ", "[3, 72, 136]", "[3, 64, 136]")),
    Case("sfa_rows", reshaped("sfa", G, CAPACITY + 1, 3), (SFA, "[3, 72, 3] ([G, M, ceil(K/128)])", "[3, 73, 3]")),
    Case("a_odd_groups", strided("a", (G, CAPACITY, K), (CAPACITY * K + 4, K, 1)), ("a: ", "group stride", "16 bytes")),
    Case("a_k_first", strided("a", (G, CAPACITY, K), (CAPACITY * K, 1, CAPACITY)), ("a: ", "stride 1 along K", "got 72")),
    Case("d_one_for_all", strided("d", (G, CAPACITY, N), (0, N, 1)), ("d: ", "groups that do not overlap")),
    Case("d_odd_groups", strided("d", (G, CAPACITY, N), (CAPACITY * N + 4, N, 1)), ("d: ", "group stride", "got 19592 bytes")),
    Case("d_half_interleaved", strided("d", (G, CAPACITY, N), (N, 2 * N, 1)), ("d: ", "groups that do not overlap")),
    Case("counts_short", put(layout=lambda call: call.layout[:2].clone()), ("masked_m: ", "[3] ([G])", "[2]")),
    Case("counts_every_other", strided("layout", (G,), (2,)), ("masked_m: ", "stride 1 along G", "got 2")),
    Case("counts_u8", of_dtype("layout", torch.uint8), ("masked_m: ", "torch.int32", "torch.uint8")),
    Case("expected_m_negative", put(expected_m=-1), ("expected_m: ", "0 or more", "got -1")),
    Case("expected_m_float", put(expected_m=3.5), ("expected_m must be an integer", "3.5")),
    Case("expected_m_none", put(expected_m=None), ("expected_m must be an integer", "None")),
    Case("expected_m_huge", put(expected_m=2**70), ("expected_m must be an integer",)),
    Case("d_over_counts", d_over("layout"), ("d: ", "overlap with masked_m")),
]

GOOD = {good_contiguous: EITHER + CONTIGUOUS, good_masked: EITHER + MASKED}
BAD_GROUPED_CALLS = [(make, case) for make, cases in GOOD.items() for case in cases]

# Unusual, and right: the contract refuses nothing that works.
GOOD_GROUPED_CALLS = [
    (good_masked, Case("expected_m_0", put(expected_m=0))),
    (good_masked, Case("expected_m_beyond", put(expected_m=10**9))),
    (good_masked, Case("expected_m_of_torch", put(expected_m=torch.tensor(4)))),
    (good_masked, Case("interleaved_d", strided("d", (G, CAPACITY, N), (N, G * N, 1)))),
    (good_masked, Case("interleaved_a", strided("a", (G, CAPACITY, K), (K, G * K, 1)))),
    (good_masked, Case("sfa_repeated", put(sfa=lambda call: torch.ones(1, 1, 1).expand(G, CAPACITY, 3)))),
    (
        good_masked,
        Case(
            "one_group_of_any_stride",
            both(
                strided("a", (1, CAPACITY, K), (7, K, 1)),
                put(b=lambda call: call.b[:1], sfb=lambda call: call.sfb[:1], sfa=lambda call: call.sfa[:1]),
                put(layout=lambda call: call.layout[:1], d=lambda call: call.d[:1]),
            ),
        ),
    ),
    (good_masked, Case("parts", put(recipe_a=(1, 128), recipe_b=(128, 128)))),
    (good_contiguous, Case("alignment_64", put(alignment=64))),
    (good_contiguous, Case("alignment_256", put(alignment=256))),
    (good_contiguous, Case("psum", psum_call())),
    (good_contiguous, Case("psum_hint_0", psum_call(expected_m_for_psum_layout=0))),
    (good_contiguous, Case("psum_hint_beyond", psum_call(expected_m_for_psum_layout=10**12))),
    (good_contiguous, Case("psum_alignment_beyond", psum_call(alignment=2**40))),
    (good_contiguous, Case("b_of_bigger_buffer", strided("b", (G, N, K), (N * (K + 16) + 32, K + 16, 1)))),
    (
        good_contiguous,
        Case(
            "nn_of_transposed",
            both(
                put(name="m_grouped_fp8_gemm_nn_contiguous"),
                put(b=lambda call: call.b.transpose(1, 2), sfb=lambda call: call.sfb.transpose(1, 2)),
            ),
        ),
    ),
    (
        good_contiguous,
        Case(
            "per_row",
            both(put(recipe=(1, 1, 128)), put(sfb=lambda call: torch.ones(G, N, 3))),
        ),
    ),
    (
        good_contiguous,
        Case("d_between_columns_of_a_buffer", put(d=lambda call: torch.zeros(M, 3 * N, dtype=BF16)[:, N : 2 * N])),
    ),
]
