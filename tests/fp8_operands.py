"""Operands of FP8 GEMMs for host tests, and their product in FP64 with torch alone."""

import math

import torch

FP8 = torch.float8_e4m3fn
GRAN_K = 128


def ceil_div(x: int, y: int) -> int:
    return (x + y - 1) // y


def storage_bytes(t: torch.Tensor) -> torch.Tensor:
    """Every byte of the storage behind `t`, gaps of views included, as a copy."""
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage()).clone()


def random_fp8(rows: int, columns: int, seed: int) -> torch.Tensor:
    """FP8 [rows, columns], rows a multiple of 16 bytes apart; the gaps hold NaN, which no result may show."""
    generator = torch.Generator().manual_seed(seed)
    buffer = torch.full((rows, ceil_div(columns, 16) * 16), math.nan).to(FP8)
    view = buffer[:, :columns]
    view.copy_(torch.randn(rows, columns, generator=generator).to(FP8))
    return view


def random_scales(rows: int, columns: int, seed: int) -> torch.Tensor:
    """FP32 [rows, columns] in 2^-4 ... 2^4, full mantissas."""
    generator = torch.Generator().manual_seed(seed)
    return torch.exp2(8 * torch.rand(rows, columns, generator=generator) - 4)


def aligned_rows(rows: int, columns: int, dtype: torch.dtype, fill: float = math.nan) -> torch.Tensor:
    """[rows, columns] of `fill` whose rows are multiples of 16 bytes apart."""
    per_unit = 16 // dtype.itemsize
    return torch.full((rows, ceil_div(columns, per_unit) * per_unit), fill, dtype=dtype)[:, :columns]


def nearest(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """FP64 -> `dtype`, rounded once to nearest even. A cast goes by way of FP32, so its neighbours are tried too."""
    if dtype == torch.float32:
        return x.float()
    near = x.to(dtype)
    codes = near.view(torch.int16)
    candidates = torch.stack([(codes + step).view(dtype).double() for step in (-1, 0, 1)])
    distances = (candidates - x).abs().nan_to_num(math.inf)
    odd = torch.stack([(codes + step) & 1 for step in (-1, 0, 1)])
    closest = distances == distances.amin(0)
    choice = (closest.int() * (2 - odd)).argmax(0)
    return torch.where(near.isfinite(), candidates.gather(0, choice[None])[0].to(dtype), near)


def fp64_gemm(a, sfa, b, sfb, dtype, c=None):
    """C + (a * sfa) @ (b * sfb).T for a [M, K], b [N, K], sfa [M, ceil(K/128)], sfb [N or N/128, ceil(K/128)].

    Sums over 128 of K are exact in FP64 in any order, so the result is a definition, not an approximation.
    """
    (m, k), n = a.shape, b.shape[0]
    sfb_rows = sfb if sfb.shape[0] == n and n != 1 else sfb.repeat_interleave(GRAN_K, 0)[:n]
    total = torch.zeros(m, n, dtype=torch.float64, device=a.device)
    for block in range(ceil_div(k, GRAN_K)):
        span = slice(block * GRAN_K, min(k, (block + 1) * GRAN_K))
        sums = a[:, span].double() @ b[:, span].double().T
        total += sfa[:, block, None].double() * sfb_rows[None, :, block].double() * sums
    return nearest(total if c is None else c.double() + total, dtype)
