"""Cases of the FP8 GEMMs grouped along M as data, their operands, and their FP64 references.

Whatever a kernel must not read is NaN: padding rows of A and of its factors, gaps of pitched rows. Whatever it must not write
holds a NaN of one bit pattern, so that a NaN that leaked into it shows.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Iterator

import torch

import deep_gemm
from fp8_cases import dequantised, with_pitch, with_sf_form

POISON_BITS = 0x7FA5  # a BF16 NaN that no kernel computes
FP8 = torch.float8_e4m3fn
FP8_NAN = 0x7F


def common_tail(case: ContiguousCase | MaskedCase) -> str:
    """The end of a case's name: what is seldom set."""
    return ("-1d1d" if case.recipe[1] == 1 else "") + (f"-pitch{case.pitch}" if case.pitch else "")


@dataclass(frozen=True)
class ContiguousCase:
    """`blocks`: (expert, real rows) in order, each rounded up to the alignment; expert -1 is padding as a whole. `fill`: what
    the layout holds after a run's real rows, -1 or the "id". `ragged`: M ends with the last real row."""

    blocks: tuple[tuple[int, int], ...]
    n: int
    k: int
    experts: int = 0  # 0: the highest id plus 1
    fill: str = "-1"
    ragged: bool = False
    sfa: str = "aligned"
    sfb: str = "row"
    layout: str = "nt"
    pitch: int = 0
    recipe: tuple[int, int, int] = (1, 128, 128)
    alignment: int = 128

    def __str__(self) -> str:
        rows = "+".join(f"{rows}{'' if expert >= 0 else 'pad'}" for expert, rows in self.blocks)
        tail = ("-ragged" if self.ragged else "") + common_tail(self)
        return f"{rows}x{self.n}x{self.k}-fill{self.fill}-{self.sfa}-{self.sfb}-{self.layout}-al{self.alignment}{tail}"

    def num_experts(self) -> int:
        """G, at least one."""
        return self.experts or max(1, 1 + max((expert for expert, _ in self.blocks), default=0))

    def rows(self) -> torch.Tensor:
        """grouped_layout, int32 [M]."""
        ids: list[int] = []
        for expert, rows in self.blocks:
            padding = -rows % self.alignment
            ids += [expert] * rows + [expert if self.fill == "id" else -1] * padding
        if self.ragged:
            ids = ids[: len(ids) - (-self.blocks[-1][1] % self.alignment)]
        return torch.tensor(ids, dtype=torch.int32)


@dataclass(frozen=True)
class MaskedCase:
    """`capacity`: M. `counts`: masked_m. `guard`: poisoned rows around each expert's D, else experts touch."""

    capacity: int
    counts: tuple[int, ...]
    n: int
    k: int
    expected_m: int = 0  # 0: their mean
    sfa: str = "aligned"
    sfb: str = "row"
    guard: bool = False
    pitch: int = 0
    recipe: tuple[int, int, int] = (1, 128, 128)

    def __str__(self) -> str:
        counts = ",".join(map(str, self.counts)) if len(self.counts) <= 8 else f"{len(self.counts)}x{max(self.counts)}"
        tail = ("-guard" if self.guard else "") + common_tail(self)
        return f"{self.capacity}[{counts}]x{self.n}x{self.k}-e{self.expected_m}-{self.sfa}-{self.sfb}{tail}"

    def hint(self) -> int:
        """expected_m of the call."""
        return self.expected_m or max(1, sum(self.counts) // max(1, len(self.counts)))


@dataclass
class Problem:
    """Operands of a call, D inside a poisoned buffer, and the layout: grouped_layout or masked_m."""

    case: ContiguousCase | MaskedCase
    a: tuple[torch.Tensor, torch.Tensor]
    b: tuple[torch.Tensor, torch.Tensor]
    d: torch.Tensor
    buffer: torch.Tensor
    layout: torch.Tensor

    def run(self, **options) -> torch.Tensor:
        """Calls the public function; returns D."""
        if self.case.recipe[1] == 1:
            options.setdefault("recipe", self.case.recipe)
        if isinstance(self.case, MaskedCase):
            options.setdefault("expected_m", self.case.hint())
            assert deep_gemm.m_grouped_fp8_gemm_nt_masked(self.a, self.b, self.d, self.layout, **options) is None
            return self.d
        function = getattr(deep_gemm, f"m_grouped_fp8_gemm_{self.case.layout}_contiguous")
        with alignment_set_to(self.case.alignment):
            b = self.b if self.case.layout == "nt" else tuple(part.transpose(1, 2) for part in self.b)
            assert function(self.a, b, self.d, self.layout, **options) is None
        return self.d

    def poison(self) -> None:
        """Fills D and what surrounds it."""
        self.buffer.view(torch.int16).fill_(POISON_BITS)

    def written(self) -> torch.Tensor:
        """Which rows of D a call writes: bool of D's shape without N."""
        if isinstance(self.case, ContiguousCase):
            return torch.ones_like(self.layout, dtype=torch.bool)
        return torch.arange(self.case.capacity, device=self.d.device) < self.layout[:, None]

    def reference(self) -> torch.Tensor:
        """FP64 of the quantised operands; zeros in rows of -1, NaN in rows that stay untouched."""
        out = torch.zeros(self.d.shape, dtype=torch.float64, device=self.d.device)
        weights = [dequantised((data, sf), self.case.recipe[1]) for data, sf in zip(*self.b)]
        for expert, weight in enumerate(weights):
            if isinstance(self.case, MaskedCase):
                count = int(self.layout[expert])
                a = (self.a[0][expert, :count], self.a[1][expert, :count])
                out[expert, :count] = dequantised(a, 1) @ weight.t()
            else:
                rows = (self.layout == expert).nonzero().flatten()
                a = (self.a[0].view(torch.uint8)[rows].view(FP8), self.a[1][rows])
                out[rows] = dequantised(a, 1) @ weight.t()
        return out.masked_fill(~self.written()[..., None], float("nan"))

    def untouched(self) -> bool:
        """Whether everything outside of the written rows of D still holds the poison, bit for bit."""
        mask = torch.zeros_like(self.buffer, dtype=torch.bool)
        inside = mask.as_strided(self.d.shape, self.d.stride(), self.d.storage_offset())
        inside |= self.written()[..., None]
        return bool((self.buffer.view(torch.int16)[~mask] == POISON_BITS).all())


@contextmanager
def alignment_set_to(value: int) -> Iterator[None]:
    """The process-wide alignment of groups, put back afterwards."""
    saved = deep_gemm.get_mk_alignment_for_contiguous_layout()
    deep_gemm.set_mk_alignment_for_contiguous_layout(value)
    try:
        yield
    finally:
        deep_gemm.set_mk_alignment_for_contiguous_layout(saved)


def stacked(tensors: list[torch.Tensor]) -> torch.Tensor:
    """[G, ...] of equal tensors, their strides kept: FP8 goes by way of bytes, which can be copied everywhere."""
    first = tensors[0]
    size = 1 + sum((extent - 1) * stride for extent, stride in zip(first.shape, first.stride()) if extent > 0)
    span = (size + 15) // 16 * 16  # the next one starts on 16 bytes, whatever the element
    flat = torch.full((len(tensors) * span,), float("nan"), device=first.device).to(first.dtype)
    out = flat.as_strided((len(tensors), *first.shape), (span, *first.stride()))
    for target, tensor in zip(out, tensors):
        target.copy_(tensor)
    return out


def factors_of_experts(factors: torch.Tensor, form: str) -> torch.Tensor:
    """`[G, mn, s]` in a stride form of each expert: row, mn (pitch mn) or aligned (pitch rounded up to 4); packed experts."""
    groups, mn, s = factors.shape
    if form == "row":
        return factors.contiguous()
    pitch = (mn + 3) // 4 * 4 if form == "aligned" else mn
    out = torch.empty_strided((groups, mn, s), (pitch * s, 1, pitch), dtype=factors.dtype, device=factors.device)
    return out.copy_(factors)


def make_weights(case: ContiguousCase | MaskedCase, groups: int, device: str, generator: torch.Generator):
    """(data [G, N, K], factors [G, ceil(N / gran_n), ceil(K / 128)]) of normal noise."""
    cast = deep_gemm.per_block_cast_to_fp8 if case.recipe[1] == 128 else deep_gemm.per_token_cast_to_fp8
    pairs = []
    for _ in range(groups):
        y = torch.randn(case.n, case.k, generator=generator, device=device).to(torch.bfloat16)
        data, factors = cast(y, use_ue8m0=False)
        pairs.append((with_pitch(data, case.pitch), factors))
    factors = torch.stack([factors for _, factors in pairs])
    factors = factors_of_experts(factors, "mn" if case.sfb == "transposed" else case.sfb)
    return stacked([data for data, _ in pairs]), factors


def make_activations(case, rows: int, device: str, generator: torch.Generator):
    """(data [rows, K], row-major factors) of normal noise."""
    x = torch.randn(rows, case.k, generator=generator, device=device).to(torch.bfloat16)
    return deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)


def make_contiguous(case: ContiguousCase, device: str, seed: int = 0) -> Problem:
    """The problem of a contiguous case; rows of -1 are NaN in A and in its factors."""
    generator = torch.Generator(device).manual_seed(seed)
    layout = case.rows().to(device)
    m = layout.numel()
    data, factors = make_activations(case, m, device, generator)
    data.view(torch.uint8)[layout < 0] = FP8_NAN
    factors[layout < 0] = float("nan")
    a = (with_pitch(data, case.pitch), with_sf_form(factors, case.sfa))
    b = make_weights(case, case.num_experts(), device, generator)
    width = (case.n + case.pitch + 15) // 8 * 8
    buffer = torch.empty(m + 2, width, dtype=torch.bfloat16, device=device)
    problem = Problem(case, a, b, buffer[1:-1, : case.n], buffer, layout)
    problem.poison()
    return problem


def make_masked(case: MaskedCase, device: str, seed: int = 0) -> Problem:
    """The problem of a masked case; rows past the count are NaN in A and in its factors."""
    generator = torch.Generator(device).manual_seed(seed)
    groups, m = len(case.counts), case.capacity
    layout = torch.tensor(case.counts, dtype=torch.int32, device=device)
    data, factors = make_activations(case, groups * m, device, generator)
    data, factors = data.view(groups, m, case.k), factors.view(groups, m, -1)
    past = torch.arange(m, device=device) >= layout[:, None]
    data.view(torch.uint8)[past] = FP8_NAN
    factors[past] = float("nan")
    a = (stacked([with_pitch(part, case.pitch) for part in data]), factors_of_experts(factors, case.sfa))
    b = make_weights(case, groups, device, generator)
    if case.guard:
        buffer = torch.empty(groups, m + 2, (case.n + case.pitch + 15) // 8 * 8, dtype=torch.bfloat16, device=device)
        d = buffer[:, 1:-1, : case.n]
    else:
        d = buffer = torch.empty(groups, m, case.n, dtype=torch.bfloat16, device=device)
    problem = Problem(case, a, b, d, buffer, layout)
    problem.poison()
    return problem


def make_problem(case: ContiguousCase | MaskedCase, device: str, seed: int = 0) -> Problem:
    """Normal noise, quantised per token and per block, around a poisoned output."""
    return (make_masked if isinstance(case, MaskedCase) else make_contiguous)(case, device, seed)


RAGGED = ((0, 100), (1, 128), (2, 1), (3, 129))
CONTIGUOUS = [
    ContiguousCase(((0, 128),), 128, 128),
    ContiguousCase(((0, 1),), 24, 256, ragged=True),
    ContiguousCase(RAGGED, 136, 272),
    ContiguousCase(RAGGED, 200, 384, fill="id", sfa="row"),
    ContiguousCase(((-1, 128), (1, 70), (-1, 256), (0, 130), (-1, 128)), 264, 256, experts=3, sfa="mn"),
    ContiguousCase(((-1, 256),), 64, 128),
    ContiguousCase(((1, 60), (0, 165)), 192, 640, ragged=True, sfb="transposed"),
    ContiguousCase(((0, 37), (0, 128), (4, 3)), 72, 1040, ragged=True, sfa="row", pitch=16),
    ContiguousCase(((0, 90), (1, 200)), 256, 384, layout="nn"),
    ContiguousCase(((0, 90), (2, 200)), 136, 272, layout="nn", ragged=True, sfa="mn", sfb="transposed", pitch=32),
    ContiguousCase(((0, 64), (1, 3), (2, 65), (-1, 64), (3, 20)), 128, 256, alignment=64),
    ContiguousCase(((0, 130), (1, 240), (2, 256)), 136, 256, alignment=256, fill="id"),
    ContiguousCase(((0, 77), (-1, 128), (1, 130)), 136, 400, recipe=(1, 1, 128), ragged=True),
    ContiguousCase(((1, 128), (0, 5)), 72, 256, recipe=(1, 1, 128), sfa="row", sfb="aligned", layout="nn"),
]
CONTIGUOUS_LARGE = [
    ContiguousCase(((0, 9001), (1, 8077), (2, 10400), (3, 7500)), 6144, 7168, sfa="aligned"),
    ContiguousCase(tuple((g, 3000 + 517 * g) for g in range(8)), 7168, 3072, fill="id", sfa="row"),
    ContiguousCase(tuple((g, 1 + 37 * g % 300) for g in range(64)), 4096, 2048, ragged=True, sfa="mn"),
    ContiguousCase(((3, 4000), (-1, 1024), (1, 5000), (-1, 128)), 4096, 4096, experts=4),
    ContiguousCase(((0, 1000), (2, 3000)), 2112, 7168, recipe=(1, 1, 128), sfb="aligned"),
    ContiguousCase(((0, 500), (1, 2000)), 2112, 7168 + 16, layout="nn", pitch=16),
]
MASKED = [
    MaskedCase(128, (128, 0, 1, 77), 136, 272),
    MaskedCase(8, (8, 0, 1, 5), 128, 256),
    MaskedCase(8, (3, 8), 200, 128, guard=True, sfa="row"),
    MaskedCase(16, (1, 16, 0, 15), 72, 384, guard=True),
    MaskedCase(96, (96, 0, 1, 65, 96), 136, 256),
    MaskedCase(96, (95, 96, 33), 264, 640, guard=True, sfa="row", sfb="transposed", pitch=16),
    MaskedCase(192, (129, 192, 0, 64), 192, 256, sfa="mn"),
    MaskedCase(7, (7, 3, 0), 64, 144, sfa="mn"),
    MaskedCase(130, (130,), 24, 128),
    MaskedCase(64, (0, 0, 0), 128, 256),
    MaskedCase(16, tuple(g % 17 for g in range(40)), 64, 128, guard=True),
    MaskedCase(96, (95, 0, 3), 136, 400, recipe=(1, 1, 128), sfb="aligned", guard=True),
]
MASKED_LARGE = [
    MaskedCase(512, tuple(140 + 13 * g % 110 for g in range(32)), 6144, 7168, sfa="aligned"),
    MaskedCase(4096, (1024, 717, 0, 1300, 1, 4096), 7168, 3072, sfa="row"),
    MaskedCase(1024, tuple(14 + g % 13 for g in range(32)), 4096, 4096, sfa="mn"),
    MaskedCase(192, (192, 1, 100), 2112, 7168, recipe=(1, 1, 128), sfa="mn", sfb="mn"),
    MaskedCase(96, tuple(96 - g % 5 for g in range(64)), 4096, 2048, guard=True, pitch=16),
]


def with_form(problem: Problem, form: str) -> Problem:
    """The same problem with A's factors in another stride form."""
    sfa = problem.a[1]
    other = with_sf_form(sfa, form) if sfa.dim() == 2 else factors_of_experts(sfa, form)
    return replace(problem, a=(problem.a[0], other))
