"""Calls of bf16_gemm_* that must be refused, and the words their messages must have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Tuple

import torch

M, N, K = 16, 24, 32
BF16 = torch.bfloat16


@dataclass
class Call:
    """A good call, for a case to spoil."""

    layout: str = "nt"
    a: torch.Tensor = field(default_factory=lambda: torch.ones(M, K, dtype=BF16))
    b: torch.Tensor = field(default_factory=lambda: torch.ones(N, K, dtype=BF16))
    d: torch.Tensor = field(default_factory=lambda: torch.full((M, N), 7.0, dtype=BF16))
    c: object = None
    compiled_dims: object = "nk"


@dataclass(frozen=True)
class BadCall:
    """How to spoil a call, and what the refusal says."""

    name: str
    spoil: Callable[[Call], object]
    words: Tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def change(**values) -> Callable[[Call], object]:
    """Replaces arguments of the call."""
    return lambda call: [setattr(call, name, value) for name, value in values.items()]


BUFFER = torch.full((4096,), 7.0, dtype=BF16)
BAD_CALLS = (
    BadCall("a_f32", change(a=torch.ones(M, K)), ("a: expected dtype", "bfloat16", "float32")),
    BadCall("b_f16", change(b=torch.ones(N, K, dtype=torch.float16)), ("b: expected dtype", "float16")),
    BadCall("d_f16", change(d=torch.full((M, N), 7.0, dtype=torch.float16)), ("d: expected dtype", "bfloat16 or", "float16")),
    BadCall("a_1d", change(a=torch.ones(K, dtype=BF16)), ("a: expected 2 dimensions [M, K]",)),
    BadCall("b_3d", change(b=torch.ones(1, N, K, dtype=BF16)), ("b: expected 2 dimensions [N, K]",)),
    BadCall("b_k", change(b=torch.ones(N, K + 8, dtype=BF16)), ("b: expected", "K", "layout letters")),
    BadCall("layout", change(layout="nn"), ("b: expected", "layout letters")),
    BadCall("d_m", change(d=torch.full((M + 1, N), 7.0, dtype=BF16)), ("d: expected", "M comes from a")),
    BadCall("no_unit_stride", change(a=torch.ones(M, 2 * K, 2, dtype=BF16)[:, ::2, 0]), ("a: expected unit stride along K or along M",)),
    BadCall("odd_rows", change(a=torch.ones(M, K + 1, dtype=BF16)[:, :K]), ("a: expected", "16", "66")),
    BadCall("odd_columns", change(b=torch.ones(K, N + 2, dtype=BF16)[:, :N].t()), ("b: expected", "16", "52")),
    BadCall("overlapping_rows", change(a=torch.ones(8 * M + K, dtype=BF16).as_strided((M, K), (8, 1))), ("a: expected a row stride of at least 32",)),
    BadCall("a_base", change(a=torch.ones(M * K + 8, dtype=BF16)[1 : M * K + 1].view(M, K)), ("a: expected", "16")),
    BadCall("d_transposed", change(d=torch.full((N, M), 7.0, dtype=BF16).t()), ("d: expected", "N")),
    BadCall("d_is_a", lambda call: change(a=BUFFER[: M * K].view(M, K), d=BUFFER[: M * N].view(M, N))(call), ("d: expected memory of its own", "a")),
    BadCall("c_dtype", change(c=torch.ones(M, N)), ("c: expected dtype", "float32")),
    BadCall("c_shape", change(c=torch.ones(1, N, dtype=BF16)), ("c: expected",)),
    BadCall("c_overlaps", lambda call: change(d=BUFFER[: M * N].view(M, N), c=BUFFER[N : N + M * N].view(M, N))(call), ("c: expected d itself", "clone c")),
    BadCall("c_number", change(c=1.0), ("c must be a tensor",)),
    BadCall("a_pair", lambda call: change(a=(call.a, call.a))(call), ("a must be a tensor",)),
    BadCall("dims_letter", change(compiled_dims="x"), ("compiled_dims",)),
    BadCall("dims_none", change(compiled_dims=None), ("compiled_dims",)),
    BadCall("device", change(b=torch.ones(N, K, dtype=BF16, device="meta")), ("b",)),
)  # fmt: skip
