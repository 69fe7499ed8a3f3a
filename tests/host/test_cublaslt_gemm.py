"""cublaslt_gemm_*: refusals before any write, CPU tensors, and the operators."""

import pytest
import torch
from refusals import refused_in_words
from torch._subclasses.fake_tensor import FakeTensorMode

import deep_gemm
from bf16_bad_calls import BUFFER
from bf16_cases import BF16, F32, LAYOUTS, Case
from cublaslt_cases import BAD_CALLS, CASES, FP8_CASES, Call, make_vendor_problem
from deep_gemm import torch_ops
from deep_gemm.testing import assert_bitwise_equal


@pytest.mark.parametrize("case", BAD_CALLS, ids=str)
def test_refused_by_name_and_untouched(case):
    call = Call()
    case.spoil(call)
    BUFFER.fill_(7.0)
    with refused_in_words(case.words):
        getattr(deep_gemm, f"cublaslt_gemm_{call.layout}")(call.a, call.b, call.d, call.c)
    assert bool((call.d == 7.0).all())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bf16_operands(case):
    problem = make_vendor_problem(case)
    assert_bitwise_equal(problem.run().contiguous(), problem.expected.float().to(case.dtype), str(case))


@pytest.mark.parametrize("case", FP8_CASES, ids=str)
def test_fp8_operands(case):
    problem = make_vendor_problem(case, fp8=True)
    assert_bitwise_equal(problem.run().contiguous(), problem.expected.float().to(case.dtype), str(case))


@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("c", ["none", "same", "apart"])
@pytest.mark.parametrize("m, n, k", [(0, 16, 16), (8, 0, 16), (0, 0, 0), (8, 16, 0)])
def test_empty_problems(m, n, k, c, fp8):
    problem = make_vendor_problem(Case("nt", m, n, k, F32, c), fp8=fp8)
    assert_bitwise_equal(problem.run().contiguous(), problem.expected.float(), "D")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_opcheck(layout):
    problem = make_vendor_problem(Case(layout, 16, 24, 40, F32, "apart"))
    operator = getattr(getattr(torch.ops, torch_ops.NAMESPACE), f"cublaslt_gemm_{layout}").default
    for c, accumulate in ((None, False), (problem.c, False), (None, True)):
        arguments = (problem.a, problem.b, torch.zeros(16, 24), c, accumulate)
        torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))


def test_compiled_is_eager():
    def layer(a, b):
        d = torch.empty(a.shape[0], b.shape[0], dtype=BF16)
        deep_gemm.cublaslt_gemm_nt(a, b, d)
        deep_gemm.cublaslt_gemm_nt(a, b, d, c=d)
        return d

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for m in (8, 40):
        problem = make_vendor_problem(Case("nt", m, 24, 40))
        assert_bitwise_equal(compiled(problem.a, problem.b), layer(problem.a, problem.b), str(m))


def test_fakes_refuse_as_the_contract_does():
    with FakeTensorMode():
        a, b, d = torch.empty(16, 40, dtype=BF16), torch.empty(24, 40, dtype=BF16), torch.empty(16, 24)
        deep_gemm.cublaslt_gemm_nt(a, b, d)
        for arguments, word in (
            ((a.float(), b, d), "a: expected"),
            ((a, b.float(), d), "b: expected torch.bfloat16"),
            ((a, b[:, :8], d), "b: expected shape"),
            ((a, b, d[:1]), "d: expected shape"),
            ((a, b, d, d.to(BF16)), "c: expected"),
            (((a, a), b, d), "a: expected a tensor"),
        ):
            with pytest.raises(deep_gemm.DeepGemmError, match=word):
                deep_gemm.cublaslt_gemm_nt(*arguments)
