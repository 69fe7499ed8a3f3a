"""fp8_gemm_* on CPU tensors against FP64: bit for bit, in every layout, stride form and kind of output."""

import dataclasses
import math

import pytest
import torch

import deep_gemm
from fp8_operands import (
    FP8,
    aligned_rows,
    ceil_div,
    fp64_gemm,
    nearest,
    random_fp8,
    random_scales,
    storage_bytes,
)

BLOCK, ROW = (1, 128, 128), (1, 1, 128)


@dataclasses.dataclass(frozen=True)
class Case:
    m: int
    n: int
    k: int
    recipe: tuple = BLOCK
    dtype: torch.dtype = torch.bfloat16
    c: str = "none"  # none, same, separate

    def __str__(self):
        return f"{self.m}x{self.n}x{self.k}-{self.recipe[1]}-{str(self.dtype)[6:]}-c_{self.c}"


@dataclasses.dataclass
class Operands:
    a: torch.Tensor
    sfa: torch.Tensor
    b: torch.Tensor
    sfb: torch.Tensor


def make_operands(case: Case) -> Operands:
    k_blocks = ceil_div(case.k, 128)
    return Operands(
        random_fp8(case.m, case.k, seed=1),
        random_scales(case.m, k_blocks, seed=2),
        random_fp8(case.n, case.k, seed=3),
        random_scales(ceil_div(case.n, case.recipe[1]), k_blocks, seed=4),
    )


def make_c(case: Case):
    if case.c == "none":
        return None
    c = aligned_rows(case.m, case.n, case.dtype)
    c.copy_(torch.randn(case.m, case.n, generator=torch.Generator().manual_seed(5)) * 8)
    return c


def expected(case: Case, x: Operands, c=None):
    return fp64_gemm(x.a, x.sfa, x.b, x.sfb, case.dtype, c)


def sf_forms(sf: torch.Tensor) -> dict:
    """The same factors in every stride form clients pass; the aligned one ends at its last used element."""
    mn, blocks = sf.shape
    pitch = ceil_div(mn, 4) * 4
    short = torch.full(((blocks - 1) * pitch + mn if mn and blocks else 0,), math.nan)
    forms = {
        "row_major": sf.contiguous(),
        "mn_major": sf.t().contiguous().t(),
        "mn_major_aligned": short.as_strided((mn, blocks), (1, pitch)),
        "slice": torch.full((mn + 3, 2 * blocks + 1), math.nan)[1 : mn + 1, : 2 * blocks : 2],
    }
    for form in forms.values():
        form.copy_(sf)
    return forms


SHAPES = [
    (0, 128, 128),
    (1, 128, 256),
    (7, 64, 128),
    (33, 576, 1024),
    (128, 136, 384),
    (130, 8, 64),
    (5, 200, 16),
    (3, 264, 200),
    (64, 16, 1),
    (2, 0, 128),
    (4, 24, 0),
    (1, 129, 130),
    (9, 1000, 257),
]
CASES = [
    Case(m, n, k, recipe, dtype, c)
    for m, n, k in SHAPES
    for recipe in (BLOCK, ROW)
    for dtype in (torch.bfloat16, torch.float32)
    for c in ("none", "same", "separate")
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_fp64(case):
    x, c = make_operands(case), make_c(case)
    d = aligned_rows(case.m, case.n, case.dtype)
    if case.c == "same":
        d.copy_(c)
    given_c = d if case.c == "same" else c
    c_bytes = None if c is None else storage_bytes(c)
    want = expected(case, x, c)
    assert deep_gemm.fp8_gemm_nt((x.a, x.sfa), (x.b, x.sfb), d, given_c, recipe=case.recipe) is None
    assert torch.equal(d, want)
    if c is not None:
        assert torch.equal(storage_bytes(c), c_bytes)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(33, 200, 320), (1, 128, 128), (4, 256, 1)])
@pytest.mark.parametrize("recipe", [BLOCK, ROW])
def test_scale_stride_forms_give_equal_bits(shape, recipe, dtype):
    case = Case(*shape, recipe, dtype)
    x = make_operands(case)
    want = expected(case, x)
    for a_name, sfa in sf_forms(x.sfa).items():
        for b_name, sfb in sf_forms(x.sfb).items():
            d = aligned_rows(case.m, case.n, dtype)
            deep_gemm.fp8_gemm_nt((x.a, sfa), (x.b, sfb), d, recipe=recipe)
            assert torch.equal(d, want), (a_name, b_name)


@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
@pytest.mark.parametrize("recipe", [BLOCK, ROW])
def test_layout_letters_are_transposed_views(layout, recipe):
    case = Case(19, 136, 272, recipe)
    x = make_operands(case)
    d = aligned_rows(case.m, case.n, case.dtype)
    a = (x.a.t(), x.sfa.t()) if layout[0] == "t" else (x.a, x.sfa)
    b = (x.b.t(), x.sfb.t()) if layout[1] == "n" else [x.b, x.sfb]
    getattr(deep_gemm, f"fp8_gemm_{layout}")(a, b, d, recipe=recipe)
    assert torch.equal(d, expected(case, x))


def test_rows_of_bigger_buffers_leave_the_rest_untouched():
    case = Case(21, 72, 144)
    x = make_operands(case)
    a_buffer, b_buffer = (torch.full((rows, 512), math.nan).to(FP8) for rows in (50, 100))
    a, b = a_buffer[3 : 3 + 2 * case.m : 2, 32 : 32 + case.k], b_buffer[10 : 10 + case.n, 16 : 16 + case.k]
    a.copy_(x.a)
    b.copy_(x.b)
    buffer = torch.full((60, 256), 7.0, dtype=torch.bfloat16)
    c, d = (
        buffer[1 : 1 + case.m, 80:152],
        buffer[1 : 1 + case.m, 8:80],
    )  # neighbours in one buffer: not an overlap
    c.fill_(0.5)
    want = buffer.clone()
    want[1 : 1 + case.m, 8:80] = expected(case, x, c)
    deep_gemm.fp8_gemm_nt((a, x.sfa), (b, x.sfb), d, c)
    assert torch.equal(buffer, want)


def test_extents_of_one_ignore_their_stride():
    case = Case(1, 16, 1)
    x = make_operands(case)
    a = x.a.as_strided((1, 1), (3, 5))
    d = torch.zeros(16, dtype=torch.bfloat16).as_strided((1, 16), (1, 1))
    deep_gemm.fp8_gemm_nt((a, x.sfa.as_strided((1, 1), (9, 9))), (x.b, x.sfb.as_strided((1, 1), (2, 2))), d)
    assert torch.equal(d, expected(case, x))


@pytest.mark.parametrize("recipe", [BLOCK, ROW])
def test_recipe_parts_equal_recipe(recipe):
    case = Case(5, 136, 256, recipe)
    x = make_operands(case)
    d = aligned_rows(case.m, case.n, case.dtype)
    deep_gemm.fp8_gemm_nt((x.a, x.sfa), (x.b, x.sfb), d, recipe_a=(1, 128), recipe_b=recipe[1:])
    assert torch.equal(d, expected(case, x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_no_k_copies_c_bit_for_bit(dtype):
    case = Case(3, 8, 0, dtype=dtype)
    x = make_operands(case)
    bits = torch.int16 if dtype == torch.bfloat16 else torch.int32
    c = (
        torch.randint(-(2**15), 2**15, (3, 8), dtype=torch.int32).to(bits).view(dtype)
    )  # NaN payloads included
    d = torch.empty_like(c)
    deep_gemm.fp8_gemm_nt((x.a, x.sfa), (x.b, x.sfb), d, c)
    assert torch.equal(d.view(bits), c.view(bits))


def test_every_code_is_decoded():
    codes = torch.arange(256, dtype=torch.uint8)
    a = torch.zeros(256, 16, dtype=torch.uint8)
    a[:, 0] = codes
    b = torch.zeros(8, 16, dtype=torch.uint8)
    b[0, 0] = 0x38  # 1.0
    a, b, d = a.view(FP8), b.view(FP8), torch.empty(256, 8)
    deep_gemm.fp8_gemm_nt((a, torch.ones(256, 1)), (b, torch.ones(1, 1)), d)
    want = codes.view(FP8).float()
    assert torch.equal(d[:, 0].nan_to_num(-1), want.nan_to_num(-1)) and int(want.isnan().sum()) == 2


# value, and the BF16 nearest to it
ROUNDING = [
    (1.0, 1.0),
    (1 + 2**-8, 1.0),
    (1 + 3 * 2**-8, 1 + 2**-6),
    (1 + 2**-8 + 2**-40, 1 + 2**-7),
    (-1 - 2**-8 - 2**-40, -1 - 2**-7),
    (1 + 2**-8 - 2**-40, 1.0),
    (2.0**-133, 2.0**-133),
    (2.0**-134, 0.0),
    (1.5 * 2.0**-134, 2.0**-133),
]


@pytest.mark.parametrize("value, want", ROUNDING)
def test_bf16_is_rounded_once(value, want):
    assert nearest(torch.tensor([value], dtype=torch.float64), torch.bfloat16).item() == want
    parts = [float(torch.tensor(value).float()), value - float(torch.tensor(value).float())]
    a, b = torch.ones(1, 256).to(FP8), torch.zeros(8, 256)
    b[0, 0], b[0, 128] = 1, 1
    sfa, sfb = torch.tensor([parts]), torch.ones(1, 2)
    d = torch.empty(1, 8, dtype=torch.bfloat16)
    deep_gemm.fp8_gemm_nt((a, sfa), (b.to(FP8), sfb), d)
    assert d[0, 0].item() == want


def test_scales_far_from_one_do_not_overflow_on_the_way():
    sfa, sfb = torch.tensor([[2.0**127]]), torch.tensor([[2.0**-126]])
    d = torch.empty(1, 8)
    deep_gemm.fp8_gemm_nt(
        (torch.full((1, 16), 448.0).to(FP8), sfa), (torch.full((8, 16), 448.0).to(FP8), sfb), d
    )
    assert torch.equal(d, torch.full((1, 8), 16 * 448.0 * 448 * 2))


def test_nan_and_infinite_scales_stay_in_their_rows():
    case = Case(6, 16, 256)
    x = make_operands(case)
    x.sfa[1, 0], x.sfa[4, 1] = math.nan, math.inf
    d = aligned_rows(case.m, case.n, case.dtype)
    deep_gemm.fp8_gemm_nt((x.a, x.sfa), (x.b, x.sfb), d)
    finite = d.isfinite().all(1)
    assert finite.tolist() == [True, False, True, True, False, True]
    assert torch.equal(d[finite], expected(case, x)[finite])


def test_disable_ue8m0_cast_changes_nothing_here():
    case = Case(5, 64, 256)
    x = make_operands(case)
    for flag in (False, True):
        d = aligned_rows(case.m, case.n, case.dtype)
        deep_gemm.fp8_gemm_nt((x.a, x.sfa), (x.b, x.sfb), d, disable_ue8m0_cast=flag)
        assert torch.equal(d, expected(case, x))


def test_rows_do_not_depend_on_their_neighbours():
    case = Case(40, 136, 384)
    x = make_operands(case)
    whole, one = aligned_rows(40, 136, torch.float32), aligned_rows(1, 136, torch.float32)
    deep_gemm.fp8_gemm_nt((x.a, x.sfa), (x.b, x.sfb), whole)
    deep_gemm.fp8_gemm_nt((x.a[17:18], x.sfa[17:18]), (x.b, x.sfb), one)
    assert torch.equal(whole[17:18], one)
