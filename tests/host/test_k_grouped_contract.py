"""Calls of the GEMMs grouped along K that must be refused: by name, saying what was expected and what came, before any write."""

import pytest
import torch

import deep_gemm
from deep_gemm import _C
from fp8_calls import poison, still_poisoned
from k_grouped_bad_calls import BAD_K_GROUPED_CALLS, GOOD, GOOD_K_GROUPED_CALLS, good_bf16, good_nt, good_tn
from refusals import refused_in_words


def name_of(row) -> str:
    return f"{row[0].__name__[5:]}-{row[1]}"


@pytest.mark.parametrize("row", BAD_K_GROUPED_CALLS, ids=name_of)
def test_refused_by_name_and_untouched(row):
    make, case = row
    call = make()
    case.spoil(call)
    poison(call.d)
    with refused_in_words(case.words):
        call.run()
    assert still_poisoned(call.d)


@pytest.mark.parametrize("make", GOOD)
def test_the_unspoiled_call_is_accepted(make):
    call = make()
    call.run()
    assert torch.equal(call.d[:, 0, 0], torch.tensor([128.0, 0.0, 384.0])) and bool((call.d == call.d[:, :1, :1]).all())


@pytest.mark.parametrize("row", GOOD_K_GROUPED_CALLS, ids=name_of)
def test_accepted(row):
    make, case = row
    call = make()
    case.spoil(call)
    call.run()
    assert call.d.isfinite().all() and call.d[0, 0, 0] in (100, 128)


def test_names_are_unique_and_enough():
    assert len({name_of(row) for row in BAD_K_GROUPED_CALLS}) == len(BAD_K_GROUPED_CALLS) >= 120


@pytest.mark.parametrize("make, alignment, accepted", [(good_bf16, 96, False), (good_bf16, 192, False), (good_bf16, 64, True), (good_tn, 96, False), (good_tn, 32, True), (good_nt, 96, True)])
def test_alignment(make, alignment, accepted):
    """A stage of the BF16 kernel holds 64 of K; sizes that are known are multiples of the alignment."""
    call = make()
    deep_gemm.set_mk_alignment_for_contiguous_layout(alignment)
    try:
        if accepted:
            return call.run()
        with pytest.raises(deep_gemm.DeepGemmError, match="alignment: .*multiple of 64|ks_cpu: .*multiples of"):
            call.run()
    finally:
        deep_gemm.set_mk_alignment_for_contiguous_layout(128)


@pytest.mark.parametrize("name, count", [("k_grouped_fp8_gemm_nt_contiguous", 10), ("k_grouped_fp8_gemm_tn_contiguous", 10), ("k_grouped_bf16_gemm_tn_contiguous", 9)])
def test_a_wrong_number_of_arguments_is_a_type_error(name, count):
    with pytest.raises(TypeError, match=f"{count} positional"):
        getattr(_C, name)(1, 2, 3)


@pytest.mark.parametrize("make", GOOD)
def test_older_keywords(make):
    call = make()
    a, b = (call.a, call.b) if call.sfa is None else ((call.a, call.sfa), (call.b, call.sfb))
    function = getattr(deep_gemm, call.name)
    function(a, b, call.d, ks=call.ks, ks_tensor=call.layout)
    assert call.d[2, 0, 0] == 384
    with pytest.raises(TypeError, match="older name of 'ks_cpu'"):
        function(a, b, call.d, ks=call.ks, ks_cpu=call.ks, grouped_layout=call.layout)
