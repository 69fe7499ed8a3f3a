"""What the contract refuses on a GPU: nothing is written, and the device goes on working."""

import pytest
import torch

from deep_gemm.testing import compare
from fp8_bad_calls import ALIASES, DTYPES, LAYOUTS, RANKS, RECIPES, SHAPES
from fp8_calls import copied_to, good_call, poison, still_poisoned
from refusals import refused_in_words

pytestmark = pytest.mark.gpu
CASES = DTYPES + RANKS + SHAPES + LAYOUTS + RECIPES + ALIASES
FIELDS = ("a", "sfa", "b", "sfb", "d")


def expect_healthy():
    """A good call still gives the reference's numbers, but for what tensor cores round off sums that cancel."""
    call = good_call()
    on_gpu = copied_to(call, "cuda")
    on_gpu.run()
    call.run()
    compare(on_gpu.d.cpu(), call.d)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_refused_by_name_and_untouched(case):
    call = good_call()
    case.spoil(call)
    call = copied_to(call, "cuda")
    poison(call.d)
    poison(call.c)
    with refused_in_words(case.words):
        call.run()
    torch.cuda.synchronize()
    assert still_poisoned(call.d) and still_poisoned(call.c)


def test_the_device_is_healthy_after_refusals():
    for case in CASES:
        call = good_call()
        case.spoil(call)
        with pytest.raises(RuntimeError):
            copied_to(call, "cuda").run()
    expect_healthy()


@pytest.mark.parametrize("stays", FIELDS)
def test_mixed_devices_are_refused(stays):
    host = good_call()
    call = copied_to(host, "cuda")
    setattr(call, stays, getattr(host, stays))
    poison(call.d)
    with pytest.raises(RuntimeError, match="cuda:0"):
        call.run()
    assert still_poisoned(call.d)
