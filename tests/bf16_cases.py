"""BF16 GEMMs as data: layouts, shapes, outputs, and operands whose products are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch

import deep_gemm

LAYOUTS = ("nt", "nn", "tn", "tt")
BF16, F32 = torch.bfloat16, torch.float32
EXACT = 9  # integers up to 8: sums over K < 2^16 are exact in FP32, in any order


@dataclass(frozen=True)
class Case:
    """One GEMM; `c`: "none", "same" (C is D) or "apart"; `gap`: elements between the rows of every tensor."""

    layout: str
    m: int
    n: int
    k: int
    dtype: torch.dtype = BF16
    c: str = "none"
    gap: int = 0

    def __str__(self) -> str:
        return f"{self.layout}-{self.m}x{self.n}x{self.k}-{str(self.dtype)[6:]}-{self.c}-{self.gap}"


SHAPES = ((1, 8, 8), (3, 5, 7), (64, 64, 64), (70, 40, 520), (129, 136, 72), (200, 264, 100), (130, 513, 64))
OUTPUTS = ((BF16, "none"), (F32, "same"), (BF16, "apart"), (F32, "none"), (BF16, "same"))
CASES = tuple(
    Case(layout, *shape, *OUTPUTS[(i + j) % len(OUTPUTS)], gap=8 * ((i + j) % 3))
    for i, layout in enumerate(LAYOUTS)
    for j, shape in enumerate(SHAPES)
)


def pitched(values: torch.Tensor, gap: int) -> torch.Tensor:
    """The same matrix with rows that start on 16 bytes, `gap` or more elements apart."""
    rows, columns = values.shape
    storage = torch.full((rows, -(-columns // 8) * 8 + gap), float("nan"), dtype=values.dtype, device=values.device)
    storage[:, :columns] = values
    return storage[:, :columns]


@dataclass
class Problem:
    """The tensors of a case; `a` and `b` as the layout takes them, `left` and `right` as `nt` does, in FP64."""

    case: Case
    a: torch.Tensor
    b: torch.Tensor
    d: torch.Tensor
    c: Optional[torch.Tensor]
    left: torch.Tensor
    right: torch.Tensor

    def run(self) -> torch.Tensor:
        """D, written by the public function."""
        c = self.d if self.case.c == "same" else self.c
        getattr(deep_gemm, f"bf16_gemm_{self.case.layout}")(self.a, self.b, self.d, c)
        return self.d

    def reference(self) -> torch.Tensor:
        """C + A @ B.T in FP64, from C as it was before the call."""
        product = self.left @ self.right.t()
        return product if self.c is None else product + self.c.double()

    def outside_is_untouched(self) -> bool:
        """Whether the gaps between D's rows still hold what they held."""
        (m, n), pitch = self.d.shape, self.d.stride(0)
        return bool(self.d.as_strided((m, pitch), (pitch, 1))[:, n:].isnan().all())


def make_problem(case: Case, device: str = "cpu", exact: bool = False, seed: int = 0) -> Problem:
    """Random operands: normal ones, or small integers whose products and sums are exact. D starts as NaN, or as C."""
    generator = torch.Generator().manual_seed(seed)

    def draw(rows: int, columns: int) -> torch.Tensor:
        if exact:
            return torch.randint(1 - EXACT, EXACT, (rows, columns), generator=generator).to(device)
        return torch.randn(rows, columns, generator=generator).to(device)

    left, right, c = draw(case.m, case.k).to(BF16), draw(case.n, case.k).to(BF16), draw(case.m, case.n).to(case.dtype)
    a = left.t().contiguous() if case.layout[0] == "t" else left
    b = right.t().contiguous() if case.layout[1] == "n" else right
    d = c if case.c == "same" else torch.full_like(c, float("nan"))
    return Problem(
        case,
        pitched(a, case.gap),
        pitched(b, case.gap),
        pitched(d, case.gap),
        None if case.c == "none" else pitched(c, case.gap),
        left.double(),
        right.double(),
    )


def config(**changes) -> dict:
    """A config of the kernel, as the planner's binding takes it."""
    base = {"a_major": "k", "b_major": "k", "grouping": "dense", "d_dtype": "bf16", "has_c": False, "c_is_d": False, "block_m": 64, "block_n": 64,
            "num_math_warpgroups": 1, "num_stages": 4, "k_blocks": 1, "store_boxes": 1, "cluster_m": 1, "cluster_n": 1, "ragged_n": False}  # fmt: skip
    return {**base, **changes}


# Of every kind the kernel has.
CONFIGS = (
    {},
    {"block_n": 8, "num_stages": 2},
    {"block_n": 40, "cluster_n": 2},
    {"block_n": 256, "store_boxes": 4},
    {"block_n": 80, "cluster_m": 2},
    {"block_n": 64, "k_blocks": 2},
    {"block_n": 16, "k_blocks": 4, "num_stages": 3, "cluster_n": 2},
    {"block_n": 128, "k_blocks": 2, "num_stages": 2, "cluster_m": 2, "store_boxes": 2},
    {"block_m": 128, "block_n": 128, "num_math_warpgroups": 2, "cluster_m": 2},
    {"block_m": 128, "block_n": 256, "num_math_warpgroups": 2, "store_boxes": 2, "cluster_n": 2},
    {"block_m": 256, "block_n": 128, "num_math_warpgroups": 2, "store_boxes": 2, "num_stages": 3},
    {"block_m": 256, "block_n": 128, "num_math_warpgroups": 2, "num_stages": 3, "cluster_m": 2},
    {"block_m": 128, "block_n": 192, "num_math_warpgroups": 2, "store_boxes": 3},
    {"block_m": 256, "block_n": 128, "num_math_warpgroups": 2, "store_boxes": 4, "num_stages": 3, "cluster_n": 2},
)
