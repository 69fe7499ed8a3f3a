"""Calls of the grouped BF16 GEMMs that must be refused, one row of data each, and unusual ones that must not."""

from __future__ import annotations

import dataclasses
import math

import torch

from deep_gemm import _C
from fp8_calls import BF16, F32, Case, both, moved, of_dtype, on_meta, put, reshaped, strided
from grouped_bf16_cases import values
from grouped_bad_calls import d_over, psum_call

G, M, N, K = 3, 256, 136, 192
CAPACITY = 72  # of a masked group


@dataclasses.dataclass
class GroupedCall:
    """A good call, for a case to spoil. `layout` is grouped_layout or masked_m."""

    name: str
    a: torch.Tensor
    b: torch.Tensor
    d: torch.Tensor
    layout: torch.Tensor
    compiled_dims: object = "nk"
    expected_m: object = 30
    use_psum_layout: object = False
    expected_m_for_psum_layout: object = None
    alignment: object = 128

    def run(self):
        shared = (self.a, self.b, self.d, self.layout)
        if self.name.endswith("masked"):
            return getattr(_C, self.name)(*shared, self.expected_m, self.compiled_dims)
        psum = (self.use_psum_layout, True, self.expected_m_for_psum_layout)
        return getattr(_C, self.name)(*shared, self.compiled_dims, *psum, self.alignment)


def good_b() -> torch.Tensor:
    return torch.stack([values(N, K, 3 + g, exact=False) for g in range(G)])


def good_contiguous() -> GroupedCall:
    layout = torch.tensor([2] * 100 + [-1] * 28 + [0] * 128, dtype=torch.int32)
    d = torch.full((M, N), math.nan, dtype=BF16)
    return GroupedCall("m_grouped_bf16_gemm_nt_contiguous", values(M, K, 1, exact=False), good_b(), d, layout)


def good_masked() -> GroupedCall:
    a = torch.stack([values(CAPACITY, K, g, exact=False) for g in range(G)])
    d = torch.full((G, CAPACITY, N), math.nan, dtype=BF16)
    counts = torch.tensor([CAPACITY] * G, dtype=torch.int32)
    return GroupedCall("m_grouped_bf16_gemm_nt_masked", a, good_b(), d, counts)


EITHER = [
    Case("a_f32", of_dtype("a", F32), ("a: ", "torch.bfloat16", "torch.float32")),
    Case("b_f16", of_dtype("b", torch.float16), ("b: ", "torch.bfloat16", "torch.float16")),
    Case("d_f32", of_dtype("d", F32), ("d: ", "torch.bfloat16", "torch.float32", "grouped")),
    Case("layout_i64", of_dtype("layout", torch.int64), ("torch.int32", "torch.int64", ".int()")),
    Case("layout_2d", put(layout=lambda call: call.layout[None]), ("1 dimensions", "got 2")),
    Case("layout_of_zero_stride", put(layout=lambda call: call.layout[:1].expand(call.layout.shape)), ("stride 1", "got 0")),
    Case("layout_missing", put(layout=None), ("must be a tensor", "NoneType")),
    Case("layout_on_cuda", moved("layout", "cuda:0"), ("cpu, where a is", "cuda:0")),
    Case("layout_without_memory", on_meta("layout"), ("meta",)),
    Case("b_2d", reshaped("b", N, K), ("b: ", "3 dimensions [G, N, K]", "got 2")),
    Case("b_on_cuda", moved("b", "cuda:0"), ("b: ", "cpu, where a is", "cuda:0")),
    Case("k_differs", reshaped("b", G, N, K + 8), ("b: ", "[3, 136, 192] ([G, N, K])", "[3, 136, 200]")),
    Case("b_of_no_unit_stride", strided("b", (G, N, K), (2 * N * K, 2 * K, 2)), ("b: ", "unit stride along K or along N")),
    Case("b_odd_rows", strided("b", (G, N, K), (N * (K + 4), K + 4, 1)), ("b: ", "multiple of 16 bytes", "392 bytes")),
    Case("b_odd_columns", strided("b", (G, N, K), ((N + 4) * K, 1, N + 4)), ("b: ", "multiple of 16 bytes", "280 bytes")),
    Case("b_odd_groups", strided("b", (G, N, K), (N * K + 4, K, 1)), ("b: ", "group stride", "16 bytes", "got 52232 bytes")),
    Case("b_odd_groups_n_major", strided("b", (G, N, K), (N * K + 4, 1, N)), ("b: ", "group stride", "got 52232 bytes")),
    Case("b_one_for_all", strided("b", (G, N, K), (0, K, 1)), ("b: ", "groups that do not overlap", "26112", "got 0")),
    Case("b_groups_overlap", strided("b", (G, N, K), (K, K, 1)), ("b: ", "groups that do not overlap", "got 192")),
    Case("b_odd_address", strided("b", (G, N, K), (N * K, K, 1), offset=4), ("b: ", "8 bytes past")),
    Case("a_pair", put(a=lambda call: (call.a, call.a)), ("a must be a tensor", "tuple")),
    Case("compiled_dims_letter", put(compiled_dims="z"), ("compiled_dims", "m, n, k")),
    Case("compiled_dims_none", put(compiled_dims=None), ("compiled_dims",)),
    Case("d_over_a", d_over("a"), ("d: ", "overlap with a")),
    Case("d_over_b", d_over("b"), ("d: ", "overlap with b")),
]

NN = put(name="m_grouped_bf16_gemm_nn_contiguous")
CONTIGUOUS = [
    Case("a_3d", reshaped("a", 1, M, K), ("a: ", "2 dimensions [M, K]", "got 3")),
    Case("a_m_major", strided("a", (M, K), (1, M)), ("a: ", "stride 1 along K", "got 256")),
    Case("a_odd_rows", strided("a", (M, K), (K + 4, 1)), ("a: ", "multiple of 16 bytes", "392 bytes")),
    Case("d_3d", reshaped("d", 1, M, N), ("d: ", "2 dimensions [M, N]", "got 3")),
    Case("d_rows", reshaped("d", M + 1, N), ("d: ", "[256, 136]", "[257, 136]")),
    Case("d_transposed", strided("d", (M, N), (1, M)), ("d: ", "stride 1 along N")),
    Case("layout_short", put(layout=lambda call: call.layout[:-1].clone()), ("grouped_layout: ", "[256] ([M])", "[255]")),
    Case("layout_of_groups", put(layout=torch.tensor([128] * G, dtype=torch.int32)), ("grouped_layout: ", "[256]", "[3]")),
    Case("layout_every_other", strided("layout", (M,), (2,)), ("grouped_layout: ", "stride 1 along M", "got 2")),
    Case("not_transposed", NN, ("b: ", "check the layout letters")),
    Case("psum_of_rows", put(use_psum_layout=True), ("grouped_layout: ", "[3] ([G])", "[256]", "use_psum_layout")),
    Case("psum_short", psum_call(layout=torch.tensor([1, 128], dtype=torch.int32)), ("grouped_layout: ", "[3]", "[2]")),
    Case("psum_hint_negative", psum_call(expected_m_for_psum_layout=-1), ("expected_m_for_psum_layout: ", "0 or more", "-1")),
    Case("psum_alignment_96", psum_call(alignment=96), ("alignment: ", "multiple of 64", "got 96")),
    Case("psum_d_over_layout", both(psum_call(), d_over("layout")), ("d: ", "overlap with grouped_layout")),
    Case("psum_hint", put(expected_m_for_psum_layout=7), ("expected_m_for_psum_layout: ", "None", "got 7")),
    Case("alignment_0", put(alignment=0), ("alignment: ", "multiple of 64", "got 0")),
    Case("alignment_float", put(alignment=128.0), ("alignment must be an integer", "128.0")),
    Case("d_over_layout", d_over("layout"), ("d: ", "overlap with grouped_layout")),
]

MASKED = [
    Case("a_2d", reshaped("a", CAPACITY, K), ("a: ", "3 dimensions [G, M, K]", "got 2")),
    Case("d_2d", reshaped("d", CAPACITY, N), ("d: ", "3 dimensions [G, M, N]", "got 2")),
    Case("b_groups", reshaped("b", G - 1, N, K), ("b: ", "[3, 136, 192]", "[2, 136, 192]", "G and K come from a")),
    Case("d_groups", reshaped("d", G + 1, CAPACITY, N), ("d: ", "[3, 72, 136]", "[4, 72, 136]")),
    Case("d_rows", reshaped("d", G, CAPACITY - 8, N), ("d: ", "[3, 72, 136]", "[3, 64, 136]")),
    Case("a_odd_groups", strided("a", (G, CAPACITY, K), (CAPACITY * K + 4, K, 1)), ("a: ", "group stride", "16 bytes")),
    Case("a_k_first", strided("a", (G, CAPACITY, K), (CAPACITY * K, 1, CAPACITY)), ("a: ", "stride 1 along K", "got 72")),
    Case("d_one_for_all", strided("d", (G, CAPACITY, N), (0, N, 1)), ("d: ", "groups that do not overlap")),
    Case("counts_short", put(layout=lambda call: call.layout[:2].clone()), ("masked_m: ", "[3] ([G])", "[2]")),
    Case("counts_u8", of_dtype("layout", torch.uint8), ("masked_m: ", "torch.int32", "torch.uint8")),
    Case("expected_m_negative", put(expected_m=-1), ("expected_m: ", "0 or more", "got -1")),
    Case("expected_m_none", put(expected_m=None), ("expected_m must be an integer", "None")),
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
    (good_masked, Case("b_n_major", strided("b", (G, N, K), (N * K, 1, N)))),
    (good_contiguous, Case("alignment_64", put(alignment=64))),
    (good_contiguous, Case("alignment_256", put(alignment=256))),
    (good_contiguous, Case("psum", psum_call())),
    (good_contiguous, Case("psum_hint_beyond", psum_call(expected_m_for_psum_layout=10**12))),
    (good_contiguous, Case("psum_alignment_beyond", psum_call(alignment=2**40))),
    (good_contiguous, Case("b_of_bigger_buffer", strided("b", (G, N, K), (N * (K + 16) + 32, K + 16, 1)))),
    (good_contiguous, Case("b_interleaved_n_major", strided("b", (G, N, K), (N, 1, G * N)))),
    (good_contiguous, Case("nn_row_major", both(NN, reshaped("b", G, K, N)))),
    (good_contiguous, Case("nn_of_transposed", both(NN, put(b=lambda call: call.b.transpose(1, 2))))),
    (good_contiguous, Case("d_between_columns_of_a_buffer", put(d=lambda call: torch.zeros(M, 3 * N, dtype=BF16)[:, N : 2 * N]))),
]
