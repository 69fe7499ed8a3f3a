"""Calls of the GEMMs grouped along K that must be refused, one row of data each, and unusual ones that must not."""

from __future__ import annotations

import dataclasses

import torch

import deep_gemm
from fp8_calls import BF16, F32, Case, both, moved, of_dtype, on_meta, put, reshaped, strided
from fp8_operands import FP8

G, M, N, K = 3, 32, 48, 512
KS = [128, 0, 384]
SFA, SFB = "sfa (scales of a)", "sfb (scales of b)"


@dataclasses.dataclass
class KGroupedCall:
    """A good call, for a case to spoil; `sfa`, `sfb` None: BF16."""

    name: str
    a: torch.Tensor
    b: torch.Tensor
    d: torch.Tensor
    layout: torch.Tensor
    sfa: object = None
    sfb: object = None
    c: object = None
    ks: object = dataclasses.field(default_factory=lambda: list(KS))
    options: dict = dataclasses.field(default_factory=dict)

    def run(self):
        a, b = (self.a, self.b) if self.sfa is None else ((self.a, self.sfa), (self.b, self.sfb))
        return getattr(deep_gemm, self.name)(a, b, self.d, self.ks, self.layout, self.c, **self.options)


def shared() -> dict:
    """D and the layout of every good call."""
    return {"d": torch.zeros(G, M, N), "layout": torch.tensor(KS, dtype=torch.int32)}


def good_nt() -> KGroupedCall:
    a, b = torch.ones(M * K).to(FP8), torch.ones(N * K).to(FP8)
    factors = {"sfa": torch.ones(4, M).t(), "sfb": torch.ones(4, N).t()}
    return KGroupedCall("k_grouped_fp8_gemm_nt_contiguous", a, b, **shared(), **factors)


def good_tn() -> KGroupedCall:
    a, b = torch.ones(K, M).to(FP8), torch.ones(K, N).to(FP8)
    return KGroupedCall("k_grouped_fp8_gemm_tn_contiguous", a, b, **shared(), sfa=torch.ones(4, M), sfb=torch.ones(4, N))


def good_bf16() -> KGroupedCall:
    return KGroupedCall("k_grouped_bf16_gemm_tn_contiguous", torch.ones(K, M, dtype=BF16), torch.ones(K, N, dtype=BF16), **shared())


def options(**values):
    """Keywords of the call."""
    return put(options=values)


def d_over(field: str):
    """D placed so that its last 16 bytes are an input's first."""

    def spoil(call: KGroupedCall):
        source = getattr(call, field)
        flat, size = source.contiguous().view(torch.uint8).flatten(), call.d.numel() * 4
        buffer = torch.zeros(size + flat.numel(), dtype=torch.uint8)
        buffer[size - 16 : size - 16 + flat.numel()] = flat
        setattr(call, field, buffer[size - 16 : size - 16 + flat.numel()].view(source.dtype).view(source.shape))
        call.d = buffer[:size].view(F32).view(call.d.shape)

    return spoil


EVERY = [
    Case("d_bf16", of_dtype("d", BF16), ("d: ", "torch.float32", "torch.bfloat16")),
    Case("d_2d", reshaped("d", M, N), ("d: ", "3 dimensions [G, M, N]", "got 2")),
    Case("d_m_first", strided("d", (G, M, N), (M * N, 1, M)), ("d: ", "stride 1 along N")),
    Case("d_odd_rows", strided("d", (G, M, N), (M * 50, 50, 1)), ("d: ", "16 bytes", "200")),
    Case("d_one_for_all", strided("d", (G, M, N), (0, N, 1)), ("d: ", "groups that do not overlap")),
    Case("layout_i64", of_dtype("layout", torch.int64), ("grouped_layout: ", "torch.int32", ".int()")),
    Case("layout_short", put(layout=torch.tensor([512], dtype=torch.int32)), ("grouped_layout: ", "[3] ([G])", "[1]")),
    Case("layout_2d", put(layout=lambda call: call.layout[None]), ("grouped_layout: ", "1 dimensions [G]")),
    Case("layout_every_other", strided("layout", (G,), (2,)), ("grouped_layout: ", "stride 1 along G")),
    Case("layout_missing", put(layout=None), ("grouped_layout must be a tensor", "NoneType")),
    Case("layout_on_cuda", moved("layout", "cuda:0"), ("grouped_layout: ", "cpu, where a is")),
    Case("layout_on_meta", on_meta("layout"), ("grouped_layout",)),
    Case("b_on_cuda", moved("b", "cuda:0"), ("b: ", "cpu, where a is")),
    Case("a_f16", of_dtype("a", torch.float16), ("a: ", "torch.float16")),
    Case("b_f16", of_dtype("b", torch.float16), ("b: ", "torch.float16")),
    Case("ks_short", put(ks=[128, 384]), ("ks_cpu: ", "3 sizes", "got 2")),
    Case("ks_long", put(ks=[128, 0, 384, 0]), ("ks_cpu: ", "3 sizes", "got 4")),
    Case("ks_odd", put(ks=[100, 28, 384]), ("ks_cpu: ", "multiples of 128", "got 100 for group 0")),
    Case("ks_negative", put(ks=[128, -128, 512]), ("ks_cpu: ", "got -128 for group 1")),
    Case("ks_too_much", put(ks=[128, 128, 384]), ("ks_cpu: ", "add up", "512", "got 640")),
    Case("ks_too_little", put(ks=[128, 0, 256]), ("ks_cpu: ", "add up", "512", "got 384")),
    Case("ks_huge", put(ks=[2**31, 0, 384]), ("ks_cpu: ", "2147483648")),
    Case("ks_floats", put(ks=[128.0, 0, 384]), ("ks_cpu must be an integer", "128.0")),
    Case("ks_tensor", put(ks=torch.tensor(KS)), ("ks_cpu must be None or a list", "Tensor")),
    Case("ks_number", put(ks=512), ("ks_cpu must be None or a list", "int")),
    Case("c_bf16", put(c=torch.ones(G, M, N, dtype=BF16)), ("c: ", "torch.float32", "torch.bfloat16")),
    Case("c_2d", put(c=torch.ones(M, N)), ("c: ", "3 dimensions [G, M, N]", "got 2")),
    Case("c_shape", put(c=torch.ones(G, M, N + 4)), ("c: ", "the shape of d")),
    Case("c_odd_rows", put(c=lambda call: torch.ones(G, M, N + 1)[:, :, :N]), ("c: ", "16 bytes")),
    Case("c_number", put(c=1.0), ("c must be a tensor",)),
    Case(
        "c_beside_d",
        put(c=lambda call: setattr(call, "d", torch.zeros(G + 1, M, N)) or call.d[1:], d=lambda call: call.d[:G]),
        ("c: ", "d itself", "clone c"),
    ),
    Case("dims", options(compiled_dims="z"), ("compiled_dims", "m, n, k")),
    Case("d_over_a", d_over("a"), ("d: ", "overlap with a")),
    Case("d_over_layout", d_over("layout"), ("d: ", "overlap with grouped_layout")),
]  # fmt: skip

FP8_ALONE = [
    Case("sfa_packed", of_dtype("sfa", torch.int32), (SFA, "UE8M0", "SM100")),
    Case("sfb_f64", of_dtype("sfb", torch.float64), (SFB, "torch.float32", "torch.float64")),
    Case("sfa_1d", put(sfa=lambda call: call.sfa.flatten()), (SFA, "2 dimensions")),
    Case("sfb_on_cuda", moved("sfb", "cuda:0"), (SFB, "cpu, where a is")),
    Case("recipe_blocks", options(recipe=(1, 128, 128)), ("recipe: ", "(1, 1, 128)", "got (1, 128, 128)")),
    Case("recipe_gran_m", options(recipe=(128, 1, 128)), ("recipe: ", "got (128, 1, 128)")),
    Case("recipe_gran_k", options(recipe=(1, 1, 64)), ("recipe: ", "got (1, 1, 64)")),
    Case("recipe_of_two", options(recipe=(1, 128)), ("recipe must be", "3 positive integers")),
    Case("a_bare", put(a=None), ("a",)),
    Case("d_over_sfa", d_over("sfa"), ("d: ", "overlap with " + SFA)),
]

NT = [
    Case("a_2d", put(a=lambda call: call.a.view(M, K)), ("a: ", "1 dimensions [M * K]", "got 2")),
    Case("a_odd", put(a=lambda call: call.a[:-128]), ("a: ", "M = 32", "multiple of 128", "16256 elements")),
    Case("b_short", put(b=lambda call: call.b[: N * 384]), ("b: ", "[24576] ([N * K])", "[18432]")),
    Case("a_every_other", strided("a", (M * K,), (2,)), ("a: ", "stride 1 along K", "got 2")),
    Case("a_odd_address", strided("a", (M * K,), (1,), offset=8), ("a: ", "16", "8 bytes past")),
    Case("sfa_rows", put(sfa=torch.ones(M + 1, 4)), (SFA, "[32, 4] ([M, K/128])", "[33, 4]")),
    Case("sfb_columns", put(sfb=torch.ones(N, 5)), (SFB, "[48, 4] ([N, K/128])", "[48, 5]")),
    Case("sfa_k_first", put(sfa=torch.ones(4, M)), (SFA, "[32, 4]", "[4, 32]")),
    Case("gran_k_32", options(recipe=(1, 1, 32)), ("recipe: ", "(1, 1, 128),", "got (1, 1, 32)")),
    Case("psum", options(use_psum_layout=True), ("use_psum_layout: ", "False", "pass sizes")),
    Case("d_over_b", d_over("b"), ("d: ", "overlap with b")),
]

ROWS = [
    Case("a_1d", put(a=lambda call: call.a.reshape(-1)), ("a: ", "2 dimensions [K, M]", "got 1")),
    Case("a_columns", put(a=lambda call: call.a[:, :16]), ("a: ", "[512, 32] ([K, M])", "[512, 16]")),
    Case("b_rows", put(b=lambda call: call.b[:384]), ("b: ", "[512, 48] ([K, N])", "[384, 48]")),
    Case("a_k_last", strided("a", (K, M), (1, K)), ("a: ", "stride 1 along M", "got 512")),
]

BF16_ROWS = [
    Case("b_odd_rows", strided("b", (K, N), (N + 4, 1)), ("b: ", "16 bytes", "104")),
    Case("a_overlapping_rows", strided("a", (K, M), (16, 1)), ("a: ", "row stride", "32")),
]

TN = [
    Case("sfa_rows", put(sfa=torch.ones(5, M), sfb=torch.ones(5, N)), (SFA, "4 factors along K", "got 5")),
    Case("sfa_columns", put(sfa=torch.ones(4, M + 1)), (SFA, "[4, 32]", "[4, 33]")),
    Case("sfb_rows", put(sfb=torch.ones(5, N)), (SFB, "[4, 48]", "[5, 48]")),
]

GOOD = {good_nt: EVERY + FP8_ALONE + NT, good_tn: EVERY + FP8_ALONE + ROWS + TN, good_bf16: EVERY + ROWS + BF16_ROWS}
BAD_K_GROUPED_CALLS = [(make, case) for make, cases in GOOD.items() for case in cases]

# Unusual, and right: the contract refuses nothing that works.
GOOD_K_GROUPED_CALLS = [
    (make, case)
    for make in GOOD
    for case in (
        Case("no_ks", put(ks=None)),
        Case("empty_ks", put(ks=[])),
        Case("tuple_of_ks", put(ks=tuple(KS))),
        Case("c_is_d", put(c=lambda call: call.d)),
        Case("c_view_of_d", put(c=lambda call: call.d[:])),
        Case("c_pitched", put(c=torch.zeros(G, M, N + 4)[:, :, :N])),
        Case("interleaved_d", strided("d", (G, M, N), (N, G * N, 1))),
        Case("no_dims", options(compiled_dims="")),
    )
] + [
    (good_nt, Case("sf_row_major", put(sfa=torch.ones(M, 4), sfb=torch.ones(N, 4)))),
    (good_nt, Case("sf_of_one", put(sfa=torch.ones(1, 1).expand(M, 4)))),
    (good_bf16, Case("psum", both(options(use_psum_layout=True), put(ks=[128, 0, 384], layout=torch.tensor([100, 100, 500], dtype=torch.int32))))),
    (good_bf16, Case("psum_spare", both(options(use_psum_layout=True), put(ks=[128, 0, 128], layout=torch.tensor([100, 100, 200], dtype=torch.int32))))),
]  # fmt: skip
