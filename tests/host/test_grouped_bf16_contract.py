"""Calls of the grouped BF16 GEMMs that must be refused: by name, saying what was expected and what came, before any write."""

from __future__ import annotations

import pytest

from deep_gemm import _C
from fp8_calls import poison, still_poisoned
from grouped_bf16_bad_calls import BAD_GROUPED_CALLS, GOOD_GROUPED_CALLS, good_contiguous, good_masked


def name_of(row) -> str:
    return f"{row[0].__name__[5:]}-{row[1]}"


@pytest.mark.parametrize("row", BAD_GROUPED_CALLS, ids=name_of)
def test_refused_by_name_and_untouched(row):
    make, case = row
    call = make()
    case.spoil(call)
    poison(call.d)
    with pytest.raises(RuntimeError) as refusal:
        call.run()
    missing = [word for word in case.words if word not in str(refusal.value)]
    assert not missing, f"{missing} not in: {refusal.value}"
    assert still_poisoned(call.d)


@pytest.mark.parametrize("make", [good_contiguous, good_masked])
def test_the_unspoiled_call_is_accepted(make):
    call = make()
    call.run()
    assert call.d.isfinite().all()


@pytest.mark.parametrize("row", GOOD_GROUPED_CALLS, ids=name_of)
def test_accepted(row):
    make, case = row
    call = make()
    case.spoil(call)
    call.run()
    assert call.d.isfinite().all()


def test_names_are_unique_and_enough():
    assert len({name_of(row) for row in BAD_GROUPED_CALLS}) == len(BAD_GROUPED_CALLS) >= 70


@pytest.mark.parametrize("name", ["m_grouped_bf16_gemm_nt_contiguous", "m_grouped_bf16_gemm_nn_contiguous", "m_grouped_bf16_gemm_nt_masked"])
def test_a_wrong_number_of_arguments_is_a_type_error(name):
    with pytest.raises(TypeError):
        getattr(_C, name)(1, 2, 3)
