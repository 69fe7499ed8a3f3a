"""The operators of the m-grouped FP8 GEMMs: eager bits under tracing and fake tensors, and the declared mutation alone."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import deep_gemm
from deep_gemm.testing import assert_bitwise_equal
from m_grouped_cases import ContiguousCase, MaskedCase, Problem, alignment_set_to, make_problem

N, K = 136, 256
CONTIGUOUS = ContiguousCase(((0, 100), (1, 128), (2, 1)), N, K)
NN = ContiguousCase(((1, 30), (0, 60)), N, K, layout="nn", ragged=True)
MASKED = MaskedCase(24, (24, 0, 5), N, K)
CASES = [CONTIGUOUS, NN, MASKED]
OPS = {
    CONTIGUOUS: torch.ops.deep_gemm.m_grouped_fp8_gemm_nt_contiguous.default,
    NN: torch.ops.deep_gemm.m_grouped_fp8_gemm_nn_contiguous.default,
    MASKED: torch.ops.deep_gemm.m_grouped_fp8_gemm_nt_masked.default,
}
OPTIONS = (None, None, None, "nk", False)


def op_arguments(problem: Problem) -> tuple:
    """The argument list of the operator."""
    b = problem.b
    if problem.case is NN:
        b = tuple(part.transpose(1, 2) for part in b)
    if isinstance(problem.case, MaskedCase):
        return (*problem.a, *b, problem.d, problem.layout, problem.case.hint(), *OPTIONS)
    return (*problem.a, *b, problem.d, problem.layout, *OPTIONS, False, True, None, problem.case.alignment)


def zeroed(case) -> Problem:
    """The problem with finite numbers around D: tools that compare outputs do not look at NaN's bits."""
    problem = make_problem(case, "cpu")
    problem.buffer.zero_()
    return problem


def contiguous_layer(a, sfa, b, sfb, layout):
    """Both names of the layout, plain and with options; the result is used."""
    d, e = (torch.empty(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device) for _ in range(2))
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, sfa), (b, sfb), d, layout)
    deep_gemm.m_grouped_fp8_fp4_gemm_nt_contiguous([a, sfa], [b, sfb], e, m_indices=layout, recipe=(1, 128, 128))
    return d, e + d


def masked_layer(a, sfa, b, sfb, counts):
    """A product that uses only a part of its output, and one into a part of a bigger one."""
    d = torch.zeros(a.shape[0], a.shape[1], b.shape[1], dtype=torch.bfloat16, device=a.device)
    buffer = torch.zeros(a.shape[0], a.shape[1] + 4, b.shape[1], dtype=torch.bfloat16, device=a.device)
    deep_gemm.m_grouped_fp8_gemm_nt_masked((a, sfa), (b, sfb), d, counts, a.shape[1] // 2)
    deep_gemm.fp8_m_grouped_gemm_nt_masked((a, sfa), (b, sfb), buffer[:, 2:-2], counts, expected_m=3)
    return d * 2, buffer


def inputs_of(problem: Problem) -> tuple:
    return (*problem.a, *problem.b, problem.layout)


def assert_equal_bits(got, expected):
    for left, right in zip(got, expected):
        assert_bitwise_equal(left, right)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_contiguous_is_eager_for_every_m(backend):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(contiguous_layer, fullgraph=True, dynamic=True, backend=counter)
    for blocks in (CONTIGUOUS.blocks, ((2, 50), (1, 129)), ((0, 300), (2, 1), (1, 128))):
        problem = make_problem(ContiguousCase(blocks, N, K, experts=3), "cpu")
        assert_equal_bits(compiled(*inputs_of(problem)), contiguous_layer(*inputs_of(problem)))
    assert counter.frame_count == 1, "another M compiled again"


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_masked_is_eager_for_every_capacity(backend):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(masked_layer, fullgraph=True, dynamic=True, backend=counter)
    for capacity in (24, 8, 132):  # multiples of 4: the pitch of aligned factors is M itself
        problem = make_problem(MaskedCase(capacity, (capacity, 0, 5), N, K), "cpu")
        assert_equal_bits(compiled(*inputs_of(problem)), masked_layer(*inputs_of(problem)))
    assert counter.frame_count == 1, "another capacity compiled again"


def psum_layer(a, sfa, b, sfb, ends):
    """Ends instead of ids, zeros in the padding or not."""
    d, e = (torch.full((a.shape[0], b.shape[1]), 7, dtype=torch.bfloat16, device=a.device) for _ in range(2))
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, sfa), (b, sfb), d, ends, use_psum_layout=True, expected_m_for_psum_layout=40)
    b, sfb = b.transpose(1, 2), sfb.transpose(1, 2)
    deep_gemm.m_grouped_fp8_gemm_nn_contiguous((a, sfa), (b, sfb), e, ends, use_psum_layout=True, ensure_zero_padding=False)
    return d, e


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_calls_with_ends_are_eager(backend):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(psum_layer, fullgraph=True, dynamic=True, backend=counter)
    for blocks in (CONTIGUOUS.blocks, ((0, 300), (1, 129), (2, 1))):
        problem = make_problem(ContiguousCase(blocks, N, K, experts=3), "cpu")
        starts = [int((problem.layout == expert).nonzero()[0]) for expert in range(3)]
        ends = torch.tensor([start + rows for start, (_, rows) in zip(starts, blocks)], dtype=torch.int32)
        inputs = (*problem.a, *problem.b, ends)
        got = compiled(*inputs)
        assert_equal_bits(got, psum_layer(*inputs))
        assert_bitwise_equal(got[0], problem.run())
    assert counter.frame_count == 1, "another M compiled again"


def test_fake_tensors_know_the_length_of_ends():
    with FakeTensorMode():
        a, sfa = torch.empty(256, K).to(torch.float8_e4m3fn), torch.empty(256, K // 128)
        b, sfb = torch.empty(3, N, K).to(torch.float8_e4m3fn), torch.empty(3, 2, K // 128)
        d, ends = torch.empty(256, N, dtype=torch.bfloat16), torch.empty(3, dtype=torch.int32)
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, sfa), (b, sfb), d, ends, use_psum_layout=True)
        for layout, psum in ((ends, False), (torch.empty(256, dtype=torch.int32), True)):
            with pytest.raises(deep_gemm.DeepGemmError, match="^grouped_layout: "):
                deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, sfa), (b, sfb), d, layout, use_psum_layout=psum)
        with pytest.raises(deep_gemm.DeepGemmError, match="^expected_m_for_psum_layout: "):
            deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, sfa), (b, sfb), d, ends, expected_m_for_psum_layout=3)


def test_a_compiled_call_follows_the_alignment():
    torch._dynamo.reset()
    compiled = torch.compile(contiguous_layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for alignment in (128, 64, 128):
        case = ContiguousCase(((0, 20), (1, 64), (2, 130)), N, K, alignment=alignment)
        problem = make_problem(case, "cpu")
        with alignment_set_to(alignment):
            got = compiled(*inputs_of(problem))
        problem.run()
        assert_bitwise_equal(got[0], problem.d)


class Recorder(TorchDispatchMode):
    """Lists the operators that a dispatch mode sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_dispatch_mode_sees_the_operator_with_eager_bits(case):
    expected = make_problem(case, "cpu").run()
    problem = make_problem(case, "cpu")
    with Recorder() as recorder:
        problem.run()
    assert OPS[case] in recorder.seen
    assert_bitwise_equal(problem.d, expected)
    assert problem.untouched()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_eager_calls_do_not_pass_the_dispatcher(case, monkeypatch):
    def forbidden(*args):
        raise AssertionError("an eager call went through the operator")

    for name in ("call_m_grouped_contiguous", "call_m_grouped_masked"):
        monkeypatch.setattr(deep_gemm.ops.m_grouped_fp8_gemm, name, forbidden)
    make_problem(case, "cpu").run()
    problem = make_problem(case, "cpu")
    with pytest.raises(AssertionError, match="went through"), Recorder():
        problem.run()


class Plain(torch.Tensor):
    """A subclass that changes nothing."""


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("position", range(6))
def test_tensor_subclass_in_any_position(case, position):
    expected = make_problem(case, "cpu").run()
    problem = make_problem(case, "cpu")
    parts = [*problem.a, *problem.b, problem.d, problem.layout]
    parts[position] = parts[position].as_subclass(Plain)
    other = Problem(case, tuple(parts[:2]), tuple(parts[2:4]), parts[4], problem.buffer, parts[5])
    other.run()
    assert_bitwise_equal(problem.d, expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcheck(case):
    # test_schema compares with torch.allclose, which has no FP8: the next test does its work on bytes.
    utilities = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(OPS[case], op_arguments(zeroed(case)), test_utils=utilities)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_the_declared_argument_is_mutated(case):
    op = OPS[case]
    declared = [argument.name for argument in op._schema.arguments if argument.is_write]
    assert declared == ["d"] and not op._schema.returns
    arguments = op_arguments(make_problem(case, "cpu"))
    before = [argument.clone() if isinstance(argument, torch.Tensor) else argument for argument in arguments]
    op(*arguments)
    for argument, old, declaration in zip(arguments, before, op._schema.arguments):
        if isinstance(argument, torch.Tensor):
            same = torch.equal(argument.contiguous().view(torch.uint8), old.contiguous().view(torch.uint8))
            assert same == (declaration.name != "d"), declaration.name


def fake_call(case, **change):
    """The operator's arguments by name, on fake tensors, some of them replaced."""
    problem = make_problem(case, "cpu")
    named = dict(zip((argument.name for argument in OPS[case]._schema.arguments), op_arguments(problem)))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = {name: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for name, x in named.items()}
        fakes.update({name: make(fakes[name]) for name, make in change.items()})
        assert OPS[case](**fakes) is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fake_tensors_need_no_data(case):
    fake_call(case)
    packed = lambda t, shape: torch.empty(shape, dtype=torch.int32)  # noqa: E731
    if case is CONTIGUOUS:
        m = case.rows().numel()
        fake_call(case, sfa=lambda t: packed(t, (m, 1)), sfb=lambda t: packed(t, (3, N, 1)))


wider = lambda t: torch.empty((*t.shape[:-1], t.shape[-1] + 16), dtype=t.dtype)  # noqa: E731
FAKE_REFUSALS = {
    "a dtype": ({"a": lambda t: torch.empty(t.shape)}, "^a: expected torch.float8_e4m3fn"),
    "a rank": ({"a": lambda t: t[0]}, "^a: expected rank"),
    "a depth": ({"a": wider}, "^a: expected shape"),
    "b dtype": ({"b": lambda t: torch.empty(t.shape)}, "^b: expected torch.float8_e4m3fn"),
    "sfa shape": ({"sfa": wider}, "^sfa: expected shape"),
    "sfb shape": ({"sfb": wider}, "^sfb: expected shape"),
    "sfb groups": ({"sfb": lambda t: t[1:]}, "^sfb: expected shape"),
    "d dtype": ({"d": lambda t: torch.empty(t.shape)}, "^d: expected torch.bfloat16"),
    "d shape": ({"d": wider}, "^d: expected shape"),
    "device": ({"sfa": lambda t: torch.empty(t.shape, device="meta")}, "^sfa: expected the device of d"),
    "recipe": ({"recipe": lambda _: [1, 128]}, "^recipe"),
    "compiled_dims": ({"compiled_dims": lambda _: "nx"}, "^compiled_dims"),
}
LAYOUT_REFUSALS = {
    "dtype": (lambda t: torch.empty(t.shape, dtype=torch.int64), "expected torch.int32"),
    "rank": (lambda t: t[None], "expected rank 1"),
    "length": (wider, "expected shape"),
}


@pytest.mark.parametrize("kind", FAKE_REFUSALS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fake_call_is_refused(case, kind):
    change, message = FAKE_REFUSALS[kind]
    with pytest.raises(deep_gemm.DeepGemmError, match=message):
        fake_call(case, **change)


@pytest.mark.parametrize("kind", LAYOUT_REFUSALS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fake_call_refuses_its_layout_by_name(case, kind):
    name = "masked_m" if case is MASKED else "grouped_layout"
    make, message = LAYOUT_REFUSALS[kind]
    with pytest.raises(deep_gemm.DeepGemmError, match=f"^{name}: {message}"):
        fake_call(case, **{name: make})


def test_export_of_a_masked_layer():
    problem = make_problem(MASKED, "cpu")

    class Experts(torch.nn.Module):
        def __init__(self, weight, factors):
            super().__init__()
            self.register_buffer("weight", weight)
            self.register_buffer("factors", factors)

        def forward(self, a, sfa, counts):
            return masked_layer(a, sfa, self.weight, self.factors, counts)

    module = Experts(*problem.b)
    inputs = (*problem.a, problem.layout)
    exported = torch.export.export(module, inputs)
    assert_equal_bits(exported.module()(*inputs), module(*inputs))
