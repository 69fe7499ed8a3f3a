"""A few small GEMMs of every kind on the GPU, checked: what a memory checker or race checker is run over."""

from __future__ import annotations

import contextlib
from typing import Iterator, Optional

import torch

import deep_gemm
from deep_gemm import _C
from deep_gemm.testing import calc_diff

DEVICE = "cuda"  # tests without a GPU set it to "cpu": then the contract is checked, not a kernel
DENSE = ((1, 136, 256), (65, 264, 400), (130, 576, 1024), (300, 392, 272))


def quantised(rows: int, k: int, blocks: bool) -> tuple:
    """Normal noise and its E4M3 form, one factor a row or one a 128x128 block."""
    x = torch.randn(rows, k, device=DEVICE)
    cast = deep_gemm.per_block_cast_to_fp8 if blocks else deep_gemm.per_token_cast_to_fp8
    return x, cast(x, use_ue8m0=False)


def quantised_groups(x: torch.Tensor, blocks: bool) -> tuple:
    """[G, rows, K] as E4M3 and factors, each group by itself."""
    cast = deep_gemm.per_block_cast_to_fp8 if blocks else deep_gemm.per_token_cast_to_fp8
    return tuple(torch.stack(part) for part in zip(*(cast(group, use_ue8m0=False) for group in x)))


def in_units(quantised_operand: tuple) -> tuple:
    """The same with its factors MN-major, as TMA can load them."""
    data, factors = quantised_operand
    return data, deep_gemm.get_mn_major_tma_aligned_tensor(factors)


def dense(m: int, n: int, k: int, out: torch.dtype = torch.bfloat16, per_row: bool = False, with_c: bool = False, units: bool = False) -> None:
    """One dense GEMM against FP64."""
    (x, a), (y, b) = quantised(m, k, False), quantised(n, k, not per_row)
    if units:
        a, b = in_units(a), in_units(b)
    d = torch.full((m, n), float("nan"), device=DEVICE, dtype=out)
    c = torch.randn(m, n, device=DEVICE).to(out) if with_c else None
    deep_gemm.fp8_gemm_nt(a, b, d, c=c, recipe=(1, 1, 128) if per_row else None)
    exact = x.double() @ y.double().T + (c.double() if with_c else 0)
    assert calc_diff(d, exact) < 1e-3, (m, n, k)


def dense_in_tiles(
    block_m: int, block_n: int, accumulators: int, per_row: bool = False, cluster_n: int = 1, units: bool = False
) -> None:
    """Three rows of tiles of a height and width that no problem so small is planned in."""
    m, n, k = 300, 392, 656
    out, word = (torch.float32, "f32") if per_row else (torch.bfloat16, "bf16")
    options = {"recipe": (1, 1, 128) if per_row else (1, 128, 128), "d_dtype": word}
    wanted = {"block_m": block_m, "block_n": block_n, "num_accumulators": accumulators, "n_parts": 1, "k_blocks": 1, "cluster_m": 1, "cluster_n": cluster_n}
    choice = _C.explain_fp8_gemm(4096, n, k, **options)
    plans = [choice["best"], *choice["runners_up"]]
    config = next(p["config"] for p in plans if all(p["config"][name] == value for name, value in wanted.items()))
    if DEVICE == "cuda":
        _C.pin_fp8_gemm_config(m, n, k, torch.cuda.current_device(), config=config, **options)
    dense(m, n, k, out, per_row=per_row, units=units)


def contiguous(blocks: int, n: int, k: int) -> None:
    """Three groups in runs of unlike lengths, in tiles taller than a block of the alignment, the last block ragged."""
    alignment = deep_gemm.get_mk_alignment_for_contiguous_layout()
    m = blocks * alignment - 5
    layout = (torch.arange(m, device=DEVICE) // alignment // 3 % 3).to(torch.int32)
    options = {"grouping": "contiguous", "num_groups": 3, "alignment": alignment, "d_dtype": "bf16"}
    choice = _C.explain_fp8_gemm(m, n, k, **options)
    config = next(p["config"] for p in (choice["best"], *choice["runners_up"]) if p["config"]["block_m"] == 192)
    if DEVICE == "cuda":
        _C.pin_fp8_gemm_config(m, n, k, torch.cuda.current_device(), config=config, **options)
    x, y = torch.randn(m, k, device=DEVICE), torch.randn(3, n, k, device=DEVICE)
    b = quantised_groups(y, True)
    d = torch.full((m, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False), b, d, layout)
    for g in range(3):
        rows = layout == g
        assert calc_diff(d[rows], x[rows].double() @ y[g].double().T) < 1e-3, g


def masked(groups: int, m: int, n: int, k: int) -> None:
    """One masked grouped GEMM against FP64, counts from none to all."""
    x, y = torch.randn(groups, m, k, device=DEVICE), torch.randn(groups, n, k, device=DEVICE)
    a, b = quantised_groups(x, False), quantised_groups(y, True)
    d = torch.full((groups, m, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    counts = torch.linspace(0, m, groups, device=DEVICE).to(torch.int32)
    deep_gemm.m_grouped_fp8_gemm_nt_masked(a, b, d, counts, m)
    for g, count in enumerate(counts.tolist()):
        assert bool(d[g, count:].isnan().all()), f"group {g}: a row past {count} was written"
        assert calc_diff(d[g, :count], x[g, :count].double() @ y[g].double().T) < 1e-3, g


@contextlib.contextmanager
def in_tall_tiles(kind: str, extents: tuple, groups: int, cluster_n: int, like: Optional[tuple] = None, **options) -> Iterator[None]:
    """Problems of these (m, n, k) run in tiles of 256x128 meanwhile, many for each of four CTAs: as ones `like` them are planned."""
    options = {"grouping": kind, "num_groups": groups, **options}
    wanted = {"block_m": 256, "block_n": 128, "num_accumulators": 1, "cluster_m": 1, "cluster_n": cluster_n}
    choice = _C.explain_fp8_gemm(*(like or extents), **options)
    plans = (choice["best"], *choice["runners_up"])
    config = next(p["config"] for p in plans if all(p["config"][name] == value for name, value in wanted.items()))
    deep_gemm.set_num_sms(4)  # ahead of the pin, which is for these
    try:
        if DEVICE == "cuda":
            _C.pin_fp8_gemm_config(*extents, torch.cuda.current_device(), config=config, **options)
        yield
    finally:
        deep_gemm.set_num_sms(0)


def masked_in_tall_tiles(cluster_n: int) -> None:
    """Groups of every number of waves, whole ones and others."""
    room, n, k = 320, 264, 656
    for groups in (6, 7):
        with in_tall_tiles("masked", (room, n, k), groups, cluster_n, expected_m=room):
            masked(groups, room, n, k)


def psum_in_tall_tiles(cluster_n: int) -> None:
    """Groups of every number of waves by their ends, against FP64."""
    counts, room, n, k = [0, 70, 130, 192, 200, 256, 300], 384, 264, 656
    alignment = deep_gemm.get_mk_alignment_for_contiguous_layout()
    first = [sum(-(-count // alignment) * alignment for count in counts[:g]) for g in range(len(counts))]
    spans = [slice(start, start + count) for start, count in zip(first, counts)]
    m = room * len(counts)
    x, y = torch.zeros(m, k, device=DEVICE), torch.randn(len(counts), n, k, device=DEVICE)
    for span in spans:
        x[span] = torch.randn(span.stop - span.start, k, device=DEVICE)
    d = torch.full((m, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    ends = torch.tensor([span.stop for span in spans], dtype=torch.int32, device=DEVICE)
    a, b = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False), quantised_groups(y, True)
    with in_tall_tiles("psum", (m, n, k), len(counts), cluster_n, alignment=alignment, expected_m=0):
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, b, d, ends, use_psum_layout=True)
    for g, span in enumerate(spans):
        assert counts[g] == 0 or calc_diff(d[span], x[span].double() @ y[g].double().T) < 1e-3, g


def k_grouped(ks: list, m: int, n: int, dtype: torch.dtype) -> None:
    """One GEMM grouped along K against FP64, added to D; the sizes come from the device alone."""
    x, y = torch.randn(sum(ks), m, device=DEVICE), torch.randn(sum(ks), n, device=DEVICE)
    d, sizes = torch.randn(len(ks), m, n, device=DEVICE), torch.tensor(ks, dtype=torch.int32, device=DEVICE)
    exact = [c.double() + p.double().T @ q.double() for c, p, q in zip(d, x.split(ks), y.split(ks))]
    if dtype == torch.bfloat16:
        deep_gemm.k_grouped_bf16_gemm_tn_contiguous(x.to(dtype), y.to(dtype), d, None, sizes, d)
    else:
        a, b = (matrices(operand, ks) for operand in (x, y))
        deep_gemm.k_grouped_fp8_gemm_nt_contiguous(a, b, d, None, sizes, d)
    for g, want in enumerate(exact):
        assert calc_diff(d[g], want) < 1e-3, g


def k_grouped_in_tall_tiles(ks: list, cluster_n: int) -> None:
    """The same in tiles that hold factors of columns, and TMA loads both kinds."""
    m, n, groups = 520, 264, len(ks)
    options = {"recipe": (1, 1, 128), "d_dtype": "f32", "has_c": True, "c_is_d": True}
    extents = (m, n, _C.k_grouped_planning_k(sum(ks), groups))
    with in_tall_tiles("k_grouped", extents, groups, cluster_n, like=(7168, 2048, 2048), **options):
        k_grouped(ks, m, n, torch.float8_e4m3fn)


def matrices(x: torch.Tensor, ks: list) -> tuple:
    """[K, MN] as the groups' K-major matrices, one after another, and their factors side by side."""
    parts = [deep_gemm.per_token_cast_to_fp8(part.T.contiguous(), use_ue8m0=False) for part in x.split(ks) if part.shape[0]]
    data = torch.cat([data.view(torch.uint8).flatten() for data, _ in parts]).view(torch.float8_e4m3fn)
    return data, torch.cat([factors.T for _, factors in parts]).contiguous().T


def padded(rows: int, columns: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Normal noise whose rows start at multiples of 16 bytes, however many columns they have."""
    unit = 16 // dtype.itemsize
    return torch.randn(rows, -(-columns // unit) * unit, device=DEVICE).to(dtype)[:, :columns]


def dense_bf16(layout: str, m: int, n: int, k: int, out: torch.dtype, c: str = "none") -> None:
    """One dense BF16 GEMM against FP64; `c`: 'none', 'apart', or 'same' where it is D."""
    a = padded(k, m) if layout[0] == "t" else padded(m, k)
    b = padded(k, n) if layout[1] == "n" else padded(n, k)
    x, y = (a.t() if layout[0] == "t" else a), (b if layout[1] == "n" else b.t())
    added = None if c == "none" else padded(m, n, out)
    want = x.double() @ y.double() + (0 if added is None else added.double())
    d = added if c == "same" else padded(m, n, out).fill_(float("nan"))
    getattr(deep_gemm, f"bf16_gemm_{layout}")(a, b, d, c=added)
    assert calc_diff(d, want) < 1e-5, (layout, m, n, k)


def grouped_bf16(groups: int, n: int, k: int) -> None:
    """BF16 groups in every layout against FP64: ids, ends and counts, B of both majors."""
    counts = [1, 70, 128, 9][:groups]  # none empty: such a one has no block among ends
    x, y = torch.randn(groups, 128, k, device=DEVICE).bfloat16(), torch.randn(groups, n, k, device=DEVICE).bfloat16()
    ids = torch.full((groups, 128), -1, dtype=torch.int32, device=DEVICE)
    for g, count in enumerate(counts):
        ids[g, :count] = g
    exact = x.double() @ y.double().transpose(1, 2)
    wanted = (ids >= 0)[..., None]
    d = torch.full((groups, 128, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    ends = torch.tensor([128 * g + count for g, count in enumerate(counts)], dtype=torch.int32, device=DEVICE)
    a, flat = x.view(-1, k), d.view(-1, n)
    deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, y, flat, ids.flatten())
    assert calc_diff(d, exact * wanted) < 1e-5
    deep_gemm.m_grouped_bf16_gemm_nn_contiguous(a, y.transpose(1, 2).contiguous(), flat.zero_(), ends, use_psum_layout=True)
    assert calc_diff(d, exact * wanted) < 1e-5
    deep_gemm.m_grouped_bf16_gemm_nt_masked(x, y, d.zero_(), (ids >= 0).sum(1).int(), 60)
    assert calc_diff(d, exact * wanted) < 1e-5


def main() -> None:
    """Runs them all."""
    torch.manual_seed(0)
    for shape in DENSE:
        dense(*shape)
    dense(129, 264, 400, torch.float32, per_row=True, with_c=True)
    dense(64, 128, 256, per_row=True)
    dense(64, 128, 4096, per_row=True)  # round after round of the ring
    for block_m, block_n, accumulators in ((128, 128, 2), (192, 128, 1), (192, 96, 1), (256, 128, 1)):
        dense_in_tiles(block_m, block_n, accumulators)
    for cluster_n in (1, 2):
        for units in (False, True):
            dense_in_tiles(256, 128, 1, per_row=True, cluster_n=cluster_n, units=units)
    contiguous(35, 136, 256)
    masked(4, 96, 136, 256)
    for cluster_n in (1, 2):
        masked_in_tall_tiles(cluster_n)
        psum_in_tall_tiles(cluster_n)
    for dtype in (torch.float8_e4m3fn, torch.bfloat16):
        k_grouped([256, 0, 128, 384] * 4, 136, 200, dtype)
        k_grouped([256, 0, 128, 384], 136, 200, dtype)  # by falling K
    for cluster_n in (1, 2):
        k_grouped_in_tall_tiles([640, 128, 0, 1024], cluster_n)
    for layout in ("nt", "nn", "tn", "tt"):
        dense_bf16(layout, 136, 264, 200, torch.bfloat16)
        dense_bf16(layout, 72, 136, 64, torch.float32, "apart")
        dense_bf16(layout, 200, 264, 200, torch.float32, "same")
    deep_gemm.set_num_sms(2)  # tile after tile: C comes into boxes that D has just left
    for n in (264, 267):
        for layout in ("nt", "tn"):
            for c in ("apart", "same"):
                dense_bf16(layout, 300, n, 200, torch.bfloat16, c)
    deep_gemm.set_num_sms(0)
    grouped_bf16(4, 136, 200)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print("small problems: all right")


if __name__ == "__main__":
    main()
