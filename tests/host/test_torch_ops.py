"""The torch operators: same bits as eager under tracing, fake tensors, subclasses; declared mutation is the true one."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import deep_gemm
from deep_gemm import torch_ops

LAYOUTS = ("nt", "nn", "tn", "tt")
M, N, K = 33, 192, 384


def operands(m: int = M, per_row_b: bool = False):
    """(a, b) of a small product, as `nt` takes them."""
    torch.manual_seed(m)
    a = deep_gemm.per_token_cast_to_fp8(torch.randn(m, K), use_ue8m0=False)
    cast = deep_gemm.per_token_cast_to_fp8 if per_row_b else deep_gemm.per_block_cast_to_fp8
    return a, cast(torch.randn(N, K), use_ue8m0=False)


def in_layout(layout: str, a, b):
    """The operands of `nt` as another layout takes them."""
    turn = lambda pair: (pair[0].t(), pair[1].t())  # noqa: E731
    return (turn(a) if layout[0] == "t" else a), (turn(b) if layout[1] == "n" else b)


def op_arguments(a, b, d, c=None, accumulate=False, recipe=None):
    """The argument list of the operator."""
    return (*a, *b, d, c, accumulate, recipe, None, None, "nk", False)


def layer(a, sfa, b, sfb):
    """Three products: plain, into C in place, with a separate C."""
    d = torch.empty(a.shape[0], b.shape[0], dtype=torch.bfloat16, device=a.device)
    deep_gemm.fp8_gemm_nt((a, sfa), (b, sfb), d)
    e = d * 2
    deep_gemm.fp8_gemm_nt([a, sfa], [b, sfb], e, c=e)
    f = torch.empty_like(e)
    deep_gemm.fp8_gemm_nt((a, sfa), (b, sfb), f, c=d, recipe=(1, 128, 128), compiled_dims="")
    return d, e, f + d


def assert_equal_bits(got, expected):
    for left, right in zip(got, expected):
        deep_gemm.testing.assert_bitwise_equal(left, right)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_bits_are_eager_bits(backend):
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=backend)
    for m in (33, 7, 64, 1):
        a, b = operands(m)
        assert_equal_bits(compiled(*a, *b), layer(*a, *b))


def quantised_layer(x, b, factors):
    """Casts, factor layouts and the product: a linear layer as users write it."""
    data, sf = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
    aligned = deep_gemm.get_mn_major_tma_aligned_tensor(sf)
    required = deep_gemm.transform_sf_into_required_layout(sf, x.shape[0], x.shape[1], (1, 128, 128), is_sfa=True)
    d, e = (torch.empty(x.shape[0], b.shape[0], dtype=torch.bfloat16) for _ in range(2))
    deep_gemm.fp8_gemm_nt((data, aligned), (b, factors), d)
    deep_gemm.fp8_gemm_nt((data, required), (b, factors), e)
    return d, e, aligned


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_whole_layer_compiles(backend):
    torch._dynamo.reset()
    compiled = torch.compile(quantised_layer, fullgraph=True, dynamic=True, backend=backend)
    _, b = operands()
    for m in (33, 7, 64):
        x = torch.randn(m, K)
        got, expected = compiled(x, *b), quantised_layer(x, *b)
        assert_equal_bits(got, expected)
        assert got[2].stride() == expected[2].stride()


def test_dynamic_m_does_not_recompile():
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for m in (33, 7, 64, 200):
        a, b = operands(m)
        compiled(*a, *b)
    assert counter.frame_count == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_compiles(layout):
    torch._dynamo.reset()
    function = getattr(deep_gemm, f"fp8_gemm_{layout}")
    a, b = in_layout(layout, *operands())

    def call():
        d = torch.zeros(M, N)
        function(a, b, d, c=d)
        return (d,)

    assert_equal_bits(torch.compile(call, fullgraph=True, backend="aot_eager")(), call())


def test_a_view_of_d_as_c_and_a_view_as_d():
    torch._dynamo.reset()
    a, b = operands()

    def call(buffer):
        d = buffer[:, :N]
        deep_gemm.fp8_gemm_nt(a, b, d, c=buffer[:, :N])
        return (buffer * 1,)

    start = torch.randn(M, N + 64)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    assert_equal_bits(compiled(start.clone()), call(start.clone()))


def test_inputs_of_the_graph_are_mutated_in_place():
    torch._dynamo.reset()
    a, b = operands()

    def call(d):
        deep_gemm.fp8_gemm_nt(a, b, d)

    d, expected = torch.zeros(M, N), torch.zeros(M, N)
    torch.compile(call, fullgraph=True, backend="inductor")(d)
    call(expected)
    assert_equal_bits([d], [expected])


def test_factor_strides_survive_the_compiler():
    """An MN-major SF may end at its last used element: a copy into another layout would still be right, a wrong stride not."""
    torch._dynamo.reset()
    a, b = operands(7)
    sfa = torch.empty_strided(a[1].shape, (1, 8)).copy_(a[1])
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="inductor")
    assert_equal_bits(compiled(a[0], sfa, *b), layer(*a, *b))


class Recorder(TorchDispatchMode):
    """Lists the operators that a dispatch mode sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_dispatch_mode_sees_the_operator(layout):
    a, b = in_layout(layout, *operands())
    d, expected = torch.empty(M, N), torch.empty(M, N)
    function = getattr(deep_gemm, f"fp8_gemm_{layout}")
    function(a, b, expected)
    with Recorder() as recorder:
        function(a, b, d)
    assert getattr(torch.ops.deep_gemm, f"fp8_gemm_{layout}").default in recorder.seen
    assert_equal_bits([d], [expected])


def test_eager_calls_do_not_pass_the_dispatcher(monkeypatch):
    def forbidden(*args):
        raise AssertionError("an eager call went through the operator")

    monkeypatch.setattr(deep_gemm.ops.fp8_gemm, "call_fp8_gemm", forbidden)
    a, b = operands()
    b = (torch.nn.Parameter(b[0], requires_grad=False), b[1])
    d = torch.empty(M, N)
    deep_gemm.fp8_gemm_nt(a, b, d, c=d)
    with pytest.raises(AssertionError, match="went through"), Recorder():
        deep_gemm.fp8_gemm_nt(a, b, d)


class Plain(torch.Tensor):
    """A subclass that changes nothing."""


class Wrapper(torch.Tensor):
    """A subclass whose data is another tensor: it has no memory of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(arg.inner if isinstance(arg, cls) else arg for arg in args), **(kwargs or {}))


class LyingAboutItsClass:
    """No tensor, whatever it says when asked."""

    @property
    def __class__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "operands, needed",
    [
        (lambda t, s: (), False),
        (lambda t, s: (t, None, torch.nn.Parameter(t)), False),
        (lambda t, s: ((t, t), [t, t], t, None), False),
        (lambda t, s: (3, "b", object(), (1, 2, 3), [], {"t": s}), False),
        (lambda t, s: (s,), True),
        (lambda t, s: (t, None, s), True),
        (lambda t, s: ((t, s), t), True),
        (lambda t, s: (t, [s]), True),
    ],
    ids="nothing plain pairs no_tensors one last in_a_tuple in_a_list".split(),
)
def test_what_needs_the_operator(operands, needed):
    t = torch.zeros(2)
    operands = operands(t, t.as_subclass(Plain))
    assert torch_ops.needs_op(*operands) is needed
    with Recorder():
        assert torch_ops.needs_op(*operands) is True
    assert torch_ops.needs_op(*operands) is needed


def test_an_error_of_asking_is_the_calls():
    with pytest.raises(ZeroDivisionError):
        torch_ops.needs_op(LyingAboutItsClass())


@pytest.mark.parametrize("wrap", [Plain, Wrapper])
@pytest.mark.parametrize("position", range(6))
def test_tensor_subclass_in_any_position(wrap, position):
    a, b = operands()
    c = torch.randn(M, N)
    d, expected = torch.empty(M, N), torch.empty(M, N)
    deep_gemm.fp8_gemm_nt(a, b, expected, c=c)
    arguments = [*a, *b, d, c]
    inner = arguments[position]
    arguments[position] = inner.as_subclass(Plain) if wrap is Plain else Wrapper(inner)
    deep_gemm.fp8_gemm_nt(arguments[:2], arguments[2:4], arguments[4], c=arguments[5])
    assert_equal_bits([d], [expected])


def test_fake_tensors_need_no_data():
    a, b = operands()
    with FakeTensorMode() as mode:
        fake_a, fake_b = ([mode.from_tensor(tensor) for tensor in pair] for pair in (a, b))
        d = torch.empty(M, N, dtype=torch.bfloat16)
        assert deep_gemm.fp8_gemm_nt(fake_a, fake_b, d) is None
        assert deep_gemm.fp8_gemm_nt(fake_a, fake_b, d, c=d) is None
    assert tuple(d.shape) == (M, N)


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype)


FP8 = torch.float8_e4m3fn
FAKE_REFUSALS = {
    "a dtype": ({"a": (meta(M, K), meta(M, 3))}, "^a: expected torch.float8_e4m3fn"),
    "a rank": ({"a": (meta(1, M, K, dtype=FP8), meta(M, 3))}, "^a: expected rank 2"),
    "b depth": ({"b": (meta(N, K + 128, dtype=FP8), meta(2, 4))}, "^b: expected shape"),
    "sfa shape": ({"a": (meta(M, K, dtype=FP8), meta(M, 4))}, "^sfa: expected shape"),
    "sfa dtype": ({"a": (meta(M, K, dtype=FP8), meta(M, 3, dtype=torch.float64))}, "^sfa: expected torch.float32"),
    "sfb shape": ({"b": (meta(N, K, dtype=FP8), meta(N, 3))}, "^sfb: expected shape"),
    "sfb shape of the recipe": ({"recipe": (1, 1, 128)}, "^sfb: expected shape"),
    "d shape": ({"d": meta(M, N + 1)}, "^d: expected shape"),
    "d dtype": ({"d": meta(M, N, dtype=torch.float16)}, "^d: expected torch.bfloat16 or torch.float32"),
    "c shape": ({"c": meta(M, 1)}, "^c: expected shape"),
    "c dtype": ({"c": meta(M, N, dtype=torch.bfloat16)}, "^c: expected torch.float32"),
    "device": ({"d": torch.empty(M, N, device="meta")}, "expected the device of d"),
    "compiled_dims": ({"compiled_dims": "nx"}, "^compiled_dims"),
    "recipe of two": ({"recipe": (1, 128)}, "^recipe"),
    "recipe_a alone": ({"recipe_a": (1, 128)}, "^recipe"),
    "recipe beside parts": ({"recipe": (1, 128, 128), "recipe_a": (1, 128), "recipe_b": (128, 128)}, "^recipe"),
    "granularity": ({"recipe": (1, 128, 64)}, "^recipe"),
    "no pair": ({"a": None}, "^a: expected a pair .*NoneType"),
    "bare tensor": ({"b": meta(N, K, dtype=FP8)}, "^b: expected a pair .*Tensor"),
    "three items": ({"a": (meta(M, K, dtype=FP8), meta(M, 3), None)}, "^a: expected a pair .*3 items"),
    "no factors": ({"b": (meta(N, K, dtype=FP8), None)}, r"^sfb \(scales of b\): expected a tensor"),
    "no output": ({"d": None}, "^d: expected a tensor"),
    "c is a number": ({"c": 1.0}, "^c: expected a tensor"),
    "recipe is a number": ({"recipe": 3}, "^recipe: expected None or a tuple"),
    "recipe of floats": ({"recipe": (1.0, 128, 128)}, "^recipe: expected None or a tuple"),
    "recipe is text": ({"recipe_a": "ab", "recipe_b": (128, 128)}, "^recipe_a: expected None or a tuple"),
    "no compiled_dims": ({"compiled_dims": None}, "^compiled_dims"),
}


@pytest.mark.parametrize("kind", FAKE_REFUSALS)
def test_fake_call_is_refused(kind):
    change, message = FAKE_REFUSALS[kind]
    good = {"a": (meta(M, K, dtype=FP8), meta(M, 3)), "b": (meta(N, K, dtype=FP8), meta(2, 3)), "d": meta(M, N)}
    with FakeTensorMode(allow_non_fake_inputs=True):
        deep_gemm.fp8_gemm_nt(**good)
        with pytest.raises(deep_gemm.DeepGemmError, match=message):
            deep_gemm.fp8_gemm_nt(**{**good, **change})


@pytest.mark.parametrize("kind", ["a dtype", "b depth", "sfa shape", "sfb shape", "d shape", "d dtype", "c shape"])
def test_a_fake_refusal_is_an_eager_refusal(kind):
    change, _ = FAKE_REFUSALS[kind]
    good = {"a": (meta(M, K, dtype=FP8), meta(M, 3)), "b": (meta(N, K, dtype=FP8), meta(2, 3)), "d": meta(M, N)}
    with pytest.raises(deep_gemm.DeepGemmError):
        deep_gemm.fp8_gemm_nt(**{**good, **change})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fake_accepts_packed_factors(layout):
    a, b = (meta(M, K, dtype=FP8), meta(M, 1, dtype=torch.int32)), (meta(N, K, dtype=FP8), meta(N, 1, dtype=torch.int32))
    a, b = in_layout(layout, a, b)
    with FakeTensorMode(allow_non_fake_inputs=True):
        getattr(deep_gemm, f"fp8_gemm_{layout}")(a, b, meta(M, N))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("with_c", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_opcheck(layout, with_c, accumulate):
    a, b = in_layout(layout, *operands())
    op = getattr(torch.ops.deep_gemm, f"fp8_gemm_{layout}").default
    c = torch.randn(M, N) if with_c and not accumulate else None
    arguments = op_arguments(a, b, torch.zeros(M, N), c, accumulate)
    # test_schema compares with torch.allclose, which has no FP8: the next test does its work on bytes.
    utilities = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(op, arguments, test_utils=utilities)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_declared_argument_is_mutated(layout, accumulate):
    a, b = in_layout(layout, *operands())
    op = getattr(torch.ops.deep_gemm, f"fp8_gemm_{layout}").default
    declared = [argument.name for argument in op._schema.arguments if argument.is_write]
    assert declared == ["d"] and not op._schema.returns
    arguments = op_arguments(a, b, torch.zeros(M, N), None if accumulate else torch.randn(M, N), accumulate)
    before = [argument.clone() if isinstance(argument, torch.Tensor) else argument for argument in arguments]
    op(*arguments)
    for argument, old, declaration in zip(arguments, before, op._schema.arguments):
        if isinstance(argument, torch.Tensor):
            same = torch.equal(argument.contiguous().view(torch.uint8), old.contiguous().view(torch.uint8))
            assert same == (declaration.name != "d"), declaration.name


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    class Linear(torch.nn.Module):
        def __init__(self, weight, factors):
            super().__init__()
            self.register_buffer("weight", weight)
            self.register_buffer("factors", factors)

        def forward(self, a, sfa):
            d = torch.empty(a.shape[0], self.weight.shape[0], dtype=torch.bfloat16)
            deep_gemm.fp8_gemm_nt((a, sfa), (self.weight, self.factors), d)
            return d

    a, b = operands()
    module = Linear(*b)
    rows = torch.export.Dim("rows", min=2, max=4096)
    exported = torch.export.export(module, a, dynamic_shapes=({0: rows}, {0: rows}), strict=strict)
    other, _ = operands(70)
    assert_equal_bits([exported.module()(*other)], [module(*other)])


def test_namespace_is_the_package_name():
    assert torch_ops.NAMESPACE == "deep_gemm"
