"""Calls of cublaslt_gemm_*: the BF16 cases, FP8 ones, and calls that must be refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch

import deep_gemm
from bf16_bad_calls import BAD_CALLS as BF16_BAD_CALLS
from bf16_bad_calls import BF16, BadCall, Call, K, M, N, change
from bf16_cases import CASES, F32, LAYOUTS, Case, make_problem

F8 = torch.float8_e4m3fn
FP8_CASES = tuple(
    Case(layout, m, n, k, dtype, c, gap=16)
    for layout in LAYOUTS
    for m, n, k, dtype, c in ((16, 32, 48, BF16, "none"), (5, 48, 528, F32, "same"), (130, 144, 64, BF16, "same"), (1, 16, 16, BF16, "apart"))
)


@dataclass
class VendorProblem:
    """The tensors of a call, and D in FP64."""

    case: Case
    a: torch.Tensor
    b: torch.Tensor
    d: torch.Tensor
    c: Optional[torch.Tensor]
    expected: torch.Tensor

    def run(self) -> torch.Tensor:
        """D, written by the public function."""
        c = self.d if self.case.c == "same" else self.c
        getattr(deep_gemm, f"cublaslt_gemm_{self.case.layout}")(self.a, self.b, self.d, c)
        return self.d


def make_vendor_problem(case: Case, device: str = "cpu", fp8: bool = False) -> VendorProblem:
    """Small integers, whose products and sums are exact in every order; BF16 operands, or FP8 ones (K-major)."""
    problem = make_problem(case, device, exact=True)
    a, b = problem.a, problem.b
    if fp8:
        left, right = problem.left.to(F8), problem.right.to(F8)
        a = left.t() if case.layout[0] == "t" else left
        b = right.t() if case.layout[1] == "n" else right
    return VendorProblem(case, a, b, problem.d, problem.c, problem.reference())


def fp8(rows: int, columns: int) -> torch.Tensor:
    return torch.ones(rows, columns).to(F8)


BAD_CALLS = tuple(bad for bad in BF16_BAD_CALLS if not bad.name.startswith("dims")) + (
    BadCall("mixed", change(a=fp8(M, K)), ("b: expected dtype", "bfloat16", "both operands")),
    BadCall("fp8_n", change(a=fp8(M, K), b=fp8(N, K)), ("b: expected N and K that are multiples of 16", "N=24")),
    BadCall("fp8_k", change(a=fp8(M, 24), b=fp8(16, 24), d=torch.full((M, 16), 7.0, dtype=BF16)), ("multiples of 16", "K=24")),
    BadCall("fp8_major", change(layout="nn", a=fp8(M, K), b=fp8(K, 32), d=torch.full((M, 32), 7.0, dtype=BF16)), ("b: expected stride 1 along K",)),
    BadCall("e5m2", change(a=torch.ones(M, K).to(torch.float8_e5m2)), ("a: expected dtype", "float8_e5m2")),
)  # fmt: skip
__all__ = ["BAD_CALLS", "CASES", "FP8_CASES", "Call", "make_vendor_problem"]
