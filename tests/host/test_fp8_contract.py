"""Calls of fp8_gemm_* that must be refused: by name, saying what was expected and what came, before any write."""

import types

import pytest
import torch

import deep_gemm
from fp8_bad_calls import BAD_CALLS, GOOD_CALLS
from fp8_calls import BF16, Call, good_call, poison, still_poisoned
from fp8_operands import random_fp8
from refusals import refused_in_words


@pytest.mark.parametrize("case", BAD_CALLS, ids=str)
def test_refused_by_name_and_untouched(case):
    call = good_call()
    case.spoil(call)
    poison(call.d)
    poison(call.c)
    with refused_in_words(case.words):
        call.run()
    assert still_poisoned(call.d) and still_poisoned(call.c)


PAIRS = {
    "a_bare": (lambda a, sfa: a, "a must be a pair (tensor, scales)"),
    "a_triple": (lambda a, sfa: (a, sfa, sfa), "a must be a pair (tensor, scales), got 3 items"),
    "a_alone": (lambda a, sfa: [a], "a must be a pair (tensor, scales), got 1 items"),
    "sfa_none": (lambda a, sfa: (a, None), "sfa (scales of a) must be a tensor, got NoneType"),
    "sfa_number": (lambda a, sfa: (a, 1.0), "sfa (scales of a) must be a tensor, got float"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_pairs(name):
    make, words = PAIRS[name]
    call = good_call()
    poison(call.d)
    with pytest.raises(RuntimeError) as refusal:
        deep_gemm.fp8_gemm_nt(make(call.a, call.sfa), (call.b, call.sfb), call.d)
    assert words in str(refusal.value)
    assert still_poisoned(call.d)


def test_an_unknown_keyword_is_a_type_error():
    call = good_call()
    with pytest.raises(TypeError):
        deep_gemm.fp8_gemm_nt((call.a, call.sfa), (call.b, call.sfb), call.d, recipes=(1, 128, 128))


def test_the_unspoiled_call_is_accepted():
    call = good_call()
    call.run()
    assert call.d.isfinite().all()


def test_names_are_unique_and_enough():
    assert len({case.name for case in BAD_CALLS}) == len(BAD_CALLS) >= 60


@pytest.mark.parametrize("case", GOOD_CALLS, ids=str)
def test_accepted(case):
    call = good_call()
    case.spoil(call)
    call.run()
    assert call.d.isfinite().all()


def addresses(t: torch.Tensor) -> set:
    return {t.storage_offset() + i * t.stride(0) + j for i in range(t.shape[0]) for j in range(t.shape[1])}


def draw(bound: int, random: torch.Generator) -> int:
    return int(torch.randint(bound, (1,), generator=random))


def random_window(buffer: torch.Tensor, shape: tuple, random: torch.Generator) -> torch.Tensor:
    """A [rows, columns] view that D and C may be: 16-byte rows and base, row stride at least a row."""
    stride = shape[1] + 8 * draw(4, random)
    return buffer.as_strided(shape, (stride, 1), 8 * draw(40, random))


def is_refused(call: Call) -> bool:
    try:
        call.run()
    except RuntimeError as refusal:
        assert "partial overlap" in str(refusal)
        return True
    return False


def test_overlap_of_c_and_d_is_refused_exactly():
    random, outcomes = torch.Generator().manual_seed(0), []
    buffer = torch.zeros(1024, dtype=BF16)
    for _ in range(400):
        shape = (1 + draw(5, random), 8 + 8 * draw(3, random))
        c, d = random_window(buffer, shape, random), random_window(buffer, shape, random)
        same = c.data_ptr() == d.data_ptr() and (shape[0] == 1 or c.stride() == d.stride())
        a, b = random_fp8(shape[0], 16, seed=1), random_fp8(shape[1], 16, seed=2)
        call = Call(a, torch.ones(shape[0], 1), b, torch.ones(1, 1), d, c)
        outcomes.append(is_refused(call))
        assert outcomes[-1] == (not same and not addresses(c).isdisjoint(addresses(d)))
    assert 40 < sum(outcomes) < 360  # both kinds came up often


@pytest.mark.parametrize("field", ["a", "b", "d", "c"])
@pytest.mark.parametrize("distance", [1 << 40, 1 << 62, (1 << 63) - 16])
def test_rows_further_apart_than_a_map_can_say(field, distance):
    """No memory is this large: a look-alike claims it, and nothing is read."""
    tensors = {name: torch.ones(16, 128).to(torch.float8_e4m3fn) for name in "ab"}
    tensors.update({name: torch.ones(16, 16) for name in "dc"})
    memory = tensors[field]
    tensors[field] = types.SimpleNamespace(
        dtype=memory.dtype, shape=memory.shape, stride=lambda: (distance, 1), data_ptr=memory.data_ptr, is_cpu=True
    )
    factors = torch.ones(16, 1), torch.ones(1, 1)
    with pytest.raises(deep_gemm.DeepGemmError, match=rf"^{field}: expected a row stride below 2\^40 bytes"):
        deep_gemm.fp8_gemm_nt((tensors["a"], factors[0]), (tensors["b"], factors[1]), tensors["d"], tensors["c"])
    assert (memory.float() == 1).all()
