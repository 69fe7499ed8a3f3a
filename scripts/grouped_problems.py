"""The rows of the benchmarks that are grouped along M: cases of a shape file, their operands, the calls to time.

Every case has two calls on the same experts: one by its own layout (ids of rows, or counts of masked groups), one by the
ends of its groups (psum). Rows of a contiguous group and counts of a masked one are drawn from 0.7 to 1.3 of their mean.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

import deep_gemm
from deep_gemm.testing import calc_diff

sys.path.insert(0, str(Path(__file__).resolve().parent))
import dense_problems  # noqa: E402
from dense_problems import BYTES_PER_US, FLOP_PER_US, LARGEST_DIFF, LAUNCH_US  # noqa: E402
from planners import Shape, shape_of  # noqa: E402

Call = Callable[[], object]
KINDS = ("contiguous", "masked", "psum")
DTYPES = ("fp8", "bf16")


@dataclass(frozen=True)
class Case:
    """One problem. `m`: all rows of a contiguous problem, the room of a masked group. `expected_m` 0: contiguous."""

    dtype: str
    layout: str
    groups: int
    m: int
    n: int
    k: int
    expected_m: int = 0

    @property
    def kind(self) -> str:
        """The grouping of its own layout."""
        return "masked" if self.expected_m else "contiguous"

    def op(self, kind: str) -> str:
        """The operation that computes it by a grouping."""
        end = "masked" if kind == "masked" else "contiguous"
        return f"m_grouped_{self.dtype}_gemm_{self.layout}_{end}"

    def baseline_key(self, kind: str) -> Tuple[Any, ...]:
        """How a baseline file names this row."""
        extents = (self.groups, 0 if self.expected_m else self.m, self.n, self.k, self.expected_m)
        return (f"m_grouped_{self.kind}", self.dtype, self.layout, int(kind == "psum"), *extents)

    def floor_us(self, rows: int) -> float:
        """The time below which no kernel of this shape can go: memory or math, plus a launch."""
        moved = (rows + self.groups * self.n) * self.k * (1 if self.dtype == "fp8" else 2) + rows * self.n * 2
        return max(moved / BYTES_PER_US, 2 * rows * self.n * self.k / FLOP_PER_US[self.dtype]) + LAUNCH_US


@dataclass
class Timed:
    """A call to time, what it writes, the rows it computes, and what the planner chooses for."""

    call: Call
    d: torch.Tensor
    rows: int
    shape: Shape


def read_cases(path: Path, dtype: Optional[str] = None) -> List[Case]:
    """The rows of a shape file, of one operand format if asked."""
    shapes = json.loads(path.read_text())
    cases = [Case(row["dtype"], row["layout"], row["groups"], *mnk) for row in shapes["contiguous"] for mnk in row["mnk"]]
    for row in shapes["masked"]:
        cases += [Case(row["dtype"], "nt", row["groups"], row["m"], n, k, row["expected_m"]) for n, k in row["nk"]]
    return [case for case in cases if dtype in (None, case.dtype)]


def supported(case: Case, kind: str) -> bool:
    """Whether this library runs a case by a grouping here."""
    return deep_gemm.is_supported(case.op(kind))


def shape(case: Case, kind: str, m: int) -> Shape:
    """What the planner chooses for; `m` rows as the call has them."""
    keywords: Dict[str, Any] = {"d_dtype": "bf16", "grouping": kind, "num_groups": case.groups}
    if case.dtype == "bf16":
        keywords["b_major"] = "mn" if case.layout == "nn" else "k"
    if kind != "masked":
        keywords["alignment"] = deep_gemm.get_mk_alignment_for_contiguous_layout()
    if kind != "contiguous":
        keywords["expected_m"] = case.expected_m
    return shape_of(case.dtype, m, case.n, case.k, **keywords)


def spread(mean: int, count: int, generator: torch.Generator) -> List[int]:
    """`count` integers between 0.7 and 1.3 of `mean`."""
    return [int(mean * (0.7 + 0.6 * float(x))) for x in torch.rand(count, generator=generator)]


def group_blocks(case: Case, alignment: int, generator: torch.Generator) -> List[int]:
    """Aligned blocks of each contiguous group, M in all."""
    total = case.m // alignment
    blocks = [max(1, rows // alignment) for rows in spread(case.m // case.groups, case.groups, generator)]
    blocks[-1] += total - sum(blocks)
    if blocks[-1] < 1:  # what was drawn is too much: shared out evenly
        blocks = [total * (g + 1) // case.groups - total * g // case.groups for g in range(case.groups)]
    return blocks


def row_counts(case: Case, seed: int = 0) -> List[int]:
    """Rows of each group: of a contiguous one, the last block of each group is filled to a random part."""
    generator = torch.Generator().manual_seed(seed)
    if case.expected_m:
        return spread(case.expected_m, case.groups, generator)
    alignment = deep_gemm.get_mk_alignment_for_contiguous_layout()
    missing = [int(x) for x in torch.randint(0, alignment, (case.groups,), generator=generator)]
    return [blocks * alignment - gap for blocks, gap in zip(group_blocks(case, alignment, generator), missing)]


@dataclass(frozen=True)
class Places:
    """Where groups lie in one matrix: the first row and the end of each, and the rows of all, padding included."""

    starts: Tuple[int, ...]
    ends: Tuple[int, ...]
    rows: int


def places_of(counts: List[int]) -> Places:
    """Groups of `counts` rows one after another, each at an aligned row."""
    alignment = deep_gemm.get_mk_alignment_for_contiguous_layout()
    starts, start = [], 0
    for count in counts:
        starts.append(start)
        start += deep_gemm.align(count, alignment)
    return Places(tuple(starts), tuple(s + c for s, c in zip(starts, counts)), start)


def ids_of(places: Places) -> torch.Tensor:
    """The layout of row ids."""
    layout = torch.full((places.rows,), -1, dtype=torch.int32)
    for group, (start, end) in enumerate(zip(places.starts, places.ends)):
        layout[start:end] = group
    return layout


class Problem:
    """The operands of a case on the GPU, and its calls by each grouping."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(0)
        self.case, self.counts = case, row_counts(case)
        self.weights = [torch.randn(case.n, case.k, device=dense_problems.DEVICE, dtype=torch.bfloat16) for _ in range(case.groups)]
        self.b = self._experts()

    def _experts(self) -> Any:
        """B as the operation takes it."""
        if self.case.dtype == "bf16":
            b = torch.stack(self.weights)
            return b.transpose(1, 2).contiguous() if self.case.layout == "nn" else b
        pairs = [deep_gemm.per_block_cast_to_fp8(weight, use_ue8m0=False) for weight in self.weights]
        data = torch.stack([data.view(torch.uint8) for data, _ in pairs]).view(torch.float8_e4m3fn)
        return data, torch.stack([factors for _, factors in pairs])

    def _tokens(self, x: torch.Tensor) -> Any:
        """A as the operation takes it."""
        if self.case.dtype == "bf16":
            return x
        data, factors = deep_gemm.per_token_cast_to_fp8(x.view(-1, self.case.k), use_ue8m0=False)
        return data.view(x.shape), deep_gemm.get_mn_major_tma_aligned_tensor(factors.view(*x.shape[:-1], -1))

    def timed(self, kind: str) -> Timed:
        """The call by a grouping, run once and checked against the product of the inputs."""
        return self._masked() if kind == "masked" else self._in_one_matrix(kind)

    def _masked(self) -> Timed:
        case = self.case
        x = torch.randn(case.groups, case.m, case.k, device=dense_problems.DEVICE, dtype=torch.bfloat16)
        a, d = self._tokens(x), torch.empty(case.groups, case.m, case.n, device=dense_problems.DEVICE, dtype=torch.bfloat16)
        masked_m = torch.tensor(self.counts, dtype=torch.int32, device=dense_problems.DEVICE)
        function = getattr(deep_gemm, case.op("masked"))

        def call() -> None:
            function(a, self.b, d, masked_m, case.expected_m)

        call()
        self._check("masked", [(d[g, :count], x[g, :count]) for g, count in enumerate(self.counts)])
        return Timed(call, d, sum(self.counts), shape(case, "masked", case.m))

    def _in_one_matrix(self, kind: str) -> Timed:
        """By ids of rows, or by ends of groups; a guess of a group's rows is given where groups are small."""
        case, places = self.case, places_of(self.counts)
        x = torch.randn(places.rows, case.k, device=dense_problems.DEVICE, dtype=torch.bfloat16)
        a, d = self._tokens(x), torch.empty(places.rows, case.n, device=dense_problems.DEVICE, dtype=torch.bfloat16)
        ends = torch.tensor(places.ends, dtype=torch.int32)
        layout = (ends if kind == "psum" else ids_of(places)).to(dense_problems.DEVICE)
        keywords: Dict[str, Any] = {"use_psum_layout": True} if kind == "psum" else {}
        if kind == "psum" and case.expected_m:
            keywords["expected_m_for_psum_layout"] = case.expected_m
        function = getattr(deep_gemm, case.op(kind))

        def call() -> None:
            function(a, self.b, d, layout, **keywords)

        call()
        self._check(kind, [(d[s:e][:256], x[s:e][:256]) for s, e in zip(places.starts, places.ends)])
        rows = sum(self.counts) if case.expected_m else places.rows
        return Timed(call, d, rows, shape(case, kind, places.rows))

    def _check(self, kind: str, parts: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """A wrong kernel has no speed. Compares (D, A) of each group with the product of the inputs."""
        diffs = [float(calc_diff(d, a.float() @ w.float().t())) for (d, a), w in zip(parts, self.weights)]
        limit = LARGEST_DIFF[self.case.dtype]
        if not max(diffs) < limit:
            raise RuntimeError(f"{self.case} {kind}: difference {max(diffs):.2e} to the product of the inputs, expected below {limit}")


def read_baseline(path: Optional[Path]) -> Dict[Tuple[Any, ...], float]:
    """row key -> microseconds of another library."""
    if path is None:
        return {}
    found = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["op"].startswith("m_grouped"):
                words = (row["op"], row["dtype"], row["layout"].lower(), int(row["psum"] or 0))
                found[(*words, *(int(row[name] or 0) for name in ("groups", "m", "n", "k", "expected_m")))] = float(row["us"])
    return found
