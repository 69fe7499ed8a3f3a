"""Calls of the grouped GEMMs, FP8 and BF16, that must be refused: by name, saying what was expected and what came, before any write."""

import pytest
import torch

import grouped_bf16_bad_calls as bf16
from deep_gemm import _C
from fp8_calls import BF16, poison, still_poisoned
from grouped_bad_calls import BAD_GROUPED_CALLS, CAPACITY, GOOD_GROUPED_CALLS, K, G, N, good_contiguous, good_masked
from refusals import refused_in_words

MAKERS = [good_contiguous, good_masked, bf16.good_contiguous, bf16.good_masked]
BAD, GOOD = BAD_GROUPED_CALLS + bf16.BAD_GROUPED_CALLS, GOOD_GROUPED_CALLS + bf16.GOOD_GROUPED_CALLS
NAMES = [f"m_grouped_{dtype}_gemm_{form}" for dtype in ("fp8", "bf16") for form in ("nt_contiguous", "nn_contiguous", "nt_masked")]


def name_of(row) -> str:
    return f"{'bf16-' if row[0] in MAKERS[2:] else ''}{row[0].__name__[5:]}-{row[1]}"


@pytest.mark.parametrize("row", BAD, ids=name_of)
def test_refused_by_name_and_untouched(row):
    make, case = row
    call = make()
    case.spoil(call)
    poison(call.d)
    with refused_in_words(case.words):
        call.run()
    assert still_poisoned(call.d)


@pytest.mark.parametrize("make", MAKERS)
def test_the_unspoiled_call_is_accepted(make):
    call = make()
    call.run()
    assert call.d.isfinite().all()


@pytest.mark.parametrize("row", GOOD, ids=name_of)
def test_accepted(row):
    make, case = row
    call = make()
    case.spoil(call)
    call.run()
    assert call.d.isfinite().all()


def test_names_are_unique_and_enough():
    assert len({name_of(row) for row in BAD}) == len(BAD) and len(BAD_GROUPED_CALLS) >= 90 and len(bf16.BAD_GROUPED_CALLS) >= 70


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_number_of_arguments_is_a_type_error(name):
    with pytest.raises(TypeError):
        getattr(_C, name)(1, 2, 3)


def addresses(t: torch.Tensor) -> set:
    """Elements of a three-dimensional view, counted from the start of its storage."""
    return {
        t.storage_offset() + sum(i * s for i, s in zip(index, t.stride()))
        for index in torch.cartesian_prod(*(torch.arange(extent) for extent in t.shape)).tolist()
    }


def test_overlap_of_groups_is_refused_exactly():
    """A and D as windows of one buffer, group by group: refused if and only if they share a byte."""
    random, outcomes = torch.Generator().manual_seed(0), []
    draw = lambda bound: int(torch.randint(bound, (1,), generator=random))  # noqa: E731
    buffer = torch.zeros(2048, dtype=torch.uint8)
    for _ in range(300):
        groups, rows = 1 + draw(3), 1 + draw(3)
        a_row, d_row = 32 + 16 * draw(4), 16 + 8 * draw(4)
        a_group = a_row * rows + 16 * draw(12) if draw(2) else None
        a = buffer.view(torch.float8_e4m3fn).as_strided((groups, rows, 16), (a_group, a_row, 1) if a_group else (16, 16 * groups, 1), 16 * draw(40))
        d = buffer.view(BF16).as_strided((groups, rows, 8), (d_row * rows + 8 * draw(8), d_row, 1), 8 * draw(60))
        d_bytes = {2 * element + byte for element in addresses(d) for byte in (0, 1)}
        call = good_masked()
        call.a, call.d, call.layout = a, d, torch.zeros(groups, dtype=torch.int32)
        call.b, call.sfb = torch.zeros(groups, 8, 16).to(torch.float8_e4m3fn), torch.ones(groups, 1, 1)
        call.sfa = torch.ones(groups, rows, 1)
        try:
            call.run()
            outcomes.append(False)
        except RuntimeError as refusal:
            assert "overlap with a" in str(refusal)
            outcomes.append(True)
        assert outcomes[-1] == (not addresses(a).isdisjoint(d_bytes))
    assert 40 < sum(outcomes) < 260  # both kinds came up often


def test_the_tables_fit_the_calls():
    assert good_masked().d.shape == (G, CAPACITY, N) and good_contiguous().a.shape[1] == K
