"""Cases of the GEMMs grouped along K as data, their operands, and their FP64 references."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Optional

import torch

import deep_gemm
from deep_gemm.testing import assert_bitwise_equal, calc_diff, compare

FP8, BF16, F32 = torch.float8_e4m3fn, torch.bfloat16, torch.float32
GUARD = 12345.0  # of D's buffer outside of D
FP8_NT, FP8_TN, BF16_TN = "fp8_nt", "fp8_tn", "bf16_tn"


@dataclass(frozen=True)
class KGroupedCase:
    """One call. `ks`: each group's K; with `psum` true sizes, which the alignment rounds up. `c`: none, same (C is D) or apart.
    `host_sizes`: whether ks_cpu is passed. `gap`: elements between rows of D, C and of tn operands. `sf`: mn (MN-major), pitched
    (the same, rows of K a multiple of 4 apart) or row. `tail`: K behind the last group."""

    kind: str
    m: int
    n: int
    ks: tuple[int, ...]
    c: str = "none"
    host_sizes: bool = True
    psum: bool = False
    alignment: int = 128
    gap: int = 0
    sf: str = "mn"
    gran_k: int = 128
    tail: int = 0

    def __str__(self) -> str:
        ks = "_".join(map(str, self.ks[:8])) + (f"_of{len(self.ks)}" if len(self.ks) > 8 else "")
        sizes = ("psum" if self.psum else "sizes") + ("" if self.host_sizes else "-gpu")
        return f"{self.kind}-{self.m}x{self.n}-k{ks}-c{self.c}-{sizes}-gap{self.gap}-{self.sf}{self.gran_k}-al{self.alignment}-t{self.tail}"

    @property
    def name(self) -> str:
        dtype, layout = self.kind.split("_")
        return f"k_grouped_{dtype}_gemm_{layout}_contiguous"

    def spans(self) -> list[tuple[int, int]]:
        """(start, size) of each group along K."""
        spans, start = [], 0
        for k in self.ks:
            spans.append((start, max(k, 0)))
            start += -(-max(k, 0) // self.alignment) * self.alignment if self.psum else k
        return spans

    def total_k(self) -> int:
        start, size = self.spans()[-1] if self.ks else (0, 0)
        return (-(-(start + size) // self.alignment) * self.alignment if self.psum else start + size) + self.tail


def guarded(groups: int, m: int, n: int, gap: int, device: str) -> torch.Tensor:
    """[groups, m, n] of NaN inside a buffer of GUARD, rows 16 bytes apart or more, a row more in each group."""
    pitch = -(-max(n, 1) // 4) * 4 + gap
    buffer = torch.full((groups, m + 1, pitch), GUARD, device=device)
    buffer[:, :m, :n] = math.nan
    return buffer[:, :m, :n]


def with_gap(t: torch.Tensor, gap: int) -> torch.Tensor:
    """The same matrix, rows multiples of 16 bytes apart; NaN between them."""
    unit = 16 // t.element_size()
    pitch = -(-max(t.shape[1], 1) // unit) * unit + gap
    out = torch.full((t.shape[0], pitch), math.nan, device=t.device).to(t.dtype)
    out[:, : t.shape[1]] = t
    return out[:, : t.shape[1]]


def with_sf_form(sf: torch.Tensor, form: str) -> torch.Tensor:
    """[mn, s] in another stride form."""
    if form == "row":
        return sf.contiguous()
    mn, s = sf.shape
    pitch = mn if form == "mn" else -(-mn // 4) * 4
    out = torch.full((s, pitch), math.nan, device=sf.device)
    out[:, :mn] = sf.t()
    return out.t()[:mn]


@dataclass
class KGroupedProblem:
    """A call's tensors, and its operands as FP64 [K, M], [K, N]: what they stand for, factors included."""

    case: KGroupedCase
    a: object
    b: object
    d: torch.Tensor
    c: Optional[torch.Tensor]
    layout: torch.Tensor
    left: torch.Tensor
    right: torch.Tensor

    def run(self, **changes) -> torch.Tensor:
        """The public call; returns D."""
        case = self.case
        sizes = None
        if case.host_sizes:
            sizes = [-(-max(k, 0) // case.alignment) * case.alignment if case.psum else k for k in case.ks]
        options = {"use_psum_layout": case.psum}
        if case.kind == FP8_TN:
            options["recipe"] = (1, 1, case.gran_k)
        saved = deep_gemm.get_mk_alignment_for_contiguous_layout()
        deep_gemm.set_mk_alignment_for_contiguous_layout(case.alignment)
        try:
            arguments = {"ks_cpu": sizes, "grouped_layout": self.layout, "c": self.d if case.c == "same" else self.c, **options, **changes}
            getattr(deep_gemm, case.name)(self.a, self.b, self.d, **arguments)
        finally:
            deep_gemm.set_mk_alignment_for_contiguous_layout(saved)
        return self.d

    def reference(self, initial: Optional[torch.Tensor] = None) -> torch.Tensor:
        """[G, M, N] FP64: C and each group's product."""
        case = self.case
        d = torch.zeros(len(case.ks), case.m, case.n, dtype=torch.float64, device=self.d.device)
        if initial is not None:
            d += initial.double()
        for g, (start, size) in enumerate(case.spans()):
            d[g] += self.left[start : start + size].double().t() @ self.right[start : start + size].double()
        return d

    def run_and_check(self, exact: bool = False) -> None:
        """D against FP64; C untouched; nothing around D written. `exact`: to the bit."""
        case = self.case
        if case.c == "same":
            self.d.copy_(random_c(self.d.shape, torch.Generator().manual_seed(5)))
        initial = self.d.clone() if case.c == "same" else self.c
        kept = None if self.c is None else self.c.clone()
        want = self.reference(initial)
        self.run()
        for g in range(len(case.ks)):
            if exact:
                assert torch.equal(self.d[g], want[g].float()), f"{case}: group {g}"
            elif self.d[g].numel():
                compare(self.d[g], want[g], label=f"{case}: group {g}")
                assert float(calc_diff(self.d[g], want[g])) < (1e-5 if case.kind == BF16_TN else 1e-3)
        for g, (_, size) in enumerate(case.spans()):
            if size == 0:
                assert_bitwise_equal(self.d[g], torch.zeros_like(self.d[g]) if initial is None else initial[g], f"group {g} has no K")
        if kept is not None:
            assert torch.equal(kept, self.c), "c was modified"
        self.check_surroundings()

    def check_surroundings(self) -> None:
        """Every element of D's buffer outside of D is as it was."""
        groups, m, n = self.d.shape
        if self.d.numel() == 0:
            return
        whole = self.d.as_strided((groups, m + 1, self.d.stride(1)), self.d.stride(), self.d.storage_offset())
        assert bool((whole[:, :, n:] == GUARD).all()) and bool((whole[:, m] == GUARD).all()), "wrote outside of d"


def random_c(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """Normal noise, some of it zeros of either sign."""
    c = torch.randn(shape, generator=generator)
    return torch.where(c.abs() < 0.1, c * 0, c)


def quantised(t: torch.Tensor, spans: list[tuple[int, int]], gran_k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """FP8 data of t [K, MN], factors [sum of ceil(K_g / gran_k), MN] of each group for itself, and what they stand for."""
    data, exact, factors = torch.zeros_like(t).to(FP8), torch.zeros_like(t), []
    for start, size in spans:
        for k in range(start, start + size, gran_k):
            part = slice(k, min(k + gran_k, start + size))
            sf = t[part].abs().amax(0).clamp(1e-4) / 448
            factors.append(sf)
            data[part] = (t[part] / sf).to(FP8)
            exact[part] = data[part].float() * sf
    return data, torch.stack(factors) if factors else t.new_zeros(0, t.shape[1]), exact


def as_matrices(t: torch.Tensor, spans: list[tuple[int, int]]) -> torch.Tensor:
    """[K, MN] as one flat tensor: group after group [MN, K_g]."""
    codes = t.view(torch.uint8)
    parts = [codes[start : start + size].t().flatten() for start, size in spans]
    return (torch.cat(parts) if parts else codes.new_zeros(0)).view(t.dtype)


def make_k_grouped(case: KGroupedCase, device: str = "cpu", seed: int = 0, exact: bool = False) -> KGroupedProblem:
    """Operands of a case: normal ones, or (BF16) small integers whose products and sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    spans, total = case.spans(), case.total_k()
    rows = torch.zeros(total, 1)
    for start, size in spans:
        rows[start : start + size] = 1

    def draw(columns: int) -> torch.Tensor:
        if exact:
            return torch.randint(-8, 9, (total, columns), generator=generator).float() * rows
        return torch.randn(total, columns, generator=generator) * rows

    left, right = draw(case.m).to(device), draw(case.n).to(device)
    operands, meanings = [], []
    for t in (left, right):
        if case.kind == BF16_TN:
            operands.append(with_gap(t.to(BF16), case.gap))
            meanings.append(t.to(BF16).float())
            continue
        data, factors, meaning = quantised(t, spans, case.gran_k)
        meanings.append(meaning)
        if case.kind == FP8_TN:
            operands.append((with_gap(data, case.gap), factors))
        else:
            operands.append((as_matrices(data, spans), with_sf_form(factors.t(), case.sf)))
    ends = [start + k for (start, _), k in zip(spans, case.ks)]
    layout = torch.tensor(ends if case.psum else case.ks, dtype=torch.int32, device=device).reshape(-1)
    d = guarded(len(case.ks), case.m, case.n, case.gap, device)
    c = None
    if case.c == "apart":
        c = guarded(len(case.ks), case.m, case.n, case.gap, device)
        c.copy_(random_c(c.shape, generator))
    return KGroupedProblem(case, *operands, d, c, layout, *meanings)


def nt(m: int, n: int, ks: tuple[int, ...], **options) -> KGroupedCase:
    return KGroupedCase(FP8_NT, m, n, ks, **options)


def tn(m: int, n: int, ks: tuple[int, ...], **options) -> KGroupedCase:
    return KGroupedCase(BF16_TN, m, n, ks, **options)


KS = (256, 0, 128, 640, 0, 128)
FP8_CASES = (
    nt(136, 200, KS),
    nt(136, 200, KS, c="same", host_sizes=False, sf="row"),
    nt(70, 136, KS, c="apart", gap=4, sf="pitched"),
    nt(64, 8, (128,)),
    nt(1, 1, (128, 0, 384), host_sizes=False),
    nt(129, 264, (0, 0, 128), c="same"),
    nt(130, 72, (0, 0)),
    nt(130, 72, (0, 0), c="apart"),
    nt(72, 40, (), host_sizes=False),
    nt(0, 40, (128, 256)),
    nt(40, 0, (128, 256)),
    nt(65, 130, (128,) * 9 + (1024,), c="same", host_sizes=False),
    nt(16, 24, (128, 0) * 20 + (256,), gap=8),
)
BF16_CASES = (
    tn(136, 200, KS),
    tn(136, 200, KS, c="same", host_sizes=False, gap=8),
    tn(70, 136, KS, c="apart", gap=8, tail=64, host_sizes=False),
    tn(64, 8, (64,), alignment=64),
    tn(8, 8, (128, 0, 384), host_sizes=False),
    tn(130, 72, (0, 0), c="apart"),
    tn(72, 40, (), host_sizes=False),
    tn(72, 40, (64, 192, 0, 320), alignment=64, c="same"),
    tn(136, 72, (70, 0, 128, 1, 300), psum=True, c="same"),
    tn(136, 72, (70, 0, 128, 1, 300), psum=True, host_sizes=False),
    tn(65, 130, (5, -3, 64, 65), psum=True, alignment=64, c="apart", host_sizes=False),
    tn(200, 264, (0, 0, 7), psum=True, alignment=192, gap=16),
)
REFERENCE_CASES = (
    KGroupedCase(FP8_TN, 40, 24, KS),
    KGroupedCase(FP8_TN, 40, 24, (96, 0, 160, 32), gran_k=32, alignment=32, c="same"),
    KGroupedCase(FP8_TN, 33, 17, (96, 0, 160, 32), gran_k=128, alignment=32, c="apart", gap=16),
    KGroupedCase(FP8_TN, 24, 40, (70, 0, 128, 1), psum=True, c="same"),
    KGroupedCase(FP8_TN, 24, 40, (70, 0, 128, 1), psum=True, gran_k=32, host_sizes=False),
)
CASES = FP8_CASES + BF16_CASES + REFERENCE_CASES
# Wide enough for the planner to take wide tiles and clusters.
WIDE_CASES = (nt(520, 776, (384, 0, 640, 128), c="same"), tn(520, 776, (384, 0, 640, 128), c="same"))


def without_sizes(case: KGroupedCase) -> KGroupedCase:
    return dataclasses.replace(case, host_sizes=False)
