"""1D1D under several pinned configs, dense and of groups of rows, its factors per row in every form: D has the same bits, and TMA loads the
factors where they lie in units of 16 bytes. Run with the emulator as the driver; prints how many dense configs did."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import deep_gemm
from deep_gemm import _C
from deep_gemm.testing import assert_bitwise_equal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fp8_configs import PER_ROW_CONFIGS  # noqa: E402
from grouped_cases import PER_ROW, GroupedCase, contiguous, make_grouped, masked, psum, with_sfa_form  # noqa: E402
from grouped_scenarios import last_launch  # noqa: E402

GROUPED_CASES = (
    masked((128, 7, 65), 128, 200, 512, recipe=PER_ROW, expected_m=0),
    contiguous(3, ((2, 250), (0, 1), (1, 300)), 200, 256, recipe=PER_ROW),
    psum((250, 1, 300), 200, 256, recipe=PER_ROW, m=1000, expected_m=0),
)


def mn_major(factors: torch.Tensor, pitch: int, offset: int) -> torch.Tensor:
    """The same factors [rows, blocks], `pitch` elements from one K block to the next, the first `offset` elements into a buffer."""
    rows, blocks = factors.shape
    buffer = torch.full((offset + (blocks - 1) * pitch + rows,), float("nan"))
    view = buffer.as_strided((rows, blocks), (1, pitch), offset)
    view.copy_(factors)
    return view


def forms(factors: torch.Tensor) -> dict:
    """name -> factors; of them only "units" can be loaded by TMA."""
    rows = factors.shape[0]
    pitch = -(-rows // 4) * 4
    return {
        "row-major": factors,
        "units": mn_major(factors, pitch, 0),
        "start inside of a unit": mn_major(factors, pitch, 1),
        "blocks inside of units": mn_major(factors, pitch + 1, 0),
    }


def factor_bytes(config: dict, m: int, n: int, k: int) -> int:
    """What TMA loads of factors under a config: in each tile those of its rows and columns that exist, of rows if registers hold those
    of columns."""
    if config["k_blocks"] != 1 or m % 4 != 0 or n % 4 != 0:
        return 0
    tile_m, tile_n = config["block_m"], config["block_n"]
    holds = tile_m > 64 * config["num_math_warpgroups"] and config["num_accumulators"] == 1
    tiles_m, tiles_n = (-(-extent // (tile * cluster)) * cluster for extent, tile, cluster in
                        ((m, tile_m, config["cluster_m"]), (n, tile_n, config["cluster_n"])))  # fmt: skip
    return -(-k // 128) * 4 * ((m * tiles_n if holds else 0) + n * tiles_m)


def check(config: dict, m: int, n: int, k: int) -> bool:
    """Whether TMA loaded the factors."""
    torch.manual_seed(1)
    (a, sfa), (b, sfb) = (deep_gemm.per_token_cast_to_fp8(torch.randn(rows, k), use_ue8m0=False) for rows in (m, n))
    _C.pin_fp8_gemm_config(m, n, k, 0, config=config, recipe=PER_ROW, d_dtype=config["d_dtype"])
    found, loaded = {}, {}
    sfa_forms, sfb_forms = forms(sfa), forms(sfb)
    pairs = {name: (name, name) for name in sfa_forms} | {"SFA alone": ("units", "row-major"), "SFB alone": ("row-major", "units")}
    for name, (of_a, of_b) in pairs.items():
        d = torch.full((m, -(-n // 4) * 4), float("nan"))[:, :n]
        deep_gemm.fp8_gemm_nt((a, sfa_forms[of_a]), (b, sfb_forms[of_b]), d, recipe=PER_ROW)
        found[name], loaded[name] = d, last_launch()["bulk_load_bytes"]
        assert_bitwise_equal(d, found["row-major"], f"{name}, {m}x{n}x{k}, {config}")
    by_tma = factor_bytes(config, m, n, k)
    for name, count in loaded.items():
        assert count - loaded["row-major"] == (by_tma if name == "units" else 0), f"{name}, {m}x{n}x{k}, {config}: {loaded}, {by_tma}"
    return by_tma > 0


def check_groups(case: GroupedCase) -> None:
    """The same where each group has factors of columns of its own."""
    problem = make_grouped(case)
    m, row_major = problem.a.shape[1], problem.sfb
    shape = {"recipe": PER_ROW, "grouping": case.kind, "num_groups": case.groups, "expected_m": 0, "alignment": case.alignment}
    choice = _C.explain_fp8_gemm(m, case.n, case.k, **shape)
    config = next(p["config"] for p in (choice["best"], *choice["runners_up"]) if p["config"]["k_blocks"] == 1)
    _C.pin_fp8_gemm_config(m, case.n, case.k, 0, config=config, **shape)
    groups, n, blocks = row_major.shape
    apart = torch.empty_strided((groups, n, blocks), (n * blocks + 1, 1, n)).copy_(row_major)
    first, loaded = None, {}
    for name, form in {"row-major": row_major, "units": with_sfa_form(row_major, "aligned"), "groups inside of units": apart}.items():
        problem.sfb = form
        problem.poison()
        problem.run()
        problem.check(exact=False)
        loaded[name] = last_launch()["bulk_load_bytes"]
        first = problem.d.clone() if first is None else first
        for matrix, rows, _ in problem.selections():
            assert_bitwise_equal(problem.d[matrix, rows], first[matrix, rows], f"{case}: {name}")
    assert loaded["units"] > loaded["row-major"] == loaded["groups inside of units"], f"{case}: {loaded}"


if __name__ == "__main__":
    by_tma = sum(check(config, 300, 200, 592) for config in PER_ROW_CONFIGS)
    assert by_tma == sum(config["k_blocks"] == 1 for config in PER_ROW_CONFIGS), by_tma
    assert not any(check(config, m, n, 272) for config in PER_ROW_CONFIGS for m, n in ((301, 200), (300, 202))), "units of rows that end inside"
    for case in GROUPED_CASES:
        check_groups(case)
    print(by_tma)
