"""`DG_VALIDATE=1`: every rule names the row or group and the value, before any write; off, nothing is looked at."""

import pytest
import torch

import deep_gemm
from deep_gemm import _C, validation
from refusals import refused_in_words
from validation_cases import BF16, CASES, GOOD, POISON, Call


@pytest.mark.usefixtures("validating")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_rule(case):
    call = Call(case.kind, case.letters)
    case.spoil(call)
    with refused_in_words(case.words):
        call.run()
    assert bool((call.d == POISON).all())


@pytest.mark.usefixtures("validating")
@pytest.mark.parametrize("kind, letters", GOOD)
def test_good_calls_pass_whatever_padding_holds(kind, letters):
    call, other = Call(kind, letters), Call(kind, letters)
    call.run()
    assert not bool(call.d.isnan().any()) and not torch.equal(call.d, other.d)


@pytest.mark.parametrize("case", [case for case in CASES if case.name.startswith("sf")], ids=str)
def test_off_by_default(case):
    call = Call(case.kind, case.letters)
    case.spoil(call)
    call.run()
    assert not bool((call.d == POISON).all())


@pytest.mark.usefixtures("validating")
def test_compiled_graphs_are_looked_at():
    def layer(a, sfa, b, sfb, d, counts):
        deep_gemm.m_grouped_fp8_gemm_nt_masked((a, sfa), (b, sfb), d, counts, 0)

    call = Call("counts")
    call.layout[1] = 301
    a, b = torch.ones(3, 300, 256).to(torch.float8_e4m3fn), torch.ones(3, 136, 256).to(torch.float8_e4m3fn)
    with pytest.raises(RuntimeError, match="masked_m: expected from 0 to 300 rows, got 301 for group 1"):
        torch.compile(layer, backend="aot_eager")(a, call.sfa, b, call.sfb, call.d, call.layout)


@pytest.mark.usefixtures("validating")
def test_what_the_contract_refuses_is_left_to_it():
    call = Call("ids")
    call.layout = call.layout[:-1]
    with pytest.raises(deep_gemm.DeepGemmError, match="grouped_layout: expected shape"):
        call.run()
    call = Call("counts")
    call.layout = call.layout.long()
    with pytest.raises(deep_gemm.DeepGemmError, match="masked_m: expected dtype"):
        call.run()
    call = Call("counts")
    call.sfa = call.sfa[:, :-1]
    with pytest.raises(deep_gemm.DeepGemmError):
        call.run()


def test_a_bad_setting_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("DG_VALIDATE", "maybe")
    with pytest.raises(deep_gemm.DeepGemmError, match="DG_VALIDATE.*'maybe'"):
        _C.reload_settings()


@pytest.mark.parametrize("value, words", [(0x00FF0000, "0x00ff0000"), (-1, "0xffffffff")])
def test_packed_exponents(value, words):
    factors = torch.full((2, 4, 1), 0x7F7F7F7F, dtype=torch.int32)
    validation.check_factors(factors, "sfb", ("group", "row", "word"))
    factors[1, 2, 0] = value
    with pytest.raises(deep_gemm.DeepGemmError, match=f"below 255.*{words} in group 1, row 2, word 0"):
        validation.check_factors(factors, "sfb", ("group", "row", "word"))
    wanted = torch.tensor([[True] * 4, [True, True, False, True]])
    validation.check_factors(factors, "sfa", ("group", "row", "word"), wanted)


def test_exponents_of_their_own_dtype():
    factors = torch.full((2, 3), 127, dtype=torch.uint8)
    validation.check_factors(factors.view(torch.float8_e8m0fnu), "sfa", ("row", "K block"))
    factors[1, 2] = 255
    with pytest.raises(deep_gemm.DeepGemmError, match="nan in row 1, K block 2"):
        validation.check_factors(factors.view(torch.float8_e8m0fnu), "sfa", ("row", "K block"))


@pytest.mark.parametrize(
    "name, layout, rest, words",
    [
        ("m_grouped_bf16_gemm_nt_contiguous", [0, 0, 3], ("nk", False, True, None, 128), "got 3 in row 2"),
        ("m_grouped_bf16_gemm_nn_contiguous", [4, 4], ("nk", True, True, None, 128), "got 4 for group 0"),
        ("m_grouped_bf16_gemm_nt_masked", [0, 9], (0, "nk"), "got 9 for group 1"),
        ("k_grouped_bf16_gemm_tn_contiguous", [128, 300], (None, "mn", True, 128), "got 300 for group 1"),
    ],
)
def test_rules_of_bf16_operands(name, layout, rest, words):
    """By the arguments of their bindings."""
    layout = torch.tensor(layout, dtype=torch.int32)
    masked, along_k = name.endswith("masked"), name.startswith("k_grouped")
    a = torch.zeros((256, 16) if along_k else (2, 8, 8) if masked else (3, 8), dtype=BF16)
    b, d = torch.zeros(2, 8, 8, dtype=BF16), torch.zeros(2, 16, 8)
    arguments = (a, b, d, None, layout, *rest) if along_k else (a, b, d, layout, *rest)
    with pytest.raises(deep_gemm.DeepGemmError, match=words):
        validation.check_call(name, arguments)


@pytest.mark.usefixtures("validating")
@pytest.mark.parametrize("letters", ["nt", "nn"])
def test_bf16_calls_are_looked_at(letters):
    a, b, d = torch.ones(128, 8, dtype=BF16), torch.ones(2, 8, 8, dtype=BF16), torch.full((128, 8), POISON, dtype=BF16)
    ids = torch.zeros(128, dtype=torch.int32)
    call = getattr(deep_gemm, f"m_grouped_bf16_gemm_{letters}_contiguous")
    call(a, b, d, ids)
    d.fill_(POISON)
    ids[100] = 1
    with pytest.raises(deep_gemm.DeepGemmError, match="one group, that of row 0, 0, .*got 1 in row 100"):
        call(a, b, d, ids)
    assert bool((d == POISON).all())
    counts = torch.tensor([3, 9], dtype=torch.int32)
    with pytest.raises(deep_gemm.DeepGemmError, match="masked_m: expected from 0 to 8 rows, got 9 for group 1"):
        deep_gemm.m_grouped_bf16_gemm_nt_masked(b, b, torch.empty_like(b), counts, 0)
