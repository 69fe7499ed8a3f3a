"""The dense rows of the benchmarks: cases of a shape file, their operands, ours and the vendor's call."""

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
from planners import Shape, shape_of  # noqa: E402

BYTES_PER_US, LAUNCH_US = 4.2e6, 2.0  # ceilings of an H200, for the floor column
FLOP_PER_US = {"fp8": 1.5e9, "bf16": 0.82e9}
OUT_WORDS = {"bfloat16": "bf16", "float32": "f32"}
LARGEST_DIFF = {"fp8": 1e-3, "bf16": 1e-5}  # to the product of the inputs: what rounding explains
CHECKED_ROWS = 256
DEVICE = "cuda"  # tests put the CPU here, whose reference runs the same calls

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One row: an operation, its output, a shape, and the recipe of an FP8 one."""

    op: str
    out: str
    accumulate: bool
    m: int
    n: int
    k: int
    recipe: Optional[Tuple[int, int, int]] = None

    @property
    def dtype(self) -> str:
        """Of the operands: "fp8" or "bf16"."""
        return self.op.partition("_")[0]

    @property
    def layout(self) -> str:
        """The letters of A and B."""
        return self.op.rpartition("_")[2]

    def floor_us(self) -> float:
        """The time below which no kernel of this shape can go: memory or math, plus a launch."""
        operand_bytes = 1 if self.dtype == "fp8" else 2
        out_bytes = getattr(torch, self.out).itemsize * (2 if self.accumulate else 1)
        moved = (self.m + self.n) * self.k * operand_bytes + self.m * self.n * out_bytes
        return max(moved / BYTES_PER_US, 2 * self.m * self.n * self.k / FLOP_PER_US[self.dtype]) + LAUNCH_US

    def baseline_key(self) -> Tuple[Any, ...]:
        """How a baseline file names this row."""
        scaling = "" if self.recipe is None else "1D2D" if self.recipe[1] == 128 else "1D1D"
        out = {"bfloat16": "BF16", "float32": "FP32"}[self.out]
        return ("dense", self.dtype, scaling, self.layout.upper(), out, int(self.accumulate), self.m, self.n, self.k)

    def kind(self) -> str:
        """Recipe or layout, and the output, for people."""
        head = "x".join(map(str, self.recipe)) if self.recipe else self.layout
        return f"{head} {self.out}{' +c' if self.accumulate else ''}"

    def shape(self) -> Shape:
        """What the planner chooses for."""
        common = {"d_dtype": OUT_WORDS[self.out], "has_c": self.accumulate, "c_is_d": self.accumulate}
        if self.recipe:
            return shape_of("fp8", self.m, self.n, self.k, recipe=self.recipe, **common)
        a_major, b_major = ("mn" if self.layout[0] == "t" else "k"), ("mn" if self.layout[1] == "n" else "k")
        return shape_of("bf16", self.m, self.n, self.k, a_major=a_major, b_major=b_major, **common)


@dataclass
class Operands:
    """The tensors of one case: `a` and `b` as the operation takes them (pairs for FP8), D."""

    a: Any
    b: Any
    d: torch.Tensor


def read_cases(path: Path, wanted_m: Optional[List[int]] = None) -> List[Case]:
    """The rows of a shape file, cut to `wanted_m` if given."""
    cases = []
    for group in json.loads(path.read_text())["cases"]:
        shapes = [(m, n, k) for m in group.get("m", ()) for n, k in group["nk"]] + group.get("mnk", [])
        recipe = tuple(group["recipe"]) if "recipe" in group else None
        for m, n, k in shapes:
            if not wanted_m or m in wanted_m:
                cases.append(Case(group["op"], group["out"], group["accumulate"], m, n, k, recipe))
    return cases


def make_fp8(case: Case, x: torch.Tensor, y: torch.Tensor, d: torch.Tensor) -> Operands:
    """Operands quantised as the recipe says; factors of A in the layout the kernel reads best."""
    data, factors = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    a = (data, deep_gemm.get_mn_major_tma_aligned_tensor(factors))
    by_block = case.recipe is not None and case.recipe[1] == 128
    cast = deep_gemm.per_block_cast_to_fp8 if by_block else deep_gemm.per_token_cast_to_fp8
    data, factors = cast(y, use_ue8m0=False)
    return Operands(a, (data, factors if by_block else deep_gemm.get_mn_major_tma_aligned_tensor(factors)), d)


def make_operands(case: Case) -> Operands:
    """Normal noise, in the layout and format of the operation; a result that is wrong is refused."""
    torch.manual_seed(0)
    x = torch.randn(case.m, case.k, device=DEVICE, dtype=torch.bfloat16)
    y = torch.randn(case.n, case.k, device=DEVICE, dtype=torch.bfloat16)
    d = torch.zeros(case.m, case.n, device=DEVICE, dtype=getattr(torch, case.out))
    if case.dtype == "fp8":
        operands = make_fp8(case, x, y, d)
    else:
        a = x.t().contiguous() if case.layout[0] == "t" else x
        operands = Operands(a, y.t().contiguous() if case.layout[1] == "n" else y, d)
    check_accuracy(case, operands, x, y)
    return operands


def check_accuracy(case: Case, operands: Operands, x: torch.Tensor, y: torch.Tensor) -> None:
    """A wrong kernel has no speed: refuses to time one whose error its formats do not explain, in rows spread over D."""
    rows = torch.linspace(0, case.m - 1, min(case.m, CHECKED_ROWS), device=DEVICE).long()
    want = x[rows].double() @ y.double().t()
    if case.accumulate:
        want += operands.d.normal_()[rows].double()
    ours(case, operands, operands.d if case.accumulate else None)()
    diff = float(calc_diff(operands.d[rows], want))
    if not diff < LARGEST_DIFF[case.dtype]:
        raise RuntimeError(f"{case}: difference {diff:.2e} to the product of the inputs, expected below {LARGEST_DIFF[case.dtype]}")


def ours(case: Case, operands: Operands, c: Optional[torch.Tensor]) -> Call:
    """The call of this library."""
    function = getattr(deep_gemm, case.op)
    keywords = {"recipe": case.recipe} if case.recipe else {}
    return lambda: function(operands.a, operands.b, operands.d, c=c, **keywords)


def vendor(case: Case, operands: Operands) -> Optional[Call]:
    """The vendor's product of the same extents; None where this PyTorch has none."""
    if case.dtype == "fp8":
        one, a, b = torch.ones((), device=DEVICE), operands.a[0], operands.b[0].t()
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    a = operands.a.t() if case.layout[0] == "t" else operands.a
    b = operands.b if case.layout[1] == "n" else operands.b.t()
    d = torch.zeros_like(operands.d)
    if case.out == "bfloat16":
        return (lambda: torch.addmm(d, a, b, out=d)) if case.accumulate else (lambda: torch.matmul(a, b, out=d))
    name = "addmm" if case.accumulate else "mm"
    function = getattr(getattr(torch.ops.aten, name), "dtype_out", None)
    if function is None:
        return None
    head = (d, a, b) if case.accumulate else (a, b)
    return lambda: function(*head, torch.float32, out=d)


def contenders(case: Case, operands: Operands) -> Dict[str, Call]:
    """name -> call. Ours, and the vendor's where there is one."""
    calls: Dict[str, Call] = {"deep_gemm": ours(case, operands, operands.d if case.accumulate else None)}
    other = vendor(case, operands)
    if other is None:
        return calls
    try:
        other()
    except RuntimeError as error:  # of which NotImplementedError is one
        print(f"{case}: this PyTorch has no such product: {str(error).splitlines()[0]}", file=sys.stderr)
        return calls
    return {**calls, "vendor": other}


@dataclass(frozen=True)
class Baseline:
    """Another library's row: microseconds, and its speed relative to the vendor's where it says."""

    us: float
    ratio: Optional[float]


def read_baseline(path: Optional[Path]) -> Dict[Tuple[Any, ...], Baseline]:
    """row key -> what a CSV of another library's times says of it."""
    if path is None:
        return {}
    rows = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["op"] != "dense":
                continue
            words = tuple(row[name] for name in ("op", "dtype", "recipe", "layout", "out"))
            numbers = tuple(int(row[name]) for name in ("accumulate", "m", "n", "k"))
            ratio = row["speed_vs_cublaslt_same_run"]
            rows[words + numbers] = Baseline(float(row["us"]), float(ratio) if ratio else None)
    return rows
