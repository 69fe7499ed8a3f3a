"""The m-grouped FP8 GEMMs against FP64: every case on the GPU, the small ones on the CPU reference, too."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from deep_gemm.cli.timing import device_trace
from cuda_graphs import captured
from deep_gemm.testing import assert_bitwise_equal, compare
from m_grouped_cases import (
    CONTIGUOUS,
    CONTIGUOUS_LARGE,
    MASKED,
    MASKED_LARGE,
    ContiguousCase,
    MaskedCase,
    make_problem,
    with_form,
)

gpu = pytest.mark.gpu
ON_GPU = pytest.param("cuda", marks=gpu)
SMALL, LARGE = CONTIGUOUS + MASKED, CONTIGUOUS_LARGE + MASKED_LARGE
EVERYWHERE = [pytest.param(case, "cpu", id=f"{case}-cpu") for case in SMALL]
EVERYWHERE += [pytest.param(case, "cuda", id=f"{case}-cuda", marks=gpu) for case in SMALL + LARGE]
MAX_DIFF = 1e-5

MIDDLE = [
    ContiguousCase(((0, 300), (-1, 128), (2, 129), (1, 1000)), 2112, 1024, experts=4),
    ContiguousCase(tuple((g, 100 + g) for g in range(16)), 4096, 2048, ragged=True, sfa="row"),
    MaskedCase(192, (1, 0, 7, 64, 65, 128, 192, 3), 2112, 1024),
    MaskedCase(96, tuple(7 * g % 97 for g in range(40)), 4096, 2048, sfa="mn"),
]


@pytest.mark.parametrize("case, device", EVERYWHERE)
def test_against_fp64(case, device):
    problem = make_problem(case, device)
    # NaN of the reference marks rows that stay as they are; zeros of it are compared like any other number.
    measured = compare(problem.run(), problem.reference(), max_cosine_gap=MAX_DIFF, label=str(case))
    assert measured.diff < MAX_DIFF
    assert problem.untouched(), "wrote outside of the wanted rows"
    if isinstance(case, ContiguousCase):
        assert not bool(problem.d[problem.layout < 0].view(torch.int16).any()), "padding is not zero bit for bit"


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("case", [CONTIGUOUS[2], CONTIGUOUS[6], MASKED[4], MASKED[7]], ids=str)
def test_every_factor_form_gives_the_same_bits(case, device):
    first = make_problem(case, device).run().clone()
    for form in ("aligned", "mn", "row"):
        problem = with_form(make_problem(case, device), form)
        assert_bitwise_equal(problem.run(), first, form)
        assert problem.untouched()


@gpu
@pytest.mark.parametrize("case", MIDDLE + [CONTIGUOUS_LARGE[1], MASKED_LARGE[0]], ids=str)
def test_twenty_runs_give_the_same_bits(case):
    problem = make_problem(case, "cuda")
    first = problem.run().clone()
    for repetition in range(20):
        problem.poison()
        assert_bitwise_equal(problem.run(), first, f"run {repetition}")


@gpu
@pytest.mark.usefixtures("restored_settings")
@pytest.mark.parametrize("case", MIDDLE, ids=str)
def test_settings_do_not_change_bits(case):
    problem = make_problem(case, "cuda")
    first = problem.run().clone()
    total = deep_gemm.get_num_sms()
    for num_sms, pdl in [(total - 1, False), (total - 24, True), (total // 2, True), (20, False), (1, False), (0, True)]:
        deep_gemm.set_num_sms(num_sms)
        deep_gemm.set_pdl(pdl)
        problem.poison()
        assert_bitwise_equal(problem.run(), first, f"{num_sms=} {pdl=}")
        assert problem.untouched()


@gpu
@pytest.mark.parametrize("case", [MIDDLE[2], MIDDLE[3], MASKED_LARGE[1]], ids=str)
def test_expected_m_is_only_a_hint(case):
    problem = make_problem(case, "cuda")
    first = problem.run().clone()
    for expected_m in (0, 1, 8, 20, 64, 100, 192, case.capacity, 100 * case.capacity):
        problem.poison()
        assert_bitwise_equal(problem.run(expected_m=expected_m), first, f"{expected_m=}")
        assert problem.untouched()


@gpu
def test_rows_do_not_depend_on_their_place():
    """A row's bits are the same in either layout, at any place, and those of the dense product."""
    case = MaskedCase(192, (192, 33, 128), 2112, 1024, sfa="row")
    masked = make_problem(case, "cuda")
    want = masked.run().clone()
    blocks = ContiguousCase(((0, 192), (1, 33), (2, 128)), 2112, 1024, sfa="row")
    contiguous = make_problem(blocks, "cuda")
    start = 0
    for expert, rows in blocks.blocks:
        for target, source in zip(contiguous.a, masked.a):
            target.view(torch.uint8)[start : start + rows].copy_(source.view(torch.uint8)[expert, :rows])
        start += rows + -rows % blocks.alignment
    contiguous.b = masked.b
    got = contiguous.run()
    start = 0
    for expert, rows in blocks.blocks:
        assert_bitwise_equal(got[start : start + rows], want[expert, :rows], f"expert {expert}, contiguous")
        dense = torch.empty(rows, case.n, dtype=torch.bfloat16, device="cuda")
        a, b = ((pair[0][expert], pair[1][expert]) for pair in (masked.a, masked.b))
        deep_gemm.fp8_gemm_nt((a[0][:rows], a[1][:rows]), b, dense)
        assert_bitwise_equal(dense, want[expert, :rows], f"expert {expert}, dense")
        start += rows + -rows % blocks.alignment


def refill(problem, other) -> None:
    """Puts the operands and the layout of `other` into the buffers of `problem`."""
    for target, source in zip((*problem.a, *problem.b, problem.layout), (*other.a, *other.b, other.layout)):
        target.copy_(source)


@gpu
def test_a_graph_replays_the_counts_of_now():
    capacity, n, k = 192, 2112, 1024
    counts = [(0,) * 8, (1, 0, 7, 64, 65, 128, 192, 3), (192,) * 8, (0, 0, 0, 0, 0, 0, 0, 5)]
    problem = make_problem(MaskedCase(capacity, (capacity,) * 8, n, k, expected_m=16), "cuda")
    problem.run()
    torch.cuda.synchronize()
    graph = captured(problem.run)
    for seed, now in enumerate(counts):
        other = make_problem(MaskedCase(capacity, now, n, k, expected_m=100), "cuda", seed=seed)
        refill(problem, other)
        problem.poison()
        graph.replay()
        torch.cuda.synchronize()
        assert_bitwise_equal(problem.d, other.run(), str(now))
        assert problem.untouched()


@gpu
def test_a_graph_replays_the_layout_of_now():
    layouts = [((0, 128), (1, 250), (2, 100)), ((2, 1), (-1, 256), (0, 100)), ((-1, 512),), ((1, 512),)]
    cases = [ContiguousCase(blocks, 2112, 1024, experts=3) for blocks in layouts]
    problem = make_problem(cases[0], "cuda")
    problem.run()
    torch.cuda.synchronize()
    graph = captured(problem.run)
    for seed, case in enumerate(cases):
        other = make_problem(case, "cuda", seed=seed)
        refill(problem, other)
        problem.poison()
        graph.replay()
        torch.cuda.synchronize()
        assert_bitwise_equal(problem.d, other.run(), str(case))


@gpu
@pytest.mark.parametrize("form", ["aligned", "mn", "row"])
@pytest.mark.parametrize("case", [MIDDLE[0], MIDDLE[2]], ids=["contiguous", "masked"])
def test_a_call_launches_one_kernel(case, form):
    problem = with_form(make_problem(case, "cuda"), form)
    problem.run()
    trace = device_trace(problem.run)
    assert len(trace) == 1, trace
    assert "gemm_" in trace[0][0][:97], trace


@gpu
def test_nan_weights_stay_in_their_expert():
    for case in (MIDDLE[0], MIDDLE[2]):
        clean, spoiled = make_problem(case, "cuda"), make_problem(case, "cuda")
        spoiled.b[1][2] = float("nan")
        clean.run(), spoiled.run()
        if isinstance(case, MaskedCase):
            others = torch.arange(len(case.counts), device="cuda") != 2
        else:
            others = spoiled.layout != 2
        assert_bitwise_equal(spoiled.d[others], clean.d[others])


@gpu
def test_counts_out_of_range_do_not_leave_the_buffers():
    problem = make_problem(MaskedCase(96, (96, 96, 96), 264, 256, guard=True), "cuda")
    want = problem.run().clone()
    problem.poison()
    problem.layout.copy_(torch.tensor([97, -1, 2**31 - 1]))
    problem.run()
    assert_bitwise_equal(problem.d[[0, 2]], want[[0, 2]])
    problem.layout.copy_(torch.tensor([96, 0, 96]))
    assert problem.untouched()


@gpu
@pytest.mark.usefixtures("restored_settings")
def test_pdl_waits_for_the_kernel_before_it():
    """Counts, layouts and operands may come from the kernel just before."""
    deep_gemm.set_pdl(True)
    for case in (MIDDLE[0], MIDDLE[2]):
        problem, source = make_problem(case, "cuda"), make_problem(case, "cuda")
        first = problem.run().clone()
        for repetition in range(30):
            problem.a[0].view(torch.uint8).zero_()
            problem.layout.fill_(0)
            problem.poison()
            problem.a[0].copy_(source.a[0])
            problem.layout.copy_(source.layout)
            assert_bitwise_equal(problem.run().clone(), first, f"repetition {repetition}")


@gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_calls_have_eager_bits(mode):
    torch._dynamo.reset()

    def contiguous(a, sfa, b, sfb, layout):
        d = torch.empty(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, sfa), (b, sfb), d, layout)
        return d + 1

    def masked(a, sfa, b, sfb, counts):
        d = torch.zeros(a.shape[0], a.shape[1], b.shape[1], dtype=torch.bfloat16, device=a.device)
        deep_gemm.m_grouped_fp8_gemm_nt_masked((a, sfa), (b, sfb), d, counts, 16)
        return d + 1

    for function, case in ((contiguous, MIDDLE[0]), (masked, MIDDLE[2])):
        problem = make_problem(case, "cuda")
        inputs = (*problem.a, *problem.b, problem.layout)
        expected = function(*inputs)
        compiled = torch.compile(function, fullgraph=True, mode=mode)
        for repetition in range(4):
            assert_bitwise_equal(compiled(*inputs).clone(), expected, f"repetition {repetition}")


@gpu
def test_the_device_is_healthy_after_refusals():
    problem = make_problem(MIDDLE[2], "cuda")
    want = problem.run().clone()
    with pytest.raises(deep_gemm.DeepGemmError, match="masked_m"):
        deep_gemm.m_grouped_fp8_gemm_nt_masked(problem.a, problem.b, problem.d, problem.layout.cpu(), 16)
    with pytest.raises(deep_gemm.DeepGemmError, match="d"):
        deep_gemm.m_grouped_fp8_gemm_nt_masked(problem.a, problem.b, problem.d.float(), problem.layout, 16)
    problem.poison()
    assert_bitwise_equal(problem.run(), want)
