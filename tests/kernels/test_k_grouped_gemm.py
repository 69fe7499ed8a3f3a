"""The GEMMs grouped along K on the GPU against FP64, and what must not change their bits."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from cuda_graphs import captured
from deep_gemm.cli.timing import device_trace
from deep_gemm.testing import assert_bitwise_equal, calc_diff
from k_grouped_cases import BF16_CASES, BF16_TN, FP8, FP8_CASES, FP8_TN, KGroupedCase, WIDE_CASES, make_k_grouped, nt, tn, without_sizes

pytestmark = pytest.mark.gpu

MIXED = (1024, 0, 128, 3328, 640, 128, 0, 2048)
LARGE_CASES = (
    nt(4096, 7168, (4096, 3968, 0, 128), c="same"),
    nt(2048, 1536, MIXED, c="apart", host_sizes=False),
    nt(1000, 776, (128,) * 70, c="same", host_sizes=False),  # more groups than SMs have stages: slots of maps turn often
    nt(129, 72, (128, 256, 0, 128) * 40, host_sizes=False),
    tn(4096, 7168, (4096, 3968, 0, 128), c="same"),
    tn(2048, 1536, MIXED, c="apart", host_sizes=False),
    tn(1000, 776, (1, 130, 0, 700, 128, 64), psum=True, c="same"),
    tn(136, 264, (64, 192, 0, 64) * 20, alignment=64, host_sizes=False),
)
BITS = (LARGE_CASES[1], LARGE_CASES[2], LARGE_CASES[3], LARGE_CASES[5], LARGE_CASES[6], LARGE_CASES[7])


def fresh_run(problem) -> torch.Tensor:
    """D of a call that starts from the same D, surroundings included."""
    problem.d.fill_(1)
    problem.run()
    return problem.d.clone()


@pytest.mark.parametrize("case", FP8_CASES + BF16_CASES + WIDE_CASES + LARGE_CASES, ids=str)
def test_against_fp64(case):
    make_k_grouped(case, "cuda").run_and_check()


@pytest.mark.parametrize("case", [case for case in BF16_CASES if case.c == "none"], ids=str)
def test_exact_products_come_out_exact(case):
    make_k_grouped(case, "cuda", exact=True).run_and_check(exact=True)


@pytest.mark.parametrize("case", BITS, ids=str)
def test_twenty_runs_give_the_same_bits(case):
    problem = make_k_grouped(case, "cuda")
    first = fresh_run(problem)
    for repetition in range(20):
        assert_bitwise_equal(fresh_run(problem), first, f"run {repetition}")


@pytest.mark.usefixtures("restored_settings")
@pytest.mark.parametrize("case", BITS, ids=str)
def test_settings_do_not_change_bits(case):
    problem, blind = make_k_grouped(case, "cuda"), make_k_grouped(without_sizes(case), "cuda")
    first = fresh_run(problem)
    total = deep_gemm.get_num_sms()
    for num_sms, pdl in [(total - 1, False), (total // 2, True), (20, False), (1, True), (0, True)]:
        deep_gemm.set_num_sms(num_sms)
        deep_gemm.set_pdl(pdl)
        assert_bitwise_equal(fresh_run(problem), first, f"{num_sms=} {pdl=}")
        assert_bitwise_equal(fresh_run(blind), first, f"{num_sms=} {pdl=}, sizes from the GPU alone")


def test_calls_in_a_row_and_on_two_streams_do_not_share_maps():
    """Calls with other sizes follow each other at once, and run beside each other: each has maps of its own."""
    cases = [nt(520, 392, ks, host_sizes=False) for ks in ((128, 256, 384) * 8, (384, 128, 0) * 8, (1024,) * 3)]
    problems = [make_k_grouped(case, "cuda", seed) for seed, case in enumerate(cases)]
    expected = [fresh_run(problem) for problem in problems]
    streams = [torch.cuda.Stream() for _ in problems]
    torch.cuda.synchronize()
    for repetition in range(20):
        for problem, stream in zip(problems, streams):
            with torch.cuda.stream(stream if repetition % 2 else torch.cuda.current_stream()):
                problem.d.fill_(1)
                problem.run()
    torch.cuda.synchronize()
    for problem, want in zip(problems, expected):
        assert_bitwise_equal(problem.d, want)


@pytest.mark.parametrize("case", [nt(264, 392, (256, 0, 128, 640), host_sizes=False), tn(264, 392, (256, 0, 128, 640), host_sizes=False)], ids=str)
def test_sizes_are_read_when_the_kernel_runs(case):
    """A captured graph follows the sizes of its replays."""
    problem = make_k_grouped(case, "cuda")
    problem.run()
    graph = captured(problem.run)
    for ks in ((128, 128, 512, 256), (0, 0, 0, 1024), (1024, 0, 0, 0), (0, 640, 384, 0)):
        eager = make_k_grouped(case, "cuda")
        for each in (problem, eager):
            each.layout.copy_(torch.tensor(ks))
            each.d.fill_(1)
        graph.replay()
        eager.run()
        torch.cuda.synchronize()
        assert_bitwise_equal(problem.d, eager.d, f"{ks}")


@pytest.mark.parametrize("case", BITS, ids=str)
def test_a_call_launches_one_kernel(case):
    problem = make_k_grouped(case, "cuda")
    problem.run()
    trace = device_trace(problem.run)
    assert len(trace) == 1 and "gemm_" in trace[0][0][:97], trace


def test_layouts_that_lie_leave_the_context_healthy():
    for make in (nt, tn):
        problem = make_k_grouped(make(264, 392, (256, 128, 640), host_sizes=False), "cuda")
        for layout in ((2**31 - 1,) * 3, (-1, -(2**31), 5), (100, 200, 300)):
            problem.layout.copy_(torch.tensor(layout))
            problem.run()
            torch.cuda.synchronize()
        problem.check_surroundings()
        problem.layout.copy_(torch.tensor((256, 128, 640)))
        problem.run_and_check()


def test_fp8_rows_are_refused():
    problem = make_k_grouped(KGroupedCase(FP8_TN, 32, 48, (128, 256)), "cuda")
    with pytest.raises(deep_gemm.DeepGemmError, match="k_grouped_fp8_gemm_nt_contiguous"):
        problem.run()


@pytest.mark.parametrize("kind", ["fp8_nt", BF16_TN])
def test_offsets_beyond_32_bits(kind):
    """M x all K passes 2^31 bytes: ones, but for one element a group, whose place tells whether the right bytes were read."""
    m, n, ks = 8192, 256, (131072, 128, 147456)
    total = sum(ks)
    assert m * total > 2**31
    layout, d = torch.tensor(ks, dtype=torch.int32, device="cuda"), torch.full((3, m, n), float("nan"), device="cuda")
    starts = [0, ks[0], ks[0] + ks[1]]
    if kind == BF16_TN:
        a, b = torch.zeros(total, m, dtype=torch.bfloat16, device="cuda"), torch.ones(total, n, dtype=torch.bfloat16, device="cuda")
        for g, (start, size) in enumerate(zip(starts, ks)):
            a[start + size - 1, m - 1] = g + 1
            a[start, 0] = g + 4
        deep_gemm.k_grouped_bf16_gemm_tn_contiguous(a, b, d, list(ks), layout)
    else:
        a = torch.zeros(m * total, dtype=torch.uint8, device="cuda").view(FP8)
        b = torch.full((n * total,), 0x38, dtype=torch.uint8, device="cuda").view(FP8)  # ones
        for g, (start, size) in enumerate(zip(starts, ks)):
            codes = a.view(torch.uint8)[m * start : m * (start + size)].view(m, size)
            codes[m - 1, size - 1] = torch.tensor(float(g + 1)).to(FP8).view(torch.uint8)
            codes[0, 0] = torch.tensor(float(g + 4)).to(FP8).view(torch.uint8)
        factors = [torch.ones(total // 128, rows, device="cuda").t() for rows in (m, n)]
        deep_gemm.k_grouped_fp8_gemm_nt_contiguous((a, factors[0]), (b, factors[1]), d, list(ks), layout)
    expected = torch.zeros(3, m, device="cuda")
    for g in range(3):
        expected[g, m - 1], expected[g, 0] = g + 1, g + 4
    assert_bitwise_equal(d, expected[:, :, None].expand(3, m, n).contiguous())


def test_difference_is_that_of_fp8():
    """Against the product of the quantised operands: accumulators of 13 fraction bits, promoted every 128 of K."""
    case = nt(1024, 512, (2048, 0, 4096), c="same")
    problem = make_k_grouped(case, "cuda", seed=3)
    problem.d.zero_()
    problem.run()
    assert float(calc_diff(problem.d, problem.reference())) < 1e-6
