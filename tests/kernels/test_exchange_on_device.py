"""CUDA tensors as C++ sees them: both readers, the current stream, and threads without a current context."""

import threading

import pytest
import torch

import deep_gemm
from deep_gemm import _C

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["exchange", "attributes"], autouse=True)
def reader(request):
    if request.param == "exchange" and not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no DLPack C exchange API")
    _C.read_tensors_by_attributes(request.param == "attributes")
    yield request.param
    _C.read_tensors_by_attributes(False)


def operands(m=64, n=128, k=256):
    a = deep_gemm.per_token_cast_to_fp8(torch.randn(m, k, device="cuda"), use_ue8m0=False)
    b = deep_gemm.per_block_cast_to_fp8(torch.randn(n, k, device="cuda"), use_ue8m0=False)
    return a, b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def test_views_and_the_current_stream():
    tensor = torch.randn(8, 16, device="cuda")[:, :4]
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            view = _C.describe_tensor(tensor)
        assert view["stream"] == stream.cuda_stream
    assert view["data"] == tensor.data_ptr() and view["stride"] == tensor.stride()
    assert view["device"] == str(tensor.device)


def test_both_readers_give_the_same_bits(reader):
    a, b, d = operands()
    deep_gemm.fp8_gemm_nt(a, b, d)
    _C.read_tensors_by_attributes(reader == "exchange")
    other = torch.empty_like(d)
    deep_gemm.fp8_gemm_nt(a, b, other)
    assert torch.equal(d, other)


def test_a_thread_without_a_context():
    a, b, d = operands()
    deep_gemm.fp8_gemm_nt(a, b, d)
    torch.cuda.synchronize()
    outputs = [torch.empty_like(d) for _ in range(4)]
    threads = [threading.Thread(target=deep_gemm.fp8_gemm_nt, args=(a, b, out)) for out in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert all(torch.equal(d, out) for out in outputs)


def test_sm_count_is_the_devices():
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    assert deep_gemm.get_num_sms() == total
    with pytest.raises(deep_gemm.DeepGemmError):
        deep_gemm.set_num_sms(total + 1)
    assert deep_gemm.get_num_sms() == total
