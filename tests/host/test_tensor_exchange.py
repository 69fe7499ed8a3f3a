"""Tensors as C++ sees them, through the DLPack exchange API and through the attribute reader: the same views and refusals."""

import gc
import sys
import types
import weakref

import pytest
import torch

import deep_gemm
from deep_gemm import _C
from deep_gemm.errors import DeepGemmError

HAS_EXCHANGE_API = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
DTYPES = [
    name
    for name in (
        "float8_e4m3fn float8_e8m0fnu float8_e5m2 float4_e2m1fn_x2 bfloat16 float16 float32 float64 int8 uint8 bool "
        "int16 int32 int64"
    ).split()
    if hasattr(torch, name)
]


@pytest.fixture(params=["exchange", "attributes"], autouse=True)
def reader(request):
    if request.param == "exchange" and not HAS_EXCHANGE_API:
        pytest.skip("this PyTorch has no DLPack C exchange API")
    _C.read_tensors_by_attributes(request.param == "attributes")
    yield request.param
    _C.read_tensors_by_attributes(False)


def seen(tensor):
    view = _C.describe_tensor(tensor)
    return view["dtype"], view["device"], view["shape"], view["stride"], view["data"]


def expected(tensor):
    return str(tensor.dtype), str(tensor.device), tuple(tensor.shape), tuple(tensor.stride()), tensor.data_ptr()


def refusal(tensor):
    with pytest.raises(DeepGemmError) as caught:
        _C.describe_tensor(tensor)
    return str(caught.value)


def test_the_reader_is_the_one_asked_for(reader):
    assert _C.describe_tensor(torch.empty(1))["fast"] == (reader == "exchange")


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name):
    tensor = torch.empty(3, 4, dtype=getattr(torch, name))
    assert seen(tensor) == expected(tensor)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fnuz])
def test_other_dtypes_are_read_for_the_contract_to_refuse(dtype):
    assert "no use for" in _C.describe_tensor(torch.empty(2, 2, dtype=dtype))["dtype"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(8, 8)[1:, ::2],
        lambda: torch.randn(8, 6).t(),
        lambda: torch.randn(2, 3, 4, 5, 6),
        lambda: torch.randn(5).expand(4, 5),
        lambda: torch.tensor(1.0),
        lambda: torch.empty(0, 5),
        lambda: torch.empty(4, 0),
        lambda: torch.randn(3, 3, requires_grad=True),
        lambda: torch.nn.Parameter(torch.randn(3, 3)),
        lambda: torch.randn(3, 3, requires_grad=True) * 2,
        lambda: torch.randn(3, 3).as_subclass(type("Named", (torch.Tensor,), {})),
    ],
    ids="strided transposed rank5 expanded scalar no_rows no_columns requires_grad parameter graph subclass".split(),
)
def test_kinds_of_tensors(make):
    tensor = make()
    assert seen(tensor) == expected(tensor)


def test_inference_mode():
    with torch.inference_mode():
        tensor = torch.randn(3, 4)
        assert seen(tensor) == expected(tensor)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: torch.eye(3).to_sparse(), "dense tensor with strides, got layout torch.sparse_coo"),
        (lambda: torch.eye(3).to_sparse_csr(), "layout torch.sparse_csr"),
        (lambda: torch.randn(3, dtype=torch.complex64).conj().imag, "resolve_neg()"),
        (lambda: torch.zeros(3, dtype=torch.complex128).conj().imag[1:], "resolve_neg()"),
        (lambda: torch.zeros(3, dtype=torch.complex32).conj().imag, "resolve_neg()"),
        (lambda: torch._neg_view(torch.randn(3)), "resolve_neg()"),
        (lambda: torch.empty(1, 1, 1, 1, 1, 1), "6 dimensions"),
        (lambda: torch.empty(3, device="meta"), "must be on a cpu or cuda device, got meta"),
        (lambda: [1.0], "must be a tensor, got list"),
        (lambda: None, "must be a tensor, got NoneType"),
        (lambda: 3, "must be a tensor, got int"),
    ],
    ids="coo csr conj_imag conj_imag64 conj_imag16 neg_view rank6 meta list none int".split(),
)
@pytest.mark.filterwarnings("ignore:Sparse", "ignore:ComplexHalf")
def test_refusals(make, words):
    assert words in refusal(make())


@pytest.mark.parametrize("name", [name for name in DTYPES if name not in ("float16", "float32", "float64")])
def test_a_lazily_negated_view_is_not_seen_as_another_dtype(name):
    """Why tensors of these dtypes are not asked whether they are negated."""
    negated = torch.zeros(4, 16, dtype=torch.complex64).conj().imag
    assert negated.is_neg()
    with pytest.raises(RuntimeError, match="negative bit"):
        negated.view(getattr(torch, name))


def test_a_fake_tensor_has_no_memory():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3, 3)
    assert "no memory" in refusal(fake)


def test_a_wrapper_subclass_has_no_memory():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("not reached by a refusal")

    assert "no memory" in refusal(Wrapper(torch.randn(3)))


def look_alike(tensor, **changes):
    members = dict(
        dtype=f"paddle.{str(tensor.dtype).split('.')[1]}",
        shape=list(tensor.shape),
        strides=list(tensor.stride()),
        data_ptr=tensor.data_ptr,
        __dlpack_device__=lambda: (1, 0),
    )
    members.update(changes)
    return types.SimpleNamespace(**members)


def test_a_look_alike_without_torch_attributes():
    tensor = torch.randn(4, 6)[:, :4]
    assert seen(look_alike(tensor)) == expected(tensor)


@pytest.mark.parametrize("where", ["framework.cuda", "framework.device.cuda"])
def test_a_look_alike_on_a_device_has_its_frameworks_stream(where, monkeypatch):
    cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x1000 + device))
    framework = types.ModuleType("framework")
    if where == "framework.cuda":
        framework.cuda = cuda
    else:
        framework.device = types.SimpleNamespace(cuda=cuda)
    monkeypatch.setitem(sys.modules, "framework", framework)
    members = vars(look_alike(torch.randn(4), __dlpack_device__=lambda self: (2, 3)))
    tensor = type("Tensor", (), {"__module__": "framework.core", **members})()
    view = _C.describe_tensor(tensor)
    assert view["device"] == "cuda:3" and view["stream"] == 0x1003


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(strides=[1, 2, 3]), "2 dimensions but 3 strides"),
        (dict(shape=["x", 1]), "cannot be read as a tensor"),
        (dict(data_ptr=lambda: "there"), "cannot be read as a tensor"),
        (dict(data_ptr=lambda: 0), "no memory"),
        (dict(shape=None), "cannot be read as a tensor"),
        (dict(data_ptr=lambda: None), "NoneType"),
        (dict(data_ptr=lambda: -1), "negative"),
        (dict(data_ptr=lambda: 2**80), "too "),
        (dict(__dlpack_device__=lambda: (2, -1)), "index -1"),
        (dict(__dlpack_device__=lambda: (2, 2**40)), "index 1099511627776"),
    ],
    ids="strides shape pointer null no_shape no_pointer negative huge no_device far_device".split(),
)
def test_a_broken_look_alike_is_a_sentence(changes, words):
    said = refusal(look_alike(torch.randn(2, 2), **changes))
    assert words in said and "C++" not in said


def test_a_freed_storage_is_named():
    tensor = torch.randn(2, 2)
    tensor.untyped_storage().resize_(0)
    assert "storage was freed" in refusal(tensor)


def dense(a, b, d, late):
    deep_gemm.fp8_gemm_nt(a, b, d, disable_ue8m0_cast=late)


def contiguous(a, b, d, late):
    ids = torch.zeros(d.shape[0], dtype=torch.int32)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, tuple(x[None] for x in b), d, ids, disable_ue8m0_cast=late)


def without_heads_middle(a, b, d, late):
    deep_gemm.fp8_gemm_nt_skip_head_mid(a, b, d, (8, 0, 8), disable_ue8m0_cast=late)


@pytest.mark.parametrize("call", [dense, contiguous, without_heads_middle])
def test_a_pair_emptied_while_it_is_read(call):
    """Reading a look-alike runs its code, and so does a flag that is read after it; what the pair held lives until the call ends."""
    factors = [torch.ones(16, 1)]
    gone = weakref.ref(factors[0])
    alive: list = []

    def look():
        gc.collect()
        alive.append(gone() is not None)

    def emptied():
        pair.clear()
        factors.clear()
        look()
        return [16, 128]

    class Late:
        def __bool__(self):
            look()
            return False

    data = torch.zeros(16, 128).to(torch.float8_e4m3fn)
    changes = {name: property(lambda self, value=value: value) for name, value in vars(look_alike(data)).items()}
    pair = [type("Emptying", (), {**changes, "shape": property(lambda self: emptied())})(), factors[0]]
    d = torch.ones(16, 16, dtype=torch.bfloat16 if call is contiguous else torch.float32)
    call(pair, (data, torch.ones(1, 1)), d, Late())
    assert alive and all(alive) and len(alive) > 1 and gone() is None
    assert not d.any()


class Clearing:
    """An integer whose reading empties the list that holds it."""

    def __init__(self, owner, value):
        self.owner, self.value = owner, value

    def __index__(self):
        self.owner.clear()
        return self.value

    __int__ = __index__


def test_lists_of_integers_may_empty_themselves():
    data, d = torch.zeros(16, 128).to(torch.float8_e4m3fn), torch.ones(16, 16)
    a, b = (data, torch.ones(16, 1)), (data, torch.ones(1, 1))
    recipe: list = []
    recipe += [Clearing(recipe, 1), 128, 128]
    splits: list = []
    splits += [Clearing(splits, 8), 0, 8]
    shape: list = []
    shape += [Clearing(shape, 16), 128]
    assert _C.describe_tensor(look_alike(data, shape=shape))["shape"] == (16, 128)
    deep_gemm.fp8_gemm_nt(a, b, d, recipe=recipe)
    deep_gemm.fp8_gemm_nt_skip_head_mid(a, b, d, splits)
    assert not recipe and not splits and not d.any()


class Unsteady(list):
    """A list that tells another length than it has, or none."""

    length: object = 0

    def __len__(self):
        if self.length == 0:
            raise RuntimeError("no length")
        return self.length


@pytest.mark.parametrize("length", [-1, 0, 2, 3 * 10**9, 2**62])
def test_lists_of_unsteady_length(length, monkeypatch):
    monkeypatch.setattr(Unsteady, "length", length)
    data, d = torch.zeros(16, 128).to(torch.float8_e4m3fn), torch.ones(16, 16)
    a, b = (data, torch.ones(16, 1)), (data, torch.ones(1, 1))
    deep_gemm.fp8_gemm_nt(a, b, d, recipe=Unsteady([1, 128, 128]))
    deep_gemm.fp8_gemm_nt_skip_head_mid(a, b, d, Unsteady([8, 0, 8]))
    _C.plan_fp8_gemm(128, 128, 128, head_splits=Unsteady([64, 0, 64]))
    assert _C.describe_tensor(look_alike(data, shape=Unsteady([16, 128])))["shape"] == (16, 128)
    assert not d.any()


def test_interrupts_in_integers_go_on():
    data, d = torch.zeros(16, 128).to(torch.float8_e4m3fn), torch.ones(16, 16)
    a, b = (data, torch.ones(16, 1)), (data, torch.ones(1, 1))

    class Interrupted:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deep_gemm.fp8_gemm_nt(a, b, d, recipe=[Interrupted(), 128, 128])
    with pytest.raises(KeyboardInterrupt):
        deep_gemm.fp8_gemm_nt_skip_head_mid(a, b, d, [Interrupted(), 0, 8])
    assert bool((d == 1).all())


def test_a_key_that_empties_its_dictionary():
    class Key:
        armed = False

        def __hash__(self):
            if self.armed:
                options.clear()
            return 7

        def __repr__(self):
            return "the key"

    options = {Key(): 1}
    Key.armed = True
    with pytest.raises(DeepGemmError, match="unknown key the key"):
        _C.plan_fp8_gemm(128, 128, 128, arch=options)


def test_an_interrupt_is_not_swallowed():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _C.describe_tensor(look_alike(torch.randn(2, 2), data_ptr=interrupted))


def test_many_types_do_not_confuse_the_cache():
    kinds = [type(f"Kind{i}", (torch.Tensor,), {}) for i in range(40)]
    for _ in range(2):
        for kind in kinds:
            tensor = torch.randn(2, 3).as_subclass(kind)
            assert seen(tensor) == expected(tensor)


def test_a_type_forgotten_while_it_is_read():
    """What the cache drops runs code that reads tensors of so many types that the one being read is dropped as well."""
    armed = []

    class Call:
        def __call__(self, tensor):
            return False

        def __del__(self):
            if armed:
                armed.clear()
                for tensor in others:
                    seen(tensor)

    class Fresh:
        def __get__(self, instance, owner):
            return Call()

    def of_a_new_type(dtype, **members):
        return torch.zeros(2, dtype=dtype).as_subclass(type("Kind", (torch.Tensor,), members))

    others = [of_a_new_type(torch.int32) for _ in range(8)]
    first, second = (of_a_new_type(torch.float32, is_neg=Fresh()) for _ in range(2))
    seen(first)
    for _ in range(7):
        seen(of_a_new_type(torch.int32))
    armed.append(True)
    assert seen(second) == expected(second)


def test_no_reference_is_kept():
    tensor = torch.randn(2, 3)
    ref = weakref.ref(tensor)
    seen(tensor)
    del tensor
    gc.collect()
    assert ref() is None
