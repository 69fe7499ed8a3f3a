"""Cases of fp8_gemm_nt_skip_head_mid: D around poison, against FP64, and calls that must be refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

import deep_gemm
from deep_gemm.testing import compare
from fp8_operands import ceil_div, fp64_gemm, random_fp8, random_scales

BF16, F32 = torch.bfloat16, torch.float32
PER_BLOCK, PER_ROW = (1, 128, 128), (1, 1, 128)


@dataclass(frozen=True)
class HeadCase:
    """One call; `gap`: elements between the rows of D beyond what 16 bytes ask for."""

    m: int
    heads: int
    k: int
    splits: tuple
    recipe: tuple = PER_BLOCK
    dtype: torch.dtype = BF16
    gap: int = 0

    def __str__(self) -> str:
        scaling = "1d2d" if self.recipe[1] == 128 else "1d1d"
        return f"{self.m}x{self.heads}x{self.k}-{'_'.join(map(str, self.splits))}-{scaling}-{str(self.dtype)[6:]}-{self.gap}"


CASES = (
    HeadCase(70, 3, 272, (128, 64, 64)),
    HeadCase(5, 4, 128, (128, 64, 128)),
    HeadCase(130, 2, 400, (64, 128, 32), PER_ROW),
    HeadCase(64, 5, 256, (8, 16, 40)),
    HeadCase(33, 3, 144, (0, 64, 64), dtype=F32),
    HeadCase(33, 3, 144, (96, 8, 0), dtype=F32, gap=12),
    HeadCase(9, 2, 528, (48, 0, 16), gap=24),
    HeadCase(200, 7, 128, (24, 104, 16), PER_ROW, F32),
    HeadCase(3, 2, 0, (16, 8, 24), gap=8),
    HeadCase(0, 2, 128, (16, 8, 24)),
    HeadCase(7, 0, 128, (16, 8, 24)),
)
WIDE_CASES = (HeadCase(200, 6, 400, (128, 64, 64)), HeadCase(128, 8, 256, (128, 64, 128), PER_ROW, F32))
LARGE_CASES = (
    HeadCase(4096, 128, 1536, (128, 64, 64)),
    HeadCase(1, 128, 1536, (128, 64, 64)),
    HeadCase(777, 16, 7168, (128, 64, 128), PER_ROW, F32),
    HeadCase(300, 33, 512, (40, 24, 8)),
)


class HeadProblem:
    """The tensors of a case on a device; D lies in a poisoned buffer."""

    def __init__(self, case: HeadCase, device: str = "cpu"):
        self.case = case
        left, mid, right = case.splits
        n, blocks = case.heads * (left + right), ceil_div(case.k, 128)
        self.columns = [c for c in range(case.heads * (left + mid + right)) if not left <= c % (left + mid + right) < left + mid]
        self.a = (random_fp8(case.m, case.k, 1).to(device), random_scales(case.m, blocks, 2).to(device))
        self.b = (random_fp8(n, case.k, 3).to(device), random_scales(ceil_div(n, case.recipe[1]), blocks, 4).to(device))
        self.width = case.heads * (left + mid + right)
        self.buffer = torch.full((case.m + 2, self.width + case.gap), math.nan, dtype=case.dtype, device=device)
        self.d = self.buffer[1:-1, : self.width]

    def run(self) -> torch.Tensor:
        """The product's columns of D, written by the public function."""
        assert deep_gemm.fp8_gemm_nt_skip_head_mid(self.a, self.b, self.d, self.case.splits, self.case.recipe) is None
        return self.d[:, self.columns]

    def check(self, exact: bool) -> None:
        """Runs the call: D against FP64, and every byte around it against the poison."""
        got = self.run().cpu()
        operands = [t.cpu() for pair in (self.a, self.b) for t in pair]
        want = fp64_gemm(*operands, self.case.dtype) if self.case.k else torch.zeros_like(got)
        if exact or got.numel() == 0 or self.case.k == 0:
            assert torch.equal(got, want)
        else:
            compare(got, want)
        rest = self.buffer.cpu().clone()
        rest[1:-1, self.columns] = math.nan
        assert bool(rest.isnan().all()), "wrote outside of the heads' parts"


M, HEADS, K, SPLITS = 16, 2, 128, (16, 8, 24)


def good_call() -> dict:
    """Arguments of a good call, for a case to spoil."""
    problem = HeadProblem(HeadCase(M, HEADS, K, SPLITS))
    return {"a": problem.a, "b": problem.b, "d": problem.d, "head_splits": SPLITS}


# name, the arguments that spoil the call, words of the refusal
BAD_CALLS = (
    ("splits_none", {"head_splits": None}, ("head_splits", "None")),
    ("splits_two", {"head_splits": (16, 8)}, ("head_splits", "left, mid, right")),
    ("splits_float", {"head_splits": (16.0, 8, 24)}, ("head_splits", "integer", "16.0")),
    ("splits_odd", {"head_splits": (16, 4, 24)}, ("head_splits", "multiple of 8", "(16, 4, 24)")),
    ("splits_negative", {"head_splits": (16, -8, 24)}, ("head_splits", "-8")),
    ("splits_empty", {"head_splits": (0, 8, 0)}, ("head_splits", "left + right > 0", "fp8_gemm_nt")),
    ("heads", {"head_splits": (32, 8, 24)}, ("b: expected N = heads x (left + right)", "56", "80")),
    ("d_dense", {"d": torch.full((M, 80), math.nan, dtype=BF16)}, ("d: expected shape", "96", "heads*(left+mid+right)")),
    ("d_rows", {"d": torch.full((M + 1, 96), math.nan, dtype=BF16)}, ("d: expected shape", "M comes from a")),
    ("d_dtype", {"d": torch.full((M, 96), math.nan, dtype=torch.float16)}, ("d: expected dtype", "float16")),
    ("d_pitch", {"d": torch.full((M, 98), math.nan, dtype=BF16)[:, :96]}, ("d: expected", "16", "196")),
    ("a_bare", {"a": torch.zeros(M, K)}, ("a must be a pair",)),
    ("a_dtype", {"a": (torch.zeros(M, K), torch.zeros(M, 1))}, ("a: expected dtype", "float32")),
    ("sfa_shape", {"a": (torch.zeros(M, K).to(torch.float8_e4m3fn), torch.zeros(M, 2))}, ("sfa (scales of a): expected shape",)),
    ("recipe", {"recipe": (1, 1, 32)}, ("recipe: expected a supported recipe", "(1, 1, 32)")),
    ("dims", {"compiled_dims": "x"}, ("compiled_dims",)),
)  # fmt: skip
