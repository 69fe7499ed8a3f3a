"""Contractions as data: cases in every arrangement of memory, FP64 references, and calls that must be refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Optional

import torch

import deep_gemm
from deep_gemm.testing import assert_bitwise_equal, calc_diff
from fp8_operands import FP8, ceil_div, nearest, random_scales

BF16, F32 = torch.bfloat16, torch.float32
PER_BLOCK, PER_ROW = (1, 128, 128), (1, 1, 128)


@dataclass(frozen=True)
class Case:
    """One call. `extents` of the letters; `orders`: how the letters of a, b and d lie in memory, slowest first, where not as
    written; `gap`: elements between the lines of every tensor; `c`: none, same or apart."""

    expr: str
    extents: dict = field(hash=False)
    dtype: torch.dtype = BF16
    c: str = "none"
    recipe: Optional[tuple] = None  # of FP8
    orders: tuple = ("", "", "")
    gap: int = 0

    def __str__(self) -> str:
        sizes = "x".join(f"{letter}{extent}" for letter, extent in self.extents.items())
        kind = "bf16" if self.recipe is None else "1d2d" if self.recipe[1] == 128 else "1d1d"
        orders = "_".join(order or "-" for order in self.orders)
        return f"{self.expr}-{sizes}-{kind}-{str(self.dtype)[6:]}-{self.c}-{orders}-{self.gap}"

    def letters(self) -> tuple[str, str, str]:
        """Of a, b and d."""
        inputs, d = self.expr.split("->")
        return (*inputs.split(","), d)


def case(expr: str, *extents: int, **options) -> Case:
    """Extents in the order in which letters first appear: b m k n, b h r d, b h d r."""
    letters = dict.fromkeys(letter for letter in expr if letter.isalpha())
    return Case(expr, dict(zip(letters, extents)), **options)


BMN, BHD, BHR, HDR = "bmk,bnk->mn", "bhr,hdr->bhd", "bhd,hdr->bhr", "bhd,bhr->hdr"
CASES = (
    case(BMN, 5, 64, 72, 64),
    case(BMN, 3, 70, 8, 100, dtype=F32, c="same", gap=8),
    case(BMN, 1, 1, 40, 7, dtype=F32),
    case(BMN, 9, 130, 5, 24, dtype=F32, c="apart", orders=("bmk", "bkn", ""), gap=16),
    case(BMN, 4, 40, 136, 72, c="same", orders=("bkm", "bkn", "")),
    case(BMN, 2, 16, 200, 520, c="apart", orders=("mbk", "nbk", "")),
    case(BHD, 5, 3, 64, 16),
    case(BHD, 70, 4, 72, 136, orders=("", "", "hbd"), gap=8),
    case(BHD, 130, 2, 40, 520, dtype=F32, c="same", orders=("hbr", "dhr", "")),
    case(BHD, 1, 1, 8, 24, c="apart"),
    case(BHD, 64, 3, 200, 100, c="same", orders=("hrb", "hrd", ""), gap=16),
    case(BHR, 5, 3, 16, 64),
    case(BHR, 70, 4, 136, 72, gap=8, c="apart"),
    case(BHR, 130, 2, 24, 264, dtype=F32, c="same", orders=("hbd", "dhr", "hbr")),
    case(BHR, 16, 5, 96, 40, orders=("hdb", "hrd", "")),
)
EMPTY_CASES = (
    case(BMN, 0, 9, 16, 8, dtype=F32, c="same"),
    case(BMN, 3, 9, 16, 0),
    case(BMN, 3, 0, 16, 8),
    case(BHD, 4, 3, 0, 16),
    case(BHD, 4, 3, 0, 16, dtype=F32, c="apart", gap=8),
    case(BHD, 4, 0, 16, 16),
    case(BHR, 0, 3, 16, 16),
)
FP8_CASES = (
    case(BHD, 5, 3, 128, 16, recipe=PER_BLOCK),
    case(BHD, 70, 4, 272, 136, recipe=PER_BLOCK, gap=16),
    case(BHD, 130, 2, 400, 200, recipe=PER_ROW, dtype=F32, c="same", orders=("hbr", "dhr", "")),
    case(BHD, 33, 3, 144, 264, recipe=PER_BLOCK, c="apart", orders=("", "", "hbd"), gap=32),
    case(BHD, 1, 1, 512, 24, recipe=PER_ROW),
    case(BHD, 9, 2, 0, 16, recipe=PER_BLOCK, c="same"),
    case(BHD, 9, 2, 0, 16, recipe=PER_BLOCK),
    case(BHD, 9, 0, 64, 16, recipe=PER_BLOCK),
)
REFERENCE_CASES = (
    case(BHR, 20, 3, 272, 144, recipe=PER_BLOCK),
    case(BHR, 20, 3, 128, 144, recipe=PER_BLOCK, dtype=F32, c="apart", gap=16),
    case(HDR, 272, 3, 64, 80, recipe=PER_ROW),
    case(HDR, 100, 2, 16, 48, recipe=PER_ROW, dtype=F32, c="same"),
)
WIDE_CASES = (
    case(BMN, 3, 200, 136, 520, dtype=F32, c="same"),
    case(BHD, 200, 2, 136, 520),
    case(BHR, 136, 2, 72, 776),
    case(BHD, 200, 2, 272, 776, recipe=PER_BLOCK),
    case(BHD, 136, 2, 272, 520, recipe=PER_ROW),
)
LARGE_CASES = (
    case(BHD, 4096, 128, 512, 128),
    case(BHR, 4096, 128, 128, 512),
    case(BHD, 7, 128, 512, 128),
    case(BMN, 129, 128, 128, 384, dtype=F32, c="same"),
    case(BMN, 8192, 128, 128, 384, dtype=F32, c="same"),
    case(BMN, 4096, 256, 256, 256),
    case(BHD, 4096, 128, 512, 128, recipe=PER_BLOCK),
    case(BHD, 1, 128, 512, 128, recipe=PER_BLOCK),
    case(BHD, 1000, 8, 4096, 1024, recipe=PER_BLOCK),
)


def laid_out(values: torch.Tensor, letters: str, order: str, gap: int, fill: float) -> torch.Tensor:
    """The same values with their dimensions in another order in memory, lines `gap` or more elements apart."""
    order = order or letters
    shape = [values.shape[letters.index(letter)] for letter in order]
    unit = 16 // values.dtype.itemsize
    storage = torch.full((*shape[:-1], ceil_div(shape[-1], unit) * unit + gap), fill, device=values.device).to(values.dtype)
    view = storage[..., : shape[-1]].permute([order.index(letter) for letter in letters])
    view.copy_(values)
    return view


class Problem:
    """The tensors of a case; `exact`: small integers, whose sums are exact in any order."""

    def __init__(self, case: Case, device: str = "cpu", exact: bool = False, seed: int = 0):
        self.case = case
        self.generator = torch.Generator().manual_seed(seed)
        of_a, of_b, of_d = case.letters()
        data_type = BF16 if case.recipe is None else FP8
        values = [self.draw(letters, exact).to(data_type).to(device) for letters in (of_a, of_b)]
        c = self.draw(of_d, exact).to(case.dtype).to(device)
        self.a, self.b = (laid_out(v, *rest, case.gap, math.nan) for v, *rest in zip(values, (of_a, of_b), case.orders))
        self.c_values = None if case.c == "none" else c
        self.d = laid_out(c if case.c == "same" else torch.full_like(c, math.nan), of_d, case.orders[2], case.gap, math.nan)
        self.c = laid_out(c, of_d, "", case.gap, math.nan) if case.c == "apart" else self.d if case.c == "same" else None
        self.factors = [None, None]
        if case.recipe:
            self.factors = [self.draw_factors(i).to(device) for i in (0, 1)]

    def draw(self, letters: str, exact: bool) -> torch.Tensor:
        shape = [self.case.extents[letter] for letter in letters]
        if exact:
            return torch.randint(-8, 9, shape, generator=self.generator).float()
        return torch.randn(shape, generator=self.generator)

    def shares(self, operand: int) -> list:
        """How many elements along each letter share a factor."""
        (of_a, of_b, of_d), recipe = self.case.letters(), self.case.recipe
        letters = (of_a, of_b)[operand]
        summed = next(letter for letter in of_a if letter not in of_d)
        columns = next(letter for letter in of_b if letter in of_d and letter not in of_a)
        return [128 if x == summed else recipe[1] if operand == 1 and x == columns else 1 for x in letters]

    def draw_factors(self, operand: int) -> torch.Tensor:
        shape = [ceil_div(e, s) for e, s in zip((self.a, self.b)[operand].shape, self.shares(operand))]
        flat = random_scales(1, max(math.prod(shape), 1), 7 + operand)[0, : math.prod(shape)]
        return flat.reshape(shape[::-1]).permute(2, 1, 0)  # of strides that no operand has

    def run(self, **options) -> torch.Tensor:
        """D, written by the public function."""
        if self.case.recipe is None:
            deep_gemm.einsum(self.case.expr, self.a, self.b, self.d, self.c, **options)
        else:
            a, b = (self.a, self.factors[0]), (self.b, self.factors[1])
            deep_gemm.fp8_einsum(self.case.expr, a, b, self.d, self.c, self.case.recipe)
        return self.d

    def reference(self) -> torch.Tensor:
        """FP64, from C as it was before the call."""
        operands = []
        for i, data in enumerate((self.a, self.b)):
            value = data.cpu().double()
            if self.case.recipe:
                factors = self.factors[i].cpu().double()
                for dim, share in enumerate(self.shares(i)):
                    factors = factors.repeat_interleave(share, dim).narrow(dim, 0, value.shape[dim])
                value = value * factors
            operands.append(value)
        product = torch.einsum(self.case.expr, *operands)
        return product if self.c_values is None else product + self.c_values.cpu().double()

    def check(self, exact: bool = False) -> None:
        """Runs the call; D against FP64, what lies between its lines against the poison."""
        want = self.reference()
        got = self.run().cpu()
        if exact or self.case.recipe is None and got.numel() == 0:
            assert_bitwise_equal(got.contiguous(), nearest(want, self.case.dtype).contiguous(), str(self.case))
        elif got.numel():
            limit = 1e-5 if self.case.dtype == BF16 else 1e-10 if self.case.recipe is None else 1e-6
            assert float(calc_diff(got, want)) < limit, str(self.case)
        mark = torch.zeros((), dtype=self.d.dtype, device=self.d.device)
        storage = torch.empty(0, dtype=self.d.dtype, device=self.d.device).set_(self.d.untyped_storage())
        assert not bool(self.d.isnan().any())
        self.d.copy_(mark.expand_as(self.d))
        assert int((~storage.isnan()).sum()) == self.d.numel(), "wrote between the lines of D"


def ones(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    return torch.ones(shape).to(dtype)


def poisoned(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    return torch.full(shape, 7.0, dtype=dtype)


BUFFER, BUFFER32 = poisoned(4096), poisoned(4096, dtype=F32)


def good_call(expr: str = BHD) -> dict:
    """Arguments of a good call of einsum, for a case to spoil: b 4, h 2, d 16, r 24; b 3, m 8, n 16, k 24."""
    if expr == BMN:
        return {"expr": expr, "a": ones(3, 8, 24), "b": ones(3, 16, 24), "d": poisoned(8, 16, dtype=F32), "c": None}
    return {"expr": expr, "a": ones(4, 2, 24), "b": ones(2, 16, 24), "d": poisoned(4, 2, 16), "c": None}


# name, the good call, the arguments that spoil it, words of the refusal
BAD_CALLS = (
    ("expr_unknown", BHD, {"expr": "ij,jk->ik"}, ("expr: expected one of", "'bhr,hdr->bhd'", "'ij,jk->ik'")),
    ("expr_none", BHD, {"expr": None}, ("expr must be a string", "NoneType")),
    ("a_dtype", BHD, {"a": ones(4, 2, 24, dtype=F32)}, ("a: expected dtype", "bfloat16", "float32", "fp8_einsum")),
    ("b_dtype", BHD, {"b": ones(2, 16, 24, dtype=torch.float16)}, ("b: expected dtype", "float16")),
    ("d_dtype", BHD, {"d": poisoned(4, 2, 16, dtype=torch.float16)}, ("d: expected dtype", "float16")),
    ("a_rank", BHD, {"a": ones(8, 24)}, ("a: expected 3 dimensions [b, h, r]", "[8, 24]")),
    ("d_rank", BMN, {"d": poisoned(3, 8, 16, dtype=F32)}, ("d: expected 2 dimensions [m, n]",)),
    ("b_h", BHD, {"b": ones(3, 16, 24)}, ("b: expected shape [2, 16, 24] ([h, d, r])", "[3, 16, 24]")),
    ("b_r", BHD, {"b": ones(2, 16, 32)}, ("b: expected shape [2, 16, 24]",)),
    ("b_batches", BMN, {"b": ones(4, 16, 24)}, ("b: expected shape [3, 16, 24] ([b, n, k])",)),
    ("d_shape", BHD, {"d": poisoned(4, 2, 17)}, ("d: expected shape [4, 2, 16] ([b, h, d])",)),
    ("no_unit_stride", BHD, {"a": ones(4, 2, 48)[:, :, ::2]}, ("a: expected stride 1 along",)),
    ("odd_rows", BHD, {"a": ones(4, 2, 25)[:, :, :24]}, ("a: expected", "16", "bytes")),
    ("odd_heads", BHD, {"b": ones(2, 16 * 24 + 4)[:, : 16 * 24].view(2, 16, 24)}, ("b: expected a group stride", "16", "776")),
    ("base", BHD, {"a": ones(193)[1:].view(4, 2, 24)}, ("a: expected an address", "16")),
    ("d_transposed", BHD, {"d": poisoned(4, 16, 2).transpose(1, 2)}, ("d: expected stride 1 along d",)),
    ("d_overlaps", BHD, {"d": poisoned(1, 2, 16).expand(4, 2, 16)}, ("d: expected", "stride")),
    ("d_is_a", BHD, {"a": BUFFER[:192].view(4, 2, 24), "d": BUFFER[64:192].view(4, 2, 16)}, ("d: expected memory of its own", "overlap with a")),
    ("c_dtype", BHD, {"c": ones(4, 2, 16, dtype=F32)}, ("c: expected dtype", "float32")),
    ("c_shape", BHD, {"c": ones(4, 1, 16)}, ("c: expected shape [4, 2, 16] ([b, h, d])",)),
    ("c_overlaps", BMN, {"d": BUFFER32[:128].view(8, 16), "c": BUFFER32[16:144].view(8, 16)}, ("c: expected d itself", "clone c")),
    ("vendor_sum", BMN, {"use_cublaslt": True}, ("use_cublaslt: expected False", "summed")),
    ("vendor_dtype", BHD, {"use_cublaslt": True, "a": ones(4, 2, 24, dtype=F32)}, ("a: expected dtype",)),
    ("a_number", BHD, {"a": 1.0}, ("a must be a tensor",)),
    ("device", BHD, {"b": torch.ones(2, 16, 24, dtype=BF16, device="meta")}, ("b",)),
)  # fmt: skip


def good_fp8_call(expr: str = BHD) -> dict:
    """Arguments of a good call of fp8_einsum: b 4, h 2, d 16, r 144."""
    a, b = (ones(4, 2, 144, dtype=FP8), torch.ones(4, 2, 2)), (ones(2, 16, 144, dtype=FP8), torch.ones(2, 1, 2))
    return {"expr": expr, "a": a, "b": b, "d": poisoned(4, 2, 16), "c": None, "recipe": PER_BLOCK}


DATA_A, DATA_B = ones(4, 2, 144, dtype=FP8), ones(2, 16, 144, dtype=FP8)
BAD_FP8_CALLS = (
    ("expr_unknown", {"expr": BMN}, ("expr: expected one of", "'bhd,bhr->hdr'", "'bmk,bnk->mn'")),
    ("a_bare", {"a": DATA_A}, ("a must be a pair",)),
    ("a_dtype", {"a": (ones(4, 2, 144), torch.ones(4, 2, 2))}, ("a: expected dtype", "float8_e4m3fn", "bfloat16")),
    ("a_fp4", {"a": (torch.zeros(4, 2, 144, dtype=torch.int8), torch.ones(4, 2, 2))}, ("a: expected dtype", "FP4", "SM100")),
    ("sfa_shape", {"a": (DATA_A, torch.ones(4, 2, 1))}, ("sfa (scales of a): expected shape [4, 2, 2] ([b, h, ceil(r/128)])",)),
    ("sfb_shape", {"b": (DATA_B, torch.ones(2, 16, 2))}, ("sfb (scales of b): expected shape [2, 1, 2] ([h, ceil(d/128), ceil(r/128)])",)),
    ("sfa_packed", {"a": (DATA_A, torch.ones(4, 2, 2, dtype=torch.int32))}, ("sfa", "UE8M0", "SM100")),
    ("sfa_rank", {"a": (DATA_A, torch.ones(4, 2))}, ("sfa (scales of a): expected 3 dimensions",)),
    ("recipe", {"recipe": (1, 1, 32)}, ("recipe: expected (1, 128, 128)", "(1, 1, 32)")),
    ("recipe_text", {"recipe": "1d2d"}, ("recipe must be",)),
    ("r_major", {"b": (ones(2, 144, 16, dtype=FP8).transpose(1, 2), torch.ones(2, 1, 2))}, ("b: expected stride 1 along K",)),
    ("d_shape", {"d": poisoned(4, 2, 24)}, ("d: expected shape [4, 2, 16]",)),
    ("d_dtype", {"d": poisoned(4, 2, 16, dtype=torch.float16)}, ("d: expected dtype", "float16")),
    ("c_shape", {"c": ones(4, 2, 8)}, ("c: expected shape",)),
    ("b_h", {"b": (ones(3, 16, 144, dtype=FP8), torch.ones(3, 1, 2))}, ("b: expected shape [2, 16, 144] ([h, d, r])",)),
)  # fmt: skip
