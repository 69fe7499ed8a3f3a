"""The functions of the extension that skip pybind11's dispatcher, and the process-wide options."""

import sys

import pytest
import torch

import deep_gemm
from deep_gemm import _C
from deep_gemm.errors import DeepGemmError

FP8 = torch.float8_e4m3fn
UNTOUCHED = float("inf")


def operands(m=64, n=128, k=256):
    generator = torch.Generator().manual_seed(0)
    a = (torch.randn(m, k, generator=generator).to(FP8), torch.rand(m, (k + 127) // 128, generator=generator) + 0.5)
    b = (torch.randn(n, k, generator=generator).to(FP8),
         torch.rand((n + 127) // 128, (k + 127) // 128, generator=generator) + 0.5)
    return a, b, torch.full((m, n), UNTOUCHED, dtype=torch.bfloat16)


def call(a, b, d, c=None, recipe=None, recipe_a=None, recipe_b=None, dims="nk", cast=False, function=_C.fp8_gemm_nt):
    return function(a, b, d, c, recipe, recipe_a, recipe_b, dims, cast)


@pytest.mark.parametrize("form", [tuple, list])
def test_pairs_are_tuples_or_lists(form):
    a, b, d = operands()
    assert call(form(a), form(b), d) is None
    again = torch.empty_like(d)
    call(a, b, again)
    assert torch.equal(d, again) and not torch.any(d == UNTOUCHED)


@pytest.mark.parametrize("layout, a_turned, b_turned", [("nn", False, True), ("tn", True, True), ("tt", True, False)])
def test_layouts_equal_nt_on_transposed_views(layout, a_turned, b_turned):
    a, b, expected = operands()
    call(a, b, expected)
    d = torch.zeros_like(expected)
    turn = lambda pair, turned: tuple(t.t() for t in pair) if turned else pair  # noqa: E731
    call(turn(a, a_turned), turn(b, b_turned), d, function=getattr(_C, f"fp8_gemm_{layout}"))
    assert torch.equal(d, expected)


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(a=3), "a must be a pair (tensor, scales), got int"),
        (dict(b=(1, 2, 3)), "b must be a pair (tensor, scales), got 3 items"),
        (dict(a=(1, 2)), "a must be a tensor, got int"),
        (dict(b=(torch.zeros(128, 256).to(FP8), None)), "sfb (scales of b) must be a tensor, got NoneType"),
        (dict(d=None), "d must be a tensor, got NoneType"),
        (dict(c=1.0), "c must be a tensor, got float"),
        (dict(recipe=(1, 128)), "recipe must be None or a tuple of 3 positive integers, got (1, 128)"),
        (dict(recipe=(1, 128, "x")), "got (1, 128, 'x')"),
        (dict(recipe=(1, 128, 2**70)), "recipe must be"),
        (dict(recipe=(1, 128, -128)), "positive integers"),
        (dict(recipe=(0, 0, 0)), "positive integers"),
        (dict(recipe=5), "recipe must be"),
        (dict(recipe_a=(1,)), "recipe_a must be None or a tuple of 2"),
        (dict(recipe_b=(1, 2, 3)), "recipe_b must be None or a tuple of 2"),
        (dict(dims="nq"), "compiled_dims may hold the letters m, n, k (or be empty), got 'nq'"),
        (dict(dims=None), "compiled_dims must be a string"),
    ],
)
def test_refusals_leave_the_output_alone(changes, words):
    a, b, d = operands()
    arguments = dict(a=a, b=b, d=d, **{})
    arguments.update(changes)
    with pytest.raises(DeepGemmError) as caught:
        call(**arguments)
    assert words in str(caught.value)
    assert torch.all(d == UNTOUCHED)


@pytest.mark.parametrize("dims", ["", "m", "nk", "mnk"])
def test_compiled_dims_change_nothing(dims):
    a, b, d = operands()
    call(a, b, d, dims=dims)
    again = torch.empty_like(d)
    call(a, b, again)
    assert torch.equal(d, again)


def test_a_bad_truth_value_is_its_own_error():
    class Undecided:
        def __bool__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(*operands(), cast=Undecided())


def test_the_count_of_arguments_is_checked():
    with pytest.raises(TypeError):
        _C.fp8_gemm_nt(*operands())


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError):
        deep_gemm.fp8_gemm_nt(*operands(), nonsense=1)


@pytest.mark.parametrize("by_attributes", [False, True])
def test_calls_leak_no_reference(by_attributes):
    _C.read_tensors_by_attributes(by_attributes)
    try:
        check_no_leak()
    finally:
        _C.read_tensors_by_attributes(False)


def check_no_leak():
    a, b, d = operands(8, 8, 128)
    recipe = (1, 128, 128)
    watched = (None, a, a[0], a[1], b, d, recipe)

    def counts():
        return [sys.getrefcount(item) for item in watched[1:]]

    call(a, b, d, recipe=recipe)
    before = counts()
    for _ in range(50):
        call(a, b, d, recipe=recipe)
        with pytest.raises(DeepGemmError):
            call(a, b, d, recipe=(1, 2))
    assert counts() == before


def test_the_error_is_the_packages_own():
    assert issubclass(DeepGemmError, RuntimeError) and deep_gemm.DeepGemmError is DeepGemmError


@pytest.mark.parametrize(
    "setter, getter, values, bad",
    [
        ("set_tc_util", "get_tc_util", [(0, 100), (37, 37), (100, 100)], [-1, 101, 10**15]),
        ("set_compile_mode", "get_compile_mode", [(1, 1), (0, 0)], [2, -1]),
        ("set_pdl", "get_pdl", [(True, True), (False, False)], []),
    ],
)
def test_options_are_refused_in_the_setter(setter, getter, values, bad):
    first = getattr(_C, getter)()
    try:
        for value, reads_back in values:
            getattr(_C, setter)(value)
            assert getattr(_C, getter)() == reads_back
            for wrong in bad:
                with pytest.raises(DeepGemmError):
                    getattr(_C, setter)(wrong)
                assert getattr(_C, getter)() == reads_back
    finally:
        getattr(_C, setter)(first)


@pytest.mark.parametrize("bad", [0, -1, 1 << 20, (1,), (1, 2, 3), (0, 1), "x"])
def test_block_size_multiple_refuses(bad):
    with pytest.raises((DeepGemmError, TypeError)):
        _C.set_block_size_multiple_of(bad)


def test_block_size_multiple_takes_one_or_a_pair():
    for good in (64, (64, 128), [8, 16], 1):
        _C.set_block_size_multiple_of(good)
