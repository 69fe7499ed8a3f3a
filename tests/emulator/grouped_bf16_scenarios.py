"""The grouped BF16 GEMMs on CPU tensors through their real kernels, in the emulator: the scenarios of grouped_scenarios.py on
BF16 problems, and those that only BF16 has. Run as a program, as it is."""

from __future__ import annotations

import dataclasses
import sys

import torch

import grouped_scenarios as shared

import deep_gemm
from bf16_cases import CONFIGS, config
from deep_gemm import _C
from grouped_bf16_cases import CASES, WIDE_CASES, make_grouped_bf16
from grouped_cases import contiguous, masked, psum
from grouped_scenarios import bits

shared.make_grouped = make_grouped_bf16
SHARDS = 4
# Clusters lie along N.
GROUPED_CONFIGS = [change for change in CONFIGS if change.get("cluster_m", 1) == 1]
TALL = {"block_m": 192, "block_n": 128, "num_math_warpgroups": 3, "store_boxes": 2, "cluster_n": 2}
TALLEST = {"block_m": 256, "block_n": 128, "num_math_warpgroups": 2, "store_boxes": 2, "num_stages": 3}
BY_KIND = {
    "contiguous": contiguous(3, ((2, 300), (-1, 256), (0, 1), (1, 257)), 200, 208, alignment=256),
    "masked": masked((130, 0, 64, 257), 260, 200, 208),
    "psum": psum((130, 0, 64, 257), 200, 208, m=1000),
}


def cases(number: int) -> None:
    """Each case of a share: exact operands to the bit, random ones near FP64."""
    for case in CASES[number::SHARDS]:
        exact, random = make_grouped_bf16(case, exact=True), make_grouped_bf16(case)
        exact.run()
        exact.check(exact=True)
        random.run()
        random.check_random()


def wide(index: int) -> None:
    problem = make_grouped_bf16(WIDE_CASES[index])
    problem.run()
    problem.check_random()


def rows_equal_those_of_the_dense_gemm() -> None:
    """However rows are packed and their layout is written, and whatever the major of B."""
    for case in (shared.RAGGED, *BY_KIND.values(), contiguous(2, ((1, 200), (0, 3)), 200, 208, letters="nn")):
        problem = make_grouped_bf16(case)
        problem.run()
        for matrix, rows, group in problem.selections():
            if group < 0 or rows.numel() == 0:
                continue
            d = torch.empty(rows.numel(), case.n, dtype=torch.bfloat16)
            deep_gemm.bf16_gemm_nt(problem.a[matrix][rows].contiguous(), problem.b[group], d)
            assert torch.equal(bits(problem.d[matrix, rows]), bits(d)), f"{case}, group {group}"


def configs_change_no_bit(kind: str) -> None:
    """Every kind of config, B of either major."""
    case = BY_KIND[kind]
    problem = make_grouped_bf16(case)
    first = bits(problem.run())
    hint = {} if kind == "contiguous" else {"expected_m": case.expected_m}
    for b_major in ("k", "mn"):
        if b_major == "mn":
            problem.b = problem.b.transpose(1, 2).contiguous().transpose(1, 2)
        kinds = {"grouping": kind, "num_groups": case.groups, "alignment": case.alignment, "b_major": b_major, **hint}
        for change in GROUPED_CONFIGS + ([] if kind == "contiguous" else [TALL]):
            pinned = config(grouping=kind, b_major=b_major, **change)
            _C.pin_bf16_gemm_config(problem.a.shape[1], case.n, case.k, 0, config=pinned, **kinds)
            problem.d.copy_(make_grouped_bf16(case).d)
            assert torch.equal(bits(problem.run()), first), f"{pinned}"
        _C.forget_bf16_gemm_plans()


def tall_tiles_stay_in_their_group() -> None:
    """Tiles taller than the alignment: rows of theirs behind a group's aligned end belong to the next, or to nobody."""
    wide, tallest, *_ = (change for change in GROUPED_CONFIGS if change.get("block_m", 64) > 64)
    for zeros, change in ((True, TALL), (False, TALL), (True, wide), (False, tallest)):
        case = psum((64, 1, 130, 0, 63), 136, 272, alignment=64, m=500, zero_padding=zeros)
        kinds = {"grouping": "psum", "num_groups": case.groups, "expected_m": case.expected_m, "alignment": case.alignment}
        _C.pin_bf16_gemm_config(case.m, case.n, case.k, 0, config=config(grouping="psum", **change), **kinds)
        problem = make_grouped_bf16(case, exact=True)
        problem.run()
        problem.check(exact=True)
        _C.forget_bf16_gemm_plans()


def many_groups_of_any_height() -> None:
    """More groups than a warp has lanes, whose order is that of their waves: no tile is missed or made twice."""
    for case in shared.MANY_GROUPS:
        case = dataclasses.replace(case, m=make_grouped_bf16(case).d.shape[1])
        kinds = {"grouping": case.kind, "num_groups": case.groups, "expected_m": 0, "alignment": case.alignment}
        for change in (TALL, TALLEST):
            problem = make_grouped_bf16(case)
            with shared.on_sms(16):
                _C.pin_bf16_gemm_config(case.m, case.n, case.k, 0, config=config(grouping=case.kind, **change), **kinds)
                problem.run()
            problem.check(exact=False)
        _C.forget_bf16_gemm_plans()


def tall_tiles_are_left_to_the_fewest_clusters() -> None:
    """24 tiles on 13 clusters, of which 12 take two each; and on 11 and 12. None is missed or made twice."""
    for change in (TALL, TALLEST):
        cluster = change.get("cluster_n", 1)
        case = masked((64, 192, 150, 70, 130, 1), 256, 4 * cluster * 128 - 24, 64, expected_m=0)
        shape = {"grouping": "masked", "num_groups": case.groups, "expected_m": 0}
        first, work = bits(make_grouped_bf16(case).run()), set()
        for slots in (11, 12, 13):
            problem = make_grouped_bf16(case)
            with shared.on_sms(slots * cluster):
                _C.pin_bf16_gemm_config(case.m, case.n, case.k, 0, config=config(grouping="masked", **change), **shape)
                problem.run()
            problem.check(exact=False)
            assert torch.equal(bits(problem.d), first), (change, slots)
            work.add(shared.last_launch()["mma_macs"])
        assert len(work) == 1, (change, work)
        _C.forget_bf16_gemm_plans()


def waves_without_rows_cost_nothing() -> None:
    """Of a tile of 256 rows, those of a masked or psum group's rows are loaded and multiplied, in waves of 64."""
    shape = {"grouping": "masked", "num_groups": 1, "expected_m": 0}
    _C.pin_bf16_gemm_config(256, 128, 256, 0, config=config(grouping="masked", **TALLEST), **shape)
    shared.check_work_of_waves(lambda count: make_grouped_bf16(masked((count,), 256, 128, 256, expected_m=0)), element_bytes=2)
    shape = {"grouping": "psum", "num_groups": 1, "expected_m": 0, "alignment": 256}
    _C.pin_bf16_gemm_config(256, 128, 256, 0, config=config(grouping="psum", **TALLEST), **shape)
    shared.check_work_of_waves(lambda count: make_grouped_bf16(psum((count,), 128, 256, alignment=256, m=256, expected_m=0)), element_bytes=2)
    _C.forget_bf16_gemm_plans()


def kernels_ran() -> None:
    """Of this program, last: the reference did not answer for them."""
    problem = make_grouped_bf16(masked((3, 8), 8, 40, 64))
    problem.run()
    assert shared.last_launch()["mma_instructions"] > 0


# Cases are this program's own, and "tallest" asks the planner of FP8.
FP8_ALONE = ("cases", "wide", "tallest", "tall_contiguous")  # BF16's tiles of ids divide the alignment
SCENARIOS = {name: function for name, function in shared.SCENARIOS.items() if not name.startswith(FP8_ALONE)}
SCENARIOS.update({f"cases_{i}": lambda i=i: cases(i) for i in range(SHARDS)})
SCENARIOS.update({f"wide_{i}": lambda i=i: wide(i) for i in range(len(WIDE_CASES))})
SCENARIOS.update({f"configs_change_no_bit_{kind}": lambda kind=kind: configs_change_no_bit(kind) for kind in BY_KIND})
for function in (
    rows_equal_those_of_the_dense_gemm, tall_tiles_stay_in_their_group, waves_without_rows_cost_nothing, many_groups_of_any_height,
    tall_tiles_are_left_to_the_fewest_clusters, kernels_ran,
):  # fmt: skip
    SCENARIOS[function.__name__] = function

if __name__ == "__main__":
    shared.main(sys.argv[1:], SCENARIOS)
