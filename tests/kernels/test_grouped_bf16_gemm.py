"""The grouped BF16 GEMMs on the GPU: exact operands to the bit, batch-invariant, the same bits on every run."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from cuda_graphs import captured
from deep_gemm.cli.timing import device_trace
from deep_gemm.testing import assert_bitwise_equal
from grouped_bf16_cases import CASES, WIDE_CASES, make_grouped_bf16
from grouped_cases import contiguous, masked, psum, storage_of

pytestmark = pytest.mark.gpu

LARGE_CASES = [
    contiguous(8, tuple((group, 100 + 61 * group) for group in range(8)), 2112, 7168, cut=50),
    contiguous(8, tuple((group, 500 + 61 * group) for group in range(8)), 4096, 2048, letters="nn"),
    contiguous(4, ((3, 700), (-1, 256), (0, 1), (2, 900)), 2112, 2048, letters="nn", cut=3),
    masked(tuple(range(0, 300, 10)), 320, 2112, 2048, expected_m=150),
    masked((1024, 0, 700, 1), 1024, 4096, 7168, expected_m=600),
    masked((5, 0, 96, 17, 64, 63, 65, 33), 96, 4096, 2048, arrangement="gaps", expected_m=40),
    psum(tuple(100 + 61 * group for group in range(8)), 2112, 7168, m=4000, expected_m=300),
    psum((5000, 0, 3001, -7, 2900), 4096, 2048, m=16000, zero_padding=False, expected_m=0, letters="nn"),
    psum(tuple(7 * g % 90 for g in range(96)), 2112, 1024, alignment=64, m=9000, expected_m=40),
]
BITS = [LARGE_CASES[0], LARGE_CASES[2], LARGE_CASES[3], masked((0, 1, 63, 64, 65, 130), 130, 136, 400), LARGE_CASES[6], LARGE_CASES[8]]


def on_gpu(case, exact: bool = False):
    """The problem of a case on the GPU."""
    return make_grouped_bf16(case, exact).to("cuda")


def written(problem) -> torch.Tensor:
    """D's bytes, guards included."""
    return storage_of(problem.d).clone()


@pytest.mark.parametrize("case", CASES + WIDE_CASES + LARGE_CASES, ids=str)
def test_against_fp64(case):
    exact, random = on_gpu(case, exact=True), on_gpu(case)
    exact.run()
    exact.check(exact=True)
    random.run()
    random.check_random()


@pytest.mark.parametrize("case", BITS, ids=str)
def test_twenty_runs_give_the_same_bits(case):
    problem = on_gpu(case)
    problem.run()
    first = written(problem)
    for repetition in range(20):
        problem.poison()
        problem.run()
        assert_bitwise_equal(written(problem), first, f"run {repetition}")


@pytest.mark.usefixtures("restored_settings")
@pytest.mark.parametrize("case", BITS, ids=str)
def test_settings_and_hints_do_not_change_bits(case):
    problem = on_gpu(case)
    problem.run()
    first = written(problem)
    total = deep_gemm.get_num_sms()
    for num_sms, pdl, hint in [(total - 1, False, 0), (total // 2, True, 1), (20, False, 300), (1, False, 10**6), (0, True, 64)]:
        deep_gemm.set_num_sms(num_sms)
        deep_gemm.set_pdl(pdl)
        problem.poison()
        problem.run(expected_m=hint)
        assert_bitwise_equal(written(problem), first, f"{num_sms=} {pdl=} {hint=}")


@pytest.mark.parametrize("case", [LARGE_CASES[1], LARGE_CASES[2], LARGE_CASES[4], LARGE_CASES[7]], ids=str)
def test_rows_equal_those_of_the_dense_gemm(case):
    problem = on_gpu(case)
    problem.run()
    for matrix, rows, group in problem.selections():
        if group < 0 or rows.numel() == 0:
            continue
        rows = rows.cuda()
        d = torch.empty(rows.numel(), case.n, dtype=torch.bfloat16, device="cuda")
        deep_gemm.bf16_gemm_nt(problem.a[matrix][rows].contiguous(), problem.b[group], d)
        assert_bitwise_equal(problem.d[matrix, rows], d, f"group {group}")


def test_layouts_are_read_when_the_kernel_runs():
    """In a captured graph counts and ends change between replays, and with them what is written."""
    for case, layouts in (
        (masked((64, 0, 5), 96, 264, 512, nan_padding=False), ((0, 0, 0), (96, 1, 63), (3, 65, 0))),
        (psum((64, 0, 5), 264, 512, m=600, nan_padding=False), ((300, 385, 592), (0, 0, 7), (129, 320, 600))),
    ):
        problem, other = on_gpu(case), on_gpu(case)
        problem.run()
        graph = captured(problem.run)
        for layout in layouts:
            for each in (problem, other):
                each.layout.copy_(torch.tensor(layout))
                each.d.view(torch.int16).fill_(0x5A5A)
            graph.replay()
            other.run()
            torch.cuda.synchronize()
            assert_bitwise_equal(written(problem), written(other), f"{layout}")


@pytest.mark.parametrize("case", BITS, ids=str)
def test_a_call_launches_one_kernel(case):
    problem = on_gpu(case)
    problem.run()
    trace = device_trace(problem.run)
    assert len(trace) == 1 and "bf16_gemm" in trace[0][0][:97], trace


def test_layouts_that_lie_leave_the_context_healthy():
    problem, want = (on_gpu(BITS[0]) for _ in range(2))
    problem.layout[:128] = 2**31 - 1
    want.layout[:128] = -1
    for each in (problem, want):
        each.run()
    torch.cuda.synchronize()
    assert_bitwise_equal(problem.d[0, 128:], want.d[0, 128:])
