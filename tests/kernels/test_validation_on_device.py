"""`DG_VALIDATE=1` on the GPU: the rules hold there too, D stays untouched, and a capture passes with a warning."""

import pytest
import torch

import deep_gemm
from refusals import refused_in_words
from validation_cases import CASES, GOOD, POISON, Call

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("validating")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_rule(case):
    call = Call(case.kind, case.letters, "cuda")
    case.spoil(call)
    with refused_in_words(case.words):
        call.run()
    assert bool((call.d == POISON).all())


@pytest.mark.parametrize("kind, letters", GOOD)
def test_good_calls_pass(kind, letters):
    call = Call(kind, letters, "cuda")
    call.run()
    assert not bool(call.d.isnan().any())


def test_captures_pass_with_a_warning():
    call = Call("counts", device="cuda")
    a, b = (torch.ones(3, n, 256, device="cuda").to(torch.float8_e4m3fn) for n in (300, 136))

    def run():
        deep_gemm.m_grouped_fp8_gemm_nt_masked((a, call.sfa), (b, call.sfb), call.d, call.layout, 0)

    run()
    with pytest.warns(UserWarning, match="captured"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            run()
