"""The grouped GEMMs on CPU tensors through their real kernels, in the emulator. Run as a program with names of scenarios:
the outcome of each is printed as JSON. DG_EMULATE and DG_DRIVER_LIBRARY are in the environment."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import json
import math
import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402

import deep_gemm  # noqa: E402
from deep_gemm import _C  # noqa: E402
from grouped_cases import CASES, PER_ROW, WIDE_CASES, contiguous, layout_of, make_grouped, masked, psum, psum_rows  # noqa: E402

BITS = [
    masked((0, 1, 63, 64, 65, 130), 130, 136, 400),
    masked((100, 7), 128, 264, 272, recipe=PER_ROW),
    psum((70, 0, 129, -5, 1), 264, 272, m=700),
]
RAGGED = contiguous(4, ((0, 70), (2, 128), (-1, 128), (1, 30), (1, 129), (3, 1)), 264, 272)


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.view(torch.int16).clone()


def cases(number: int, count: int) -> None:
    """Each `count`-th case from `number` on."""
    for case in CASES[number::count]:
        problem = make_grouped(case)
        problem.run()
        problem.check(exact=False)


def wide(index: int) -> None:
    problem = make_grouped(WIDE_CASES[index])
    problem.run()
    problem.check(exact=False)


def expected_m_changes_no_bit() -> None:
    for case in BITS:
        problem = make_grouped(case)
        first = bits(problem.run(expected_m=64))
        for hint in (0, 1, 100, 10**6):
            problem.d.view(torch.int16).fill_(0)
            want = torch.where(bits(make_grouped(case).d) == first, 0, first)  # the rows that are written
            assert torch.equal(bits(problem.run(expected_m=hint)), want), f"{case}, expected_m={hint}"


def sms_change_no_bit() -> None:
    for case in (*BITS, RAGGED):
        first = bits(make_grouped(case).run())
        for count in (1, 2, 3, 5, 131):
            deep_gemm.set_num_sms(count)
            assert torch.equal(bits(make_grouped(case).run()), first), f"{case}, {count} SMs"
        deep_gemm.set_num_sms(0)


def rows_equal_those_of_the_dense_gemm() -> None:
    for case in (RAGGED, BITS[2]):
        problem = make_grouped(case)
        problem.run()
        for _, rows, group in problem.selections():
            if group < 0:
                continue
            d = torch.empty(rows.numel(), case.n, dtype=torch.bfloat16)
            a = (problem.a[0][rows].contiguous(), problem.sfa[0][rows].contiguous())
            deep_gemm.fp8_gemm_nt(a, (problem.b[group], problem.sfb[group]), d)
            assert torch.equal(bits(problem.d[0, rows]), bits(d)), f"group {group}"


def layouts_that_lie_stay_inside() -> None:
    """Groups and counts that do not exist: D's buffer is left as whole as by rows without a group and by full groups."""
    problem, want = make_grouped(RAGGED), make_grouped(RAGGED)
    problem.layout[:128], want.layout[:128] = 4, -1
    problem.layout[128:256], want.layout[128:256] = 2**31 - 1, -1
    for each in (problem, want):
        each.run()
    # Rows of a group that does not exist have no product, hence zeros.
    assert torch.equal(bits(problem.d), bits(want.d))
    case = masked((130, 0, 64), 130, 136, 272)
    problem, want = make_grouped(case), make_grouped(case)
    problem.layout[:2] = torch.tensor([2**31 - 1, -5], dtype=torch.int32)
    assert torch.equal(bits(problem.run()), bits(want.run()))


def ends_that_lie_stay_inside() -> None:
    """Ends past M, below zero and before a start: as if they were cut to M, or the groups had no rows."""
    case = psum((70, 200, 129), 136, 272, m=520, nan_padding=False)
    far = 2**31 - 1
    lies = {(far, far, far): (520, 520, 520), (-1, -far - 1, 100): (0, 0, 100), (70, 128, far): (70, 128, 520)}
    lies |= {(500, 70, 20): (500, 500, 500), (0, far, 100): (0, 520, 520), (519, 640, 1000): (519, 519, 519)}
    for lie, truth in lies.items():
        problem, want = make_grouped(case), make_grouped(case)
        problem.layout.copy_(torch.tensor(lie))
        want.layout.copy_(torch.tensor(truth))
        assert torch.equal(bits(problem.run()), bits(want.run())), lie


def zero_padding_writes_no_wave_of_padding() -> None:
    """Without it, rows of whole waves behind a group's end are not touched; with it, they are zeros."""
    for zeros in (True, False):
        case = psum((1, 65), 136, 272, alignment=256, zero_padding=zeros)
        problem = make_grouped(case)
        before = bits(problem.d[0])
        d = bits(problem.run()[0])
        for _, end, following in psum_rows(case).spans.values():
            padding = slice(-(-end // 64) * 64, following)
            assert torch.equal(d[padding], torch.zeros_like(d[padding]) if zeros else before[padding])


def tall_tiles_stay_in_their_group() -> None:
    """Tiles taller than the alignment: rows of theirs behind a group's aligned end belong to the next, or to nobody."""
    for zeros, height in ((True, 128), (False, 128), (True, 192), (False, 192)):
        case = psum((64, 1, 130, 0, 63), 136, 272, alignment=64, m=500, zero_padding=zeros)
        shape = {"grouping": "psum", "num_groups": case.groups, "expected_m": case.expected_m, "alignment": case.alignment}
        choice = _C.explain_fp8_gemm(case.m, case.n, case.k, **shape)
        plans = [choice["best"], *choice["runners_up"]]
        config = next(plan["config"] for plan in plans if plan["config"]["block_m"] == height)
        _C.pin_fp8_gemm_config(case.m, case.n, case.k, 0, config=config, **shape)
        problem = make_grouped(case)
        problem.run()
        problem.check(exact=False)
        _C.forget_fp8_gemm_plans()


def contiguous_macs(case, config: dict) -> int:
    """What tiles of a config multiply: those of each run of blocks of one group, whole, K in whole stages."""
    unit = math.gcd(config["block_m"], case.alignment)  # of rows that are looked at
    runs = [len(list(run)) * unit for group, run in itertools.groupby(layout_of(case)[::unit].tolist()) if group >= 0]
    rows = sum(-(-run // config["block_m"]) for run in runs) * config["block_m"]
    width, depth = config["block_n"] * config["cluster_n"], 128 * config["k_blocks"]
    return rows * -(-case.n // width) * width * -(-case.k // depth) * depth


def tall_contiguous_tiles_start_with_groups() -> None:
    """Tiles whose height does not divide the alignment, and rows of nobody between groups: bits are those of low tiles."""
    aligned = {64: ((4, 128), (0, 64), (4, 1), (-1, 64), (2, 192)), 128: ((0, 70), (2, 128), (-1, 128), (1, 30), (1, 129), (3, 1)),
               192: ((2, 250), (-1, 192), (0, 1), (1, 300))}  # fmt: skip
    for alignment, recipe in ((64, (1, 128, 128)), (128, (1, 128, 128)), (192, (1, 128, 128)), (128, PER_ROW)):
        case = contiguous(5, aligned[alignment], 136, 272, alignment=alignment, recipe=recipe)
        shape = {"grouping": "contiguous", "num_groups": case.groups, "alignment": alignment, "recipe": recipe}
        m, first = make_grouped(case).layout.numel(), None
        choice = _C.explain_fp8_gemm(m, case.n, case.k, **shape)
        for height in (64, 128, 192, 256):
            plans = [p for p in (choice["best"], *choice["runners_up"]) if p["config"]["block_m"] == height]
            for cluster in (1, 2):
                config = next(p["config"] for p in plans if p["config"]["cluster_n"] == cluster and p["config"]["cluster_m"] == 1)
                for sms in (2,) if height < 192 else (0, 2):
                    problem = make_grouped(case)
                    with on_sms(sms):
                        _C.pin_fp8_gemm_config(m, case.n, case.k, 0, config=config, **shape)
                        problem.run()
                    assert last_launch()["mma_macs"] == contiguous_macs(case, config), (config, sms)  # the pin was run
                    problem.check(exact=False)
                    first = bits(problem.d) if first is None else first
                    assert torch.equal(bits(problem.d), first), (alignment, config, sms)
                _C.forget_fp8_gemm_plans()


@contextlib.contextmanager
def on_sms(count: int):
    """Kernels on so many SMs, 0: on all. A pin is for the count of its time."""
    deep_gemm.set_num_sms(count)
    try:
        yield
    finally:
        deep_gemm.set_num_sms(0)


def last_launch() -> dict:
    """What the emulator counted in the last kernel."""
    library = ctypes.CDLL(os.environ["DG_DRIVER_LIBRARY"])
    library.dg_emulator_statistics.restype = ctypes.c_char_p
    return json.loads(library.dg_emulator_statistics())


def tall_contiguous_tiles_of_groups_that_are_none() -> None:
    """No number of a group that does not exist ends the walk over blocks: the last rows, too, are written, as zeros."""
    case = contiguous(2, ((0, 128), (1, 64), (1, 64)), 128, 128, alignment=64)
    shape = {"grouping": "contiguous", "num_groups": case.groups, "alignment": 64}
    choice = _C.explain_fp8_gemm(256, case.n, case.k, **shape)
    for height in (64, 192, 256):
        config = next(p["config"] for p in (choice["best"], *choice["runners_up"]) if p["config"]["block_m"] == height and p["cluster"] == 1)
        _C.pin_fp8_gemm_config(256, case.n, case.k, 0, config=config, **shape)
        for lie, rows in ((-2, slice(128, 256)), (-5, slice(0, 256)), (2, slice(192, 256)), (-(2**31), slice(64, 192))):
            problem, want = make_grouped(case), make_grouped(case)
            problem.layout[rows], want.layout[rows] = lie, -1
            assert torch.equal(bits(problem.run()), bits(want.run())), (height, lie)
            assert not problem.d[rows].any(), (height, lie)
        _C.forget_fp8_gemm_plans()


def tall_contiguous_tiles_of_many_blocks() -> None:
    """More blocks than a warp has lanes, runs that fill some lanes' shares and begin or end inside others': no tile is missed or made twice."""
    runs = ((3, 1), (0, 30), (2, 2), (0, 1), (3, 7), (1, 11), (4, 1), (0, 4), (2, 16), (1, 3))  # group, blocks of 64 rows
    case = contiguous(5, tuple((group, blocks * 64) for group, blocks in runs), 128, 128, alignment=64)
    shape = {"grouping": "contiguous", "num_groups": case.groups, "alignment": 64}
    m = sum(blocks for _, blocks in runs) * 64
    choice = _C.explain_fp8_gemm(m, case.n, case.k, **shape)
    for height in (192, 256):
        plans = (choice["best"], *choice["runners_up"])
        config = next(p["config"] for p in plans if p["config"]["block_m"] == height and p["cluster"] == 1)
        _C.pin_fp8_gemm_config(m, case.n, case.k, 0, config=config, **shape)
        problem = make_grouped(case)
        problem.run()
        problem.check(exact=False)
        tiles = sum(-(-blocks * 64 // height) for _, blocks in runs)
        assert last_launch()["mma_macs"] == tiles * height * 128 * 128, height
        _C.forget_fp8_gemm_plans()


def check_work_of_waves(make, element_bytes: int, dropped=lambda count: 0) -> None:
    """`make(count)`: a problem of `count` rows in one tile of 256x128, K = 256, whose config is pinned. `dropped(count)`: products
    of a wave and a K block that nobody asked for."""
    for count in (1, 64, 65, 128, 150, 192, 200, 256):
        problem = make(count)
        problem.run()
        problem.check(exact=False)
        rows, work = -(-count // 64) * 64, last_launch()
        assert work["mma_macs"] == rows * 128 * 256 + dropped(count) * 64 * 128 * 128, (count, work)
        assert work["bulk_load_bytes"] == (rows + 128) * 256 * element_bytes, (count, work)


def waves_without_rows_cost_nothing() -> None:
    """Of a tile of 256 rows, those of a masked or psum group's rows are loaded and multiplied, in waves of 64."""
    problems = {
        "masked": lambda count: make_grouped(masked((count,), 256, 128, 256, expected_m=0)),
        "psum": lambda count: make_grouped(psum((count,), 128, 256, alignment=256, m=256, expected_m=0)),
    }
    for kind, make in problems.items():
        shape = {"grouping": kind, "num_groups": 1, "expected_m": 0, "alignment": 256}
        choice = _C.explain_fp8_gemm(256, 128, 256, **shape)
        tall = [plan["config"] for plan in (choice["best"], *choice["runners_up"]) if plan["config"]["block_m"] == 256 and plan["cluster"] == 1]
        assert {config["num_accumulators"] for config in tall} == {1, 2}
        for config in tall:
            _C.pin_fp8_gemm_config(256, 128, 256, 0, config=config, **shape)
            # With one product in flight both warpgroups start the next tile's first one under the store, be there such a tile or
            # not, and one of them without rows here has started this tile's in vain, too.
            starts_ahead = config["num_accumulators"] == 1
            check_work_of_waves(make, 1, lambda count: (2 + (count <= 64)) * starts_ahead)
        _C.forget_fp8_gemm_plans()


def plans_of_height(case, shape: dict, height: int) -> list:
    """Configs of tiles of a height for a case, clusters or not."""
    choice = _C.explain_fp8_gemm(case.m, case.n, case.k, recipe=case.recipe, **shape)
    return [plan["config"] for plan in (choice["best"], *choice["runners_up"]) if plan["config"]["block_m"] == height]


def tallest_tiles_write_the_bits_of_others() -> None:
    """256 rows, of which groups want any number of waves, with their ends inside, and columns past N."""
    counts = (0, 1, 64, 70, 128, 130, 150, 191, 192, 193, 256, 300, 450)
    for recipe, n in (((1, 128, 128), 200), ((1, 128, 128), 203), (PER_ROW, 328)):
        masked_case = masked(counts, 450, n, 400, recipe=recipe, expected_m=0)
        psum_case = psum(counts, n, 400, recipe=recipe, alignment=64, m=2500, zero_padding=False, expected_m=0)
        for case in (masked_case, psum_case, dataclasses.replace(psum_case, zero_padding=True)):
            shape = {"grouping": case.kind, "num_groups": case.groups, "expected_m": 0, "alignment": case.alignment}
            first = make_grouped(case)
            first.run()
            first.check(exact=False)
            configs = plans_of_height(case, shape, 256)
            assert len(configs) > 1
            for config in configs:
                problem = make_grouped(case)
                with on_sms(2):  # tile after tile in every CTA
                    _C.pin_fp8_gemm_config(case.m, n, 400, 0, config=config, recipe=recipe, **shape)
                    problem.run()
                problem.check(exact=False)
                for matrix, rows, _ in problem.selections():
                    assert torch.equal(bits(problem.d[matrix, rows]), bits(first.d[matrix, rows])), (case, config)
            _C.forget_fp8_gemm_plans()


def tall_tiles_are_left_to_the_fewest_clusters() -> None:
    """24 tiles on 13 clusters: 12 take two each, and the last one none. On 11, which would be too few to leave any out, all take some."""
    tiles, product = 24, 64 * 128 * 128  # of a wave and a K block
    for (height, cluster), kind in itertools.product(itertools.product((192, 256), (1, 2)), ("masked", "psum")):
        columns = 4 * cluster * 128 - 24  # times 6 groups of a tile each
        counts = (64, 192, 150, 70, 130, 1)
        case = masked(counts, 256, columns, 128, expected_m=0) if kind == "masked" else psum(counts, columns, 128, alignment=64, m=832, expected_m=0)
        shape = {"grouping": kind, "num_groups": case.groups, "expected_m": 0, "alignment": case.alignment}
        first = bits(make_grouped(case).run())
        configs = [config for config in plans_of_height(case, shape, height) if config["cluster_n"] == cluster and config["block_n"] == 128]
        config = next(config for config in configs if config["num_accumulators"] == 1)
        work = {}
        for slots in (11, 12, 13):
            problem = make_grouped(case)
            with on_sms(slots * cluster):
                _C.pin_fp8_gemm_config(case.m, case.n, case.k, 0, config=config, **shape)
                problem.run()
            problem.check(exact=False)
            assert torch.equal(bits(problem.d), first), (case, config, slots)
            work[slots] = last_launch()["mma_macs"]
        # 256 rows start the product of a next tile under the store, which is dropped at the end: two of them for each CTA that had tiles.
        of_cta = 2 * product if height == 256 else 0
        working = {slots: 12 if slots == 13 and kind == "masked" else slots for slots in work}
        assert len({macs - of_cta * cluster * working[slots] for slots, macs in work.items()}) == 1, (kind, height, cluster, work)
        assert tiles == 6 * -(-columns // (128 * cluster))
        _C.forget_fp8_gemm_plans()


def tallest_tiles_without_a_product() -> None:
    """Tiles of 256 rows of padding alone, first, between others and last, and problems without K, in CTAs that go from tile to tile."""
    gaps = psum((0, 250, 1, 0, 300, 64, 130), 264, 400, alignment=320, expected_m=0)
    no_k = (masked((130, 0, 192, 256, 70), 256, 264, 0, expected_m=0), psum((250, 0, 70, 130), 264, 0, alignment=320, expected_m=0))
    for case in (gaps, *no_k):
        shape = {"grouping": case.kind, "num_groups": case.groups, "expected_m": 0, "alignment": case.alignment}
        m = make_grouped(case).d.shape[1]
        choice = _C.explain_fp8_gemm(m, case.n, max(case.k, 1), **shape)
        configs = [plan["config"] for plan in (choice["best"], *choice["runners_up"]) if plan["config"]["block_m"] == 256]
        assert {1, 2} <= {config["cluster_n"] for config in configs} and {1} <= {config["num_accumulators"] for config in configs}
        for config in configs:
            for sms in (2, 4):
                problem = make_grouped(case)
                with on_sms(sms):
                    _C.pin_fp8_gemm_config(m, case.n, max(case.k, 1), 0, config=config, **shape)
                    problem.run()
                problem.check(exact=False)
        _C.forget_fp8_gemm_plans()


MANY_COUNTS = tuple(37 * i * i % 331 if i % 9 else 0 for i in range(70))
MANY_GROUPS = (
    masked(MANY_COUNTS, 350, 136, 128, expected_m=0),
    psum(MANY_COUNTS, 136, 128, alignment=64, m=15000, zero_padding=False, expected_m=0),
    psum(MANY_COUNTS[:40], 136, 128, alignment=320, expected_m=0),  # with tiles of padding alone
)


def many_groups_of_any_height() -> None:
    """More groups than a warp has lanes, whose order is that of their waves: no tile is missed or made twice."""
    for case in MANY_GROUPS:
        case = dataclasses.replace(case, m=make_grouped(case).d.shape[1])
        shape = {"grouping": case.kind, "num_groups": case.groups, "expected_m": 0, "alignment": case.alignment}
        lower = [plans_of_height(case, shape, height)[0] for height in (64, 192)]
        tallest = [config for config in plans_of_height(case, shape, 256) if config["num_accumulators"] == 1]
        assert {config["cluster_n"] for config in tallest} == {1, 2}
        for config in lower + tallest:
            problem = make_grouped(case)
            with on_sms(16):
                _C.pin_fp8_gemm_config(case.m, case.n, case.k, 0, config=config, **shape)
                problem.run()
            problem.check(exact=False)
        _C.forget_fp8_gemm_plans()


CASE_SHARDS = 4
SCENARIOS = {f"cases_{i}": lambda i=i: cases(i, CASE_SHARDS) for i in range(CASE_SHARDS)}
SCENARIOS.update({f"wide_{i}": lambda i=i: wide(i) for i in range(len(WIDE_CASES))})
for function in (
    expected_m_changes_no_bit, sms_change_no_bit, rows_equal_those_of_the_dense_gemm, layouts_that_lie_stay_inside,
    ends_that_lie_stay_inside, zero_padding_writes_no_wave_of_padding, tall_tiles_stay_in_their_group,
    tall_contiguous_tiles_start_with_groups, tall_contiguous_tiles_of_many_blocks, tall_contiguous_tiles_of_groups_that_are_none, waves_without_rows_cost_nothing, tallest_tiles_write_the_bits_of_others,
    many_groups_of_any_height, tall_tiles_are_left_to_the_fewest_clusters, tallest_tiles_without_a_product,
):  # fmt: skip
    SCENARIOS[function.__name__] = function


def main(names: list[str], scenarios: dict) -> None:
    outcomes = {}
    for name in names or scenarios:
        torch.manual_seed(0)  # the same operands whichever scenarios run
        try:
            scenarios[name]()
            outcomes[name] = "ok"
        except BaseException:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:], SCENARIOS)
