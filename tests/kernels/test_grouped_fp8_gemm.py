"""The grouped FP8 GEMMs on the GPU against FP64, and what their hints must not change."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from cuda_graphs import captured
from deep_gemm.cli.timing import device_trace
from deep_gemm.testing import assert_bitwise_equal
from grouped_cases import CASES, PER_ROW, WIDE_CASES, contiguous, make_grouped, masked, psum

pytestmark = pytest.mark.gpu

LARGE_CASES = [
    contiguous(8, tuple((group, 100 + 61 * group) for group in range(8)), 2112, 7168, cut=50),
    contiguous(8, tuple((group, 500 + 61 * group) for group in range(8)), 4096, 2048),
    contiguous(4, ((3, 700), (-1, 256), (0, 1), (2, 900)), 2112, 2048, recipe=PER_ROW, sfa="row"),
    masked(tuple(range(0, 300, 10)), 320, 2112, 2048, expected_m=150),
    masked((1024, 0, 700, 1), 1024, 4096, 7168, expected_m=600),
    masked((5, 0, 96, 17, 64, 63, 65, 33), 96, 4096, 2048, recipe=PER_ROW, arrangement="gaps", expected_m=40),
    psum(tuple(100 + 61 * group for group in range(8)), 2112, 7168, m=4000, expected_m=300),
    psum((5000, 0, 3001, -7, 2900), 4096, 2048, m=16000, zero_padding=False, expected_m=0),
    psum(tuple(7 * g % 90 for g in range(96)), 2112, 1024, recipe=PER_ROW, sfa="row", alignment=64, m=9000, expected_m=40),
]
BITS = [LARGE_CASES[0], LARGE_CASES[3], masked((0, 1, 63, 64, 65, 130), 130, 136, 400), LARGE_CASES[6], LARGE_CASES[8]]


def written(problem) -> torch.Tensor:
    """D's bytes, guards included."""
    return torch.empty(0, dtype=torch.uint8, device="cuda").set_(problem.d.untyped_storage()).clone()


@pytest.mark.parametrize("case", CASES + WIDE_CASES + LARGE_CASES, ids=str)
def test_against_fp64(case):
    problem = make_grouped(case).to("cuda")
    problem.run()
    problem.check(exact=False)


@pytest.mark.parametrize("case", BITS, ids=str)
def test_twenty_runs_give_the_same_bits(case):
    problem = make_grouped(case).to("cuda")
    problem.run()
    first = written(problem)
    for repetition in range(20):
        problem.poison()
        problem.run()
        assert_bitwise_equal(written(problem), first, f"run {repetition}")


@pytest.mark.usefixtures("restored_settings")
@pytest.mark.parametrize("case", BITS, ids=str)
def test_settings_and_hints_do_not_change_bits(case):
    problem = make_grouped(case).to("cuda")
    problem.run()
    first = written(problem)
    total = deep_gemm.get_num_sms()
    for num_sms, pdl, hint in [(total - 1, False, 0), (total // 2, True, 1), (20, False, 300), (1, False, 10**6), (0, True, 64)]:
        deep_gemm.set_num_sms(num_sms)
        deep_gemm.set_pdl(pdl)
        problem.poison()
        problem.run(expected_m=hint)
        assert_bitwise_equal(written(problem), first, f"{num_sms=} {pdl=} {hint=}")


@pytest.mark.parametrize("case", [LARGE_CASES[1], LARGE_CASES[2], LARGE_CASES[7]], ids=str)
def test_rows_equal_those_of_the_dense_gemm(case):
    problem = make_grouped(case).to("cuda")
    problem.run()
    for _, rows, group in problem.selections():
        if group < 0:
            continue
        rows = rows.cuda()
        d = torch.empty(rows.numel(), case.n, dtype=torch.bfloat16, device="cuda")
        values = problem.a[0].contiguous().view(torch.uint8)[rows].view(problem.a.dtype)
        a = (values, problem.sfa[0][rows].contiguous())
        deep_gemm.fp8_gemm_nt(a, (problem.b[group], problem.sfb[group]), d, recipe=case.recipe)
        assert_bitwise_equal(problem.d[0, rows], d, f"group {group}")


def test_counts_are_read_when_the_kernel_runs():
    """In a captured graph the counts change between replays, and with them what is written."""
    problem = make_grouped(masked((64, 0, 5), 96, 264, 512, nan_padding=False)).to("cuda")
    problem.run()
    graph = captured(problem.run)
    for counts in ((0, 0, 0), (96, 1, 63), (3, 65, 0)):
        problem.layout.copy_(torch.tensor(counts))
        problem.d.view(torch.int16).fill_(0x5A5A)
        graph.replay()
        problem.check(exact=False)


def test_ends_are_read_when_the_kernel_runs():
    """A captured graph follows the ends of its replays, those past M and before a start included."""
    case = psum((64, 0, 5), 264, 512, m=600, nan_padding=False)
    problem = make_grouped(case).to("cuda")
    problem.run()
    graph = captured(problem.run)
    far = 2**31 - 1
    replays = {(0, 0, 0): (0, 0, 0), (300, 1, 80): (300, 385, 592), (129, 64, 216): (129, 320, far), (0, 0, 7): (-far, -1, 7)}
    for rows, ends in replays.items():
        other = make_grouped(psum(rows, 264, 512, m=600, nan_padding=False)).to("cuda")
        other.run()
        other.check(exact=False)
        problem.layout.copy_(torch.tensor(ends))
        problem.d.copy_(make_grouped(case).d)
        graph.replay()
        torch.cuda.synchronize()
        assert_bitwise_equal(written(problem), written(other), f"{rows}, {ends}")


@pytest.mark.parametrize("case", BITS, ids=str)
def test_a_call_launches_one_kernel(case):
    problem = make_grouped(case).to("cuda")
    problem.run()
    trace = device_trace(problem.run)
    assert len(trace) == 1 and "gemm_" in trace[0][0][:97], trace


def test_layouts_that_lie_leave_the_context_healthy():
    problem, want = (make_grouped(BITS[0]).to("cuda") for _ in range(2))
    problem.layout[:128] = 2**31 - 1
    want.layout[:128] = -1
    for each in (problem, want):
        each.run()
    torch.cuda.synchronize()
    assert_bitwise_equal(problem.d[0, 128:], want.d[0, 128:])
