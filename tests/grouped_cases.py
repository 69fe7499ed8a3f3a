"""Cases of the grouped FP8 GEMMs as data, their operands, and what D must hold afterwards."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch

from deep_gemm import _C
from deep_gemm.testing import compare
from fp8_operands import FP8, ceil_div, fp64_gemm, random_fp8, random_scales

BF16 = torch.bfloat16
PER_BLOCK, PER_ROW = (1, 128, 128), (1, 1, 128)
GUARD = 0x5A  # every byte of D's buffer before a call


@dataclass(frozen=True)
class GroupedCase:
    """One call. `rows`: contiguous: (group, rows) runs, each padded to the alignment, -1 for rows of no group; masked: the
    wanted rows of each group; psum: rows of each group, one of 0 or less ends so many rows before it would start. `cut`: rows
    that the last aligned block lacks. `m`: capacity of a masked group, all rows of psum (0: to the last aligned end).
    `arrangement` of A and D: packed, gaps (between groups, and between rows) or interleaved (a row of each group in turn).
    `sfa`: row, mn, aligned (pitch a multiple of 4)."""

    kind: str
    groups: int
    rows: tuple
    n: int
    k: int
    m: int = 0
    cut: int = 0
    recipe: tuple = PER_BLOCK
    sfa: str = "aligned"
    arrangement: str = "packed"
    letters: str = "nt"
    expected_m: int = 64
    alignment: int = 128
    nan_padding: bool = True
    zero_padding: bool = True  # psum: ensure_zero_padding

    def __str__(self) -> str:
        rows = "_".join("x".join(map(str, run)) if isinstance(run, tuple) else str(run) for run in self.rows[:8])
        scaling = "1d2d" if self.recipe[1] == 128 else "1d1d"
        more = f"-of{self.m}" if self.kind == "masked" else f"-cut{self.cut}-by{self.alignment}"
        if self.kind == "psum":
            more = f"-of{self.m}-by{self.alignment}{'' if self.zero_padding else '-free'}"
        return f"{self.kind}-g{self.groups}-{rows}{more}-{self.n}x{self.k}-{scaling}-{self.sfa}-{self.arrangement}-{self.letters}"


def layout_of(case: GroupedCase) -> torch.Tensor:
    """The group of each row of a contiguous case."""
    ids = []
    for group, rows in case.rows:
        ids += [group] * rows + [-1] * (-rows % case.alignment)
    return torch.tensor(ids[: len(ids) - case.cut], dtype=torch.int32)


@dataclass(frozen=True)
class PsumRows:
    """Of a psum case: the end of each group, and the (first, end, next aligned row) of those with rows."""

    ends: list
    spans: dict
    m: int


def psum_rows(case: GroupedCase) -> PsumRows:
    """The rows of a psum case."""
    ends, spans, start = [], {}, 0
    for group, rows in enumerate(case.rows):
        ends.append(start + rows)
        following = ceil_div(ends[-1], case.alignment) * case.alignment
        if rows > 0:
            spans[group] = (start, start + rows, following)
        assert following >= start, "a group may not end before an earlier block"
        start = following
    m = case.m or start
    return PsumRows(ends, {g: (a, b, min(c, m)) for g, (a, b, c) in spans.items()}, m)


def arranged(groups: int, rows: int, columns: int, dtype: torch.dtype, arrangement: str) -> torch.Tensor:
    """[groups, rows, columns] of guard bytes in a buffer of its own, rows and groups 16 bytes apart as TMA wants them."""
    unit = 16 // dtype.itemsize
    pitch = max(ceil_div(columns, unit), 1) * unit + (unit if arrangement == "gaps" else 0)
    extra = 3 if arrangement == "gaps" else 0
    shape = (rows, groups, pitch) if arrangement == "interleaved" else (groups, rows + extra, pitch)
    buffer = torch.full((*shape[:2], shape[2] * dtype.itemsize), GUARD, dtype=torch.uint8).view(dtype)
    if arrangement == "interleaved":
        buffer = buffer.transpose(0, 1)
    return buffer[:, :rows, :columns]


def with_sfa_form(factors: torch.Tensor, form: str) -> torch.Tensor:
    """[groups, mn, s] in another stride form; the aligned one ends at the last used element."""
    groups, mn, s = factors.shape
    if form == "row":
        return factors.contiguous()
    pitch = ceil_div(mn, 4) * 4 if form == "aligned" else mn
    out = torch.empty_strided((groups, mn, s), (pitch * s, 1, pitch), dtype=factors.dtype)
    return out.copy_(factors)


def storage_of(t: torch.Tensor) -> torch.Tensor:
    """Every byte behind `t`, as one tensor."""
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage())


@dataclass
class GroupedProblem:
    """Operands of a case, always with their group dimension, and the output inside its guarded buffer."""

    case: GroupedCase
    a: torch.Tensor
    sfa: torch.Tensor
    b: torch.Tensor
    sfb: torch.Tensor
    layout: torch.Tensor
    d: torch.Tensor

    def to(self, device: str) -> GroupedProblem:
        """A copy on `device`, strides and guards included."""
        moved = {}
        for field in dataclasses.fields(self)[1:]:
            t = getattr(self, field.name)
            storage = storage_of(t).to(device, copy=True).untyped_storage()
            moved[field.name] = torch.empty(0, dtype=t.dtype, device=device).set_(storage, t.storage_offset(), t.shape, t.stride())
        return dataclasses.replace(self, **moved)

    def poison(self) -> None:
        """Overwrites D and what lies around it, so that a run that leaves something out shows."""
        torch.empty(0, dtype=torch.uint8, device=self.d.device).set_(self.d.untyped_storage()).fill_(GUARD)

    def run(self, expected_m: int | None = None) -> torch.Tensor:
        """The call; returns D."""
        case = self.case
        one = (lambda t: t) if case.kind == "masked" else (lambda t: t[0])
        b = (self.b, self.sfb) if case.letters == "nt" else (self.b.transpose(1, 2), self.sfb.transpose(1, 2))
        shared = ((one(self.a), one(self.sfa)), b, one(self.d), self.layout)
        options = (case.recipe, None, None, "nk", False)
        hint = case.expected_m if expected_m is None else expected_m
        if case.kind == "masked":
            _C.m_grouped_fp8_gemm_nt_masked(*shared, hint, *options)
        else:
            function = getattr(_C, f"m_grouped_fp8_gemm_{case.letters}_contiguous")
            psum = (True, case.zero_padding, hint) if case.kind == "psum" else (False, True, None)
            function(*shared, *options, *psum, case.alignment)
        return self.d

    def product(self, matrix: int, rows: torch.Tensor, group: int, dtype: torch.dtype) -> torch.Tensor:
        """What rows of a matrix of D must hold, from FP64 on the device of the operands."""
        rows = rows.to(self.a.device)
        a = self.a[matrix].contiguous().view(torch.uint8)[rows].view(FP8)
        return fp64_gemm(a, self.sfa[matrix][rows], self.b[group], self.sfb[group], dtype).cpu()

    def selections(self):
        """(matrix of D, rows of it, group of B or -1) for all rows that the call must write."""
        if self.case.kind == "masked":
            for group, count in enumerate(self.layout.tolist()):
                yield group, torch.arange(count), group
        elif self.case.kind == "psum":
            for group, (first, end, following) in psum_rows(self.case).spans.items():
                yield 0, torch.arange(first, end), group
                if self.case.zero_padding:
                    yield 0, torch.arange(end, following), -1
        else:
            for group in sorted(set(self.layout.tolist())):
                yield 0, (self.layout.cpu() == group).nonzero()[:, 0], group

    def check(self, exact: bool) -> None:
        """D against FP64 (bit for bit if `exact`), rows of no group zero, every other byte of the buffer as it was."""
        d, written = self.d.cpu(), guarded_like(self.d)
        if self.case.kind == "psum" and not self.case.zero_padding:
            for _, end, following in psum_rows(self.case).spans.values():
                written[0, end:following] = d[0, end:following]  # whatever it is
        for matrix, rows, group in self.selections():
            got = d[matrix, rows]
            written[matrix, rows] = got
            if group < 0 or self.case.k == 0 or rows.numel() == 0:
                assert not bool(got.view(torch.int16).any()), "rows without a product are not zero"
                continue
            want = self.product(matrix, rows, group, BF16 if exact else torch.float32)
            if exact:
                assert torch.equal(got, want), f"group {group}"
            else:
                compare(got, want, label=f"group {group}")
        assert torch.equal(storage_of(self.d).cpu(), storage_of(written)), "wrote outside of the wanted rows"


def guarded_like(t: torch.Tensor) -> torch.Tensor:
    """A tensor on the CPU laid out as `t`, whose storage is all guard bytes."""
    storage = torch.full((t.untyped_storage().nbytes(),), GUARD, dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=t.dtype).set_(storage, t.storage_offset(), t.shape, t.stride())


def with_rows_of_nan(a: torch.Tensor, sfa: torch.Tensor, unwanted: torch.Tensor) -> None:
    """Padding as clients leave it: NaN in the values, NaN and infinity in the factors."""
    a.view(torch.uint8)[unwanted] = 0x7F
    sfa[unwanted] = math.nan
    sfa[unwanted & (torch.arange(sfa.shape[1]) % 2 == 1)] = math.inf


def rows_of(case: GroupedCase) -> tuple[int, int, torch.Tensor, torch.Tensor]:
    """(matrices of A, rows of each, the layout, which rows [matrices, rows] are padding)."""
    if case.kind == "masked":
        counts = torch.tensor(case.rows, dtype=torch.int32)
        return case.groups, case.m, counts, torch.arange(case.m) >= counts[:, None]
    if case.kind == "contiguous":
        layout = layout_of(case)
        return 1, layout.numel(), layout, (layout < 0)[None]
    rows = psum_rows(case)
    unwanted = torch.ones(1, rows.m, dtype=torch.bool)
    for first, end, _ in rows.spans.values():
        unwanted[:, first:end] = False
    return 1, rows.m, torch.tensor(rows.ends, dtype=torch.int32), unwanted


def make_grouped(case: GroupedCase) -> GroupedProblem:
    """The problem of a case on the CPU."""
    masked, blocks = case.kind == "masked", ceil_div(case.k, 128)
    matrices, m, layout, unwanted = rows_of(case)
    a = arranged(matrices, m, case.k, FP8, case.arrangement)
    sfa = torch.empty(matrices, m, blocks)
    for i in range(matrices):
        a[i].copy_(random_fp8(m, case.k, seed=i))
        sfa[i] = random_scales(m, blocks, seed=1000 + i)
    if case.nan_padding:
        with_rows_of_nan(a, sfa, unwanted)
    b = arranged(case.groups, case.n, case.k, FP8, "gaps" if case.arrangement == "gaps" else "packed")
    sfb = torch.empty(case.groups, ceil_div(case.n, case.recipe[1]), blocks)
    for i in range(case.groups):
        b[i].copy_(random_fp8(case.n, case.k, seed=2000 + i))
        sfb[i] = random_scales(sfb.shape[1], blocks, seed=3000 + i)
    d = arranged(matrices, m, case.n, BF16, case.arrangement)
    return GroupedProblem(case, a, with_sfa_form(sfa, case.sfa), b, sfb, layout, d)


def contiguous(groups: int, rows: tuple, n: int, k: int, **options) -> GroupedCase:
    return GroupedCase("contiguous", groups, rows, n, k, **options)


def masked(counts: tuple, m: int, n: int, k: int, **options) -> GroupedCase:
    return GroupedCase("masked", len(counts), counts, n, k, m=m, **options)


def psum(rows: tuple, n: int, k: int, **options) -> GroupedCase:
    return GroupedCase("psum", len(rows), rows, n, k, **options)


RAGGED = ((0, 70), (2, 128), (-1, 128), (1, 30), (1, 129), (3, 1))
COUNTS = (0, 1, 63, 64, 65, 130)
CASES = [
    contiguous(4, RAGGED, 136, 400),
    contiguous(4, RAGGED, 136, 400, recipe=PER_ROW, sfa="row"),
    contiguous(4, RAGGED, 100, 256, cut=120, arrangement="gaps", sfa="mn"),
    contiguous(4, RAGGED, 264, 128, cut=127, letters="nn"),
    contiguous(2, ((1, 5),), 72, 16, cut=123),
    contiguous(3, ((-1, 256), (2, 200), (-1, 128)), 40, 384, cut=3),
    contiguous(2, ((-1, 300),), 136, 256),
    contiguous(5, ((4, 128), (0, 64), (4, 1), (2, 192)), 264, 272, alignment=64),
    contiguous(3, ((2, 250), (0, 1), (1, 300)), 200, 144, alignment=192, recipe=PER_ROW),
    contiguous(3, ((0, 100), (1, 256), (2, 300)), 136, 0),
    contiguous(0, ((-1, 200),), 136, 256),
    contiguous(1, (), 136, 256),
    contiguous(1, ((0, 128),), 0, 256),
    masked(COUNTS, 130, 136, 400),
    masked(COUNTS, 130, 136, 400, recipe=PER_ROW, sfa="row"),
    masked(COUNTS, 130, 100, 256, arrangement="gaps", sfa="mn"),
    masked(COUNTS, 130, 264, 256, arrangement="interleaved"),
    masked((8, 0, 3, 8), 8, 136, 400),
    masked((16, 1, 15), 16, 136, 400, arrangement="interleaved"),
    masked((96, 63, 64, 65, 95), 96, 136, 272),
    masked((0, 0, 0), 96, 136, 272),
    masked((0,) * 40, 64, 72, 128),
    masked(tuple(5 * (i % 3) for i in range(70)), 16, 40, 144, expected_m=5),
    masked((0,) * 37 + (9, 0, 2), 9, 40, 144, expected_m=1),
    masked((128, 7), 128, 200, 512, recipe=PER_ROW, expected_m=0),
    masked((1,), 1, 8, 16),
    masked((300, 257), 300, 24, 128, expected_m=300),
    masked(COUNTS, 130, 136, 0),
    masked(COUNTS, 130, 136, 0, recipe=PER_ROW),
    masked((), 64, 136, 256),
    masked((0, 0), 0, 136, 256),
    masked((3, 4), 16, 0, 256),
]
ENDS = (70, 0, 128, -5, 129, 1, 0)
PSUM_CASES = [
    psum(ENDS, 136, 400),
    psum(ENDS, 136, 400, zero_padding=False),
    psum(ENDS, 136, 400, recipe=PER_ROW, sfa="row", m=700),
    psum(ENDS, 100, 256, arrangement="gaps", sfa="mn", m=513),
    psum(ENDS, 264, 128, letters="nn", m=900, zero_padding=False),
    psum((5,), 72, 16, m=5),
    psum((5,), 72, 16, m=40, zero_padding=False),
    psum((0, 0, 0), 136, 256, m=300),
    psum((0, 0, 200), 40, 384, m=300),
    psum((64, 1, 65, 0, 63), 264, 272, alignment=64, m=400),
    psum((64, 1, 65, 0, 63), 136, 272, alignment=64, zero_padding=False, arrangement="gaps", m=321),
    psum((250, 1, 300), 200, 144, alignment=320, recipe=PER_ROW, m=1000),
    psum((1, 300, 30), 136, 128, alignment=256, m=900),
    psum((1, 300, 30), 136, 128, alignment=256, m=900, zero_padding=False),
    psum((100,), 136, 128, alignment=2**40 * 64, m=130),
    psum((1, 0) * 20 + (70, -3), 72, 128, alignment=64, expected_m=1),
    psum((0,) * 37 + (9, 0, 66), 40, 144, m=300, zero_padding=False),
    psum((0,) * 70, 40, 144, m=64),
    psum(ENDS, 136, 0, m=700),
    psum(ENDS, 136, 0, recipe=PER_ROW, zero_padding=False, m=700),
    psum((), 136, 256, m=64),
    psum((100, 20), 0, 256),
]
CASES += PSUM_CASES
# Wide enough for the planner to take wide tiles and clusters.
WIDE_CASES = [
    contiguous(4, ((0, 500), (1, 1), (3, 640), (-1, 100), (2, 400)), 1032, 400, cut=20),
    masked((100, 128, 0, 65), 128, 1032, 400, expected_m=100),
    masked((300, 120, 257), 400, 776, 272, expected_m=260),
    psum((500, 0, 640, 1, 400), 1032, 400, m=1800),
    psum((300, 120, 257), 776, 272, zero_padding=False, alignment=64),
]
