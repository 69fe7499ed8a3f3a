"""Cases of the dense FP8 GEMM as data, their operands, and their FP64 references."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import deep_gemm

POISON = float("nan")


@dataclass(frozen=True)
class Case:
    """One call. `sfa` and `sfb`: stride forms of the factors. `c`: none, same or separate. `pitch`: extra elements in a
    row of A, B and D, which then are views of bigger buffers."""

    m: int
    n: int
    k: int
    recipe: tuple[int, int, int] = (1, 128, 128)
    out: torch.dtype = torch.bfloat16
    c: str = "none"
    sfa: str = "aligned"
    sfb: str = "row"
    layout: str = "nt"
    pitch: int = 0

    def __str__(self) -> str:
        scaling = "1d2d" if self.recipe[1] == 128 else "1d1d"
        parts = [f"{self.m}x{self.n}x{self.k}", scaling, str(self.out)[6:], f"c={self.c}", self.sfa, self.sfb, self.layout]
        return "-".join(parts + ([f"pitch{self.pitch}"] if self.pitch else []))


@dataclass
class Problem:
    """Operands as `nt` takes them, the call's output inside a poisoned buffer, and what went in."""

    case: Case
    x: torch.Tensor
    y: torch.Tensor
    a: tuple[torch.Tensor, torch.Tensor]
    b: tuple[torch.Tensor, torch.Tensor]
    c: torch.Tensor | None
    d: torch.Tensor
    buffer: torch.Tensor

    def run(self, **options) -> torch.Tensor:
        """Calls the public function of the case's layout; returns D."""
        a, b = self.a, self.b
        if self.case.layout[0] == "t":
            a = (a[0].t(), a[1].t())
        if self.case.layout[1] == "n":
            b = (b[0].t(), b[1].t())
        function = getattr(deep_gemm, f"fp8_gemm_{self.case.layout}")
        c = self.d if self.case.c == "same" else self.c
        assert function(a, b, self.d, c=c, recipe=self.case.recipe, **options) is None
        return self.d

    def reference(self) -> torch.Tensor:
        """FP64 of the quantised operands, C added."""
        product = dequantised(self.a, 1) @ dequantised(self.b, self.case.recipe[1]).t()
        return product if self.c is None else product + self.c.double()

    def unquantised(self) -> torch.Tensor:
        """FP64 of the operands before quantisation, C added."""
        product = self.x.double() @ self.y.double().t()
        return product if self.c is None else product + self.c.double()

    def outside(self) -> torch.Tensor:
        """Which elements of the buffer are not D's."""
        mask = torch.ones_like(self.buffer, dtype=torch.bool)
        mask[1:-1, : self.case.n] = False
        return mask


def dequantised(pair: tuple[torch.Tensor, torch.Tensor], rows: int) -> torch.Tensor:
    """FP64 values of an operand `[mn, k]` whose factors cover `rows` x 128 elements each."""
    data, factors = pair
    spread = factors.double().repeat_interleave(rows, 0)[: data.shape[0]]
    return data.double() * spread.repeat_interleave(128, 1)[:, : data.shape[1]]


def with_sf_form(factors: torch.Tensor, form: str) -> torch.Tensor:
    """The same factors `[mn, s]` in another stride form. `aligned`: pitch rounded up to 4, storage ending at the last used
    element; `mn`: pitch mn; `row`: row-major; `transposed`: as `mn`."""
    mn, s = factors.shape
    if form == "row":
        return factors.contiguous()
    pitch = (mn + 3) // 4 * 4 if form == "aligned" else mn
    out = torch.empty_strided((mn, s), (1, pitch), dtype=factors.dtype, device=factors.device)
    return out.copy_(factors)


def with_pitch(data: torch.Tensor, extra: int) -> torch.Tensor:
    """The same matrix with `extra` elements between its rows, of a value that must not be read as data."""
    if extra == 0:
        return data.contiguous()
    rows, columns = data.shape
    buffer = torch.full((rows, columns + extra), POISON, device=data.device).to(data.dtype)
    buffer[:, :columns].copy_(data)
    return buffer[:, :columns]


def make_problem(case: Case, device: str, seed: int = 0) -> Problem:
    """Normal noise, quantised per token and per block (or per token on both sides), around a poisoned output."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(case.m, case.k, generator=generator).to(torch.bfloat16).to(device)
    y = torch.randn(case.n, case.k, generator=generator).to(torch.bfloat16).to(device)
    cast_b = deep_gemm.per_block_cast_to_fp8 if case.recipe[1] == 128 else deep_gemm.per_token_cast_to_fp8
    a, b = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False), cast_b(y, use_ue8m0=False)
    a = (with_pitch(a[0], case.pitch), with_sf_form(a[1], case.sfa))
    b = (with_pitch(b[0], case.pitch), with_sf_form(b[1], case.sfb))
    width = (case.n + case.pitch + 15) // 8 * 8  # rows of 16-byte multiples, some of them not D's
    buffer = torch.full((case.m + 2, width), POISON, dtype=case.out, device=device)
    d = buffer[1:-1, : case.n]
    c = None
    if case.c != "none":
        c = (torch.randn(case.m, case.n, generator=generator) * case.k**0.5).to(case.out).to(device)
        if case.c == "same":
            d.copy_(c)
    return Problem(case, x, y, a, b, c, d, buffer)


PER_ROW = (1, 1, 128)
BF16, FP32 = torch.bfloat16, torch.float32

SMALL = [
    Case(1, 576, 512),
    Case(7, 200, 256, sfa="row"),
    Case(33, 576, 1024, sfa="mn"),
    Case(64, 128, 128),
    Case(65, 136, 144, sfa="row", sfb="transposed"),
    Case(128, 24, 384),
    Case(129, 264, 1040),
    Case(33, 192, 1000, pitch=24),
    Case(70, 572, 272, pitch=16, sfa="mn"),
    Case(96, 320, 512, c="separate"),
    Case(96, 320, 512, c="same"),
    Case(50, 320, 512, out=FP32),
    Case(50, 320, 512, out=FP32, c="separate"),
    Case(50, 320, 512, out=FP32, c="same", sfa="row"),
    Case(77, 200, 640, PER_ROW),
    Case(77, 200, 640, PER_ROW, sfa="row", sfb="row", out=FP32),
    Case(77, 200, 640, PER_ROW, sfa="mn", sfb="mn", out=FP32, c="same"),
    Case(130, 264, 400, PER_ROW, sfb="aligned", c="separate"),
    Case(70, 571, 272, c="same"),
    Case(130, 259, 272, out=FP32, c="same"),
    Case(130, 262, 400, PER_ROW, out=FP32, c="same"),
    Case(3, 5, 144),
    Case(40, 256, 384, layout="nn"),
    Case(40, 256, 384, layout="tn"),
    Case(40, 256, 384, layout="tt", sfb="transposed"),
]
LARGE = [
    Case(1, 2112, 7168),
    Case(64, 7168, 2048),
    Case(128, 4096, 7168),
    Case(500, 576, 7168, sfa="row"),
    Case(500, 2112, 7168, out=FP32),
    Case(4096, 2112, 7168),
    Case(4096, 576, 7168 + 64, sfa="mn"),
    Case(4095, 4096, 512, c="same"),
    Case(4096, 24576, 1536),
    Case(2000, 2112, 7168, PER_ROW, sfb="aligned"),
    Case(4096, 4096, 7168, PER_ROW, out=FP32, c="same", sfb="aligned"),
]
