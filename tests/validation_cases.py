"""Calls that only `DG_VALIDATE=1` refuses on a device: contents of layouts and factors, one case for each rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Tuple

import torch

import deep_gemm

FP8, BF16, POISON = torch.float8_e4m3fn, torch.bfloat16, 7.0
GROUPS, M, N, K = 3, 300, 136, 256


def fp8(*shape: int) -> torch.Tensor:
    return torch.ones(shape).to(FP8)


class Call:
    """A good call of a grouped function, for a case to spoil. Padding rows hold NaN factors, which nobody may mind."""

    def __init__(self, kind: str, letters: str = "nt", device: str = "cpu"):
        self.kind, self.letters = kind, letters
        self.options: dict = {}
        one = (M,) if kind in ("ids", "ends") else (GROUPS, M)
        self.sfa, self.sfb = torch.ones(*one, 2), torch.ones(GROUPS, 2, 2)
        self.d = torch.full((*one, N), POISON, dtype=BF16)
        if kind == "ids":
            self.layout = torch.tensor([2] * 100 + [-1] * 28 + [-1] * 128 + [0] * 44)
            self.sfa[100:256] = math.nan
        elif kind == "ends":
            self.layout = torch.tensor([70, 128, 300])
            self.sfa[70:128] = -math.inf
        elif kind == "counts":
            self.layout = torch.tensor([0, 300, 65])
            self.sfa[2, 65:] = -1.0
            self.sfa[0] = math.nan
        else:
            self.layout = torch.tensor([128, 0, 256])
            self.d = torch.full((GROUPS, 16, 24), POISON)
            self.sfa, self.sfb = torch.ones(16, 3), torch.ones(24, 3)
        self.layout = self.layout.int()
        for name in ("sfa", "sfb", "layout", "d"):
            setattr(self, name, getattr(self, name).to(device))

    def name(self) -> str:
        grouping = {"ids": "contiguous", "ends": "contiguous", "counts": "masked", "sizes": "contiguous"}[self.kind]
        return f"{'k' if self.kind == 'sizes' else 'm'}_grouped_fp8_gemm_{self.letters}_{grouping}"

    def run(self) -> None:
        function, device = getattr(deep_gemm, self.name()), self.d.device
        if self.kind == "sizes":
            a, b = (fp8(16 * 384).to(device), self.sfa), (fp8(24 * 384).to(device), self.sfb)
            return function(a, b, self.d, self.options.get("ks_cpu"), self.layout)
        b = fp8(GROUPS, N, K).to(device)
        pair = (b, self.sfb) if self.letters == "nt" else (b.transpose(1, 2), self.sfb.transpose(1, 2))
        a = (fp8(*self.sfa.shape[:-1], K).to(device), self.sfa)
        if self.kind == "counts":
            return function(a, pair, self.d, self.layout, 0)
        return function(a, pair, self.d, self.layout, use_psum_layout=self.kind == "ends")


@dataclass(frozen=True)
class Bad:
    """How to spoil a call of a kind, and what the refusal says."""

    name: str
    kind: str
    spoil: Callable[[Call], object]
    words: Tuple[str, ...]
    letters: str = "nt"

    def __str__(self) -> str:
        return self.name


def put(field: str, *index_and_value) -> Callable[[Call], object]:
    """Writes a value into a tensor of the call."""
    *index, value = index_and_value
    return lambda call: getattr(call, field).__setitem__(tuple(index), value)


CASES = (
    Bad("id_high", "ids", put("layout", 256, 3), ("grouped_layout: expected groups from 0 to 2, or -1, got 3 in row 256",)),
    Bad("id_low", "ids", put("layout", 130, -2), ("grouped_layout", "got -2 in row 130")),
    Bad("id_changes", "ids", put("layout", 50, 1), ("one group, that of row 0, 2, or -1", "128 rows", "got 1 in row 50")),
    Bad("id_after_padding", "ids", put("layout", 200, 1), ("that of row 128, -1", "got 1 in row 200")),
    Bad("sfa_nan", "ids", put("sfa", 99, 1, math.nan), ("sfa (scales of a): expected finite factors", "got nan in row 99, K block 1")),
    Bad("sfa_infinite", "ids", put("sfa", 299, 0, math.inf), ("got inf in row 299, K block 0",)),
    Bad("sfb_negative", "ids", put("sfb", 1, 1, 0, -0.5), ("sfb (scales of b)", "got -0.5 in group 1, row or block of N 1, K block 0")),
    Bad("sfb_nn", "ids", put("sfb", 1, 1, 0, -0.5), ("got -0.5 in group 1, K block 0, row or block of N 1",), "nn"),
    Bad("end_past_m", "ends", put("layout", 2, 301), ("grouped_layout: expected ends up to 300 rows", "got 301 for group 2, which starts at row", "128")),
    Bad("end_negative", "ends", put("layout", 0, -1), ("got -1 for group 0",)),
    Bad("end_before_block", "ends", put("layout", 0, 290), ("got 128 for group 1", "starts at row 384")),
    Bad("sfa_of_ends", "ends", put("sfa", 69, 0, -1.0), ("got -1.0 in row 69, K block 0",)),
    Bad("count_high", "counts", put("layout", 1, 301), ("masked_m: expected from 0 to 300 rows, got 301 for group 1",)),
    Bad("count_negative", "counts", put("layout", 0, -7), ("masked_m", "got -7 for group 0")),
    Bad("sfa_of_counts", "counts", put("sfa", 2, 64, 1, math.nan), ("got nan in group 2, row 64, K block 1",)),
    Bad("sfb_of_counts", "counts", put("sfb", 0, 0, 1, math.inf), ("sfb (scales of b)", "got inf in group 0")),
    Bad("size_negative", "sizes", put("layout", 1, -128), ("grouped_layout: expected sizes of 0 or more", "got -128 for group 1")),
    Bad("size_odd", "sizes", put("layout", 0, 100), ("multiples of 128", "got 100 for group 0")),
    Bad("size_sum", "sizes", put("layout", 2, 384), ("add up to no more than K, 384", "got 512")),
    Bad("size_of_host", "sizes", lambda call: call.options.update(ks_cpu=[128, 128, 128]), ("the sizes of ks_cpu, 128, got 0 for group 1",)),
    Bad("sfa_of_sizes", "sizes", put("sfa", 3, 2, math.nan), ("sfa (scales of a)", "got nan in row of M 3, K block 2")),
)  # fmt: skip
GOOD = tuple((kind, letters) for kind, letters in (("ids", "nt"), ("ids", "nn"), ("ends", "nt"), ("counts", "nt"), ("sizes", "nt")))
