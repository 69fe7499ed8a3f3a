"""The tools that tests and benches use, and the helpers for distributed programs."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import types
import unittest

import pytest
import torch

import deep_gemm.testing.utils as testing_utils
from deep_gemm.testing import (
    assert_bitwise_equal,
    bench,
    bench_kineto,
    calc_diff,
    compare,
    count_bytes,
    get_arch_major,
    ignore_env,
    test_filter,
)
from deep_gemm.testing import bench as bench_function
from deep_gemm.utils import dist_print, init_dist, uneven_all_gather

bench_module = sys.modules[bench_function.__module__]


def test_calc_diff():
    x = torch.tensor([1.0, 2.0])
    assert calc_diff(x, x) == 0 and calc_diff(x, -x) == 2
    assert calc_diff(x, torch.tensor([3.0, 0.0])).item() == pytest.approx(1 - 2 * 3 / (5 + 9), abs=1e-15)
    assert calc_diff(torch.zeros(3), torch.zeros(3)) == 0 and calc_diff(torch.zeros(3), torch.ones(3)) == 1
    assert calc_diff(torch.empty(0), torch.empty(0)) == 0
    assert not calc_diff(torch.tensor([math.nan]), torch.ones(1)) < 1
    tiny = torch.tensor([1.0, 1e-7], dtype=torch.float32)
    assert 0 < calc_diff(tiny, torch.tensor([1.0, 0.0])) < 1e-13  # FP32 would lose this
    assert f"{calc_diff(x, x):.3f}" == "0.000"
    assert calc_diff(x[None], x) == 0
    for other in (x[:, None], x[:1], torch.ones(3), torch.ones(2, 2)):
        with pytest.raises(RuntimeError, match=r"^y: expected the shape of x, \(2,\)"):
            calc_diff(x, other)


def test_count_bytes():
    pair = (torch.empty(3, dtype=torch.bfloat16), torch.empty(2, 2))
    assert count_bytes() == 0 and count_bytes(None) == 0
    assert count_bytes(pair, None, [pair, [torch.empty(5, dtype=torch.int8)]]) == 2 * (6 + 16) + 5


def test_assert_bitwise_equal():
    x = torch.tensor([[1.0, math.nan], [0.0, 2.0]])
    assert_bitwise_equal(x, x.clone())
    assert_bitwise_equal(x, x.t().contiguous().t())
    assert_bitwise_equal(torch.empty(0, 3), torch.empty(0, 3))
    assert_bitwise_equal(x.to(torch.float8_e4m3fn), x.to(torch.float8_e4m3fn))
    changed = x.clone()
    changed[1, 0] = -0.0
    with pytest.raises(AssertionError, match=r"mine: 1 of 4 elements .* first at \(1, 0\): 0.0 against -0.0"):
        assert_bitwise_equal(x, changed, "mine")
    with pytest.raises(AssertionError):
        assert_bitwise_equal(x, x.double())
    with pytest.raises(AssertionError):
        assert_bitwise_equal(x, x.view(4))


def test_compare_measures():
    reference = torch.tensor([[3.0, -4.0], [0.0, 5.0]])
    assert compare(reference, reference).relative_error == 0
    actual = reference.clone()
    actual[1, 0] = 0.01  # judged against the root mean square, as its reference is 0
    measured = compare(actual, reference)
    assert measured.relative_error == pytest.approx(0.01 / math.sqrt(50 / 4)) and measured.worst == (1, 0)
    assert measured.cosine_gap == pytest.approx(1 - 50 / math.sqrt(50 * 50.0001), abs=1e-12)
    assert compare(torch.zeros(2), torch.zeros(2)).relative_error == 0
    assert compare(torch.empty(0), torch.empty(0)).worst is None
    huge = torch.tensor([1e300, 1e290], dtype=torch.float64)
    assert compare(huge, huge).relative_error == 0


@pytest.mark.parametrize(
    ("actual", "reference", "message"),
    [
        ([1.0, 1.5], [1.0, 1.0], r"worst at \(1,\): 1.5 against 1.0"),
        ([1.0, math.nan], [1.0, 1.0], r"NaN in 1 places .* first at \(1,\)"),
        ([1.0, 1.0], [math.nan, 1.0], r"NaN in 1 places .* first at \(0,\)"),
        ([math.inf, 1.0], [-math.inf, 1.0], "infinity"),
        ([1.0, 1e-30], [0.0, 0.0], "relative error"),
        ([0.0, 0.0], [0.0, 1e-30], "relative error"),
        ([1.0], [1.0, 1.0], "shape"),
    ],
)
def test_compare_refuses(actual: list[float], reference: list[float], message: str):
    with pytest.raises(AssertionError, match=message):
        compare(torch.tensor(actual), torch.tensor(reference), label="case")


def test_compare_bounds_each_hold_alone():
    reference = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    turned = reference + 0.015 * reference.roll(1).sign() * reference.abs()
    with pytest.raises(AssertionError, match="cosine gap"):
        compare(turned, reference)
    assert compare(turned, reference, max_cosine_gap=1e-3).relative_error < 2e-2
    with pytest.raises(AssertionError, match="relative error"):
        compare(turned, reference, max_cosine_gap=1e-3, max_relative_error=1e-2)


def test_compare_takes_nan_and_infinity_in_equal_places():
    reference = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    assert compare(reference.bfloat16(), reference).worst == (0,)
    assert compare(reference[1:], reference[1:]).worst is None


def test_arch_major(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(testing_utils, "current_arch_major", lambda: None)
    assert get_arch_major() == 0
    monkeypatch.setattr(testing_utils, "current_arch_major", lambda: 9)
    assert get_arch_major() == 9


def test_ignore_env(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DG_SOMETHING", "7")
    holds = True

    @ignore_env("DG_SOMETHING", lambda: holds)
    def read(fail: bool = False) -> str | None:
        if fail:
            raise ValueError
        return os.environ.get("DG_SOMETHING")

    assert read() is None and os.environ["DG_SOMETHING"] == "7"
    with pytest.raises(ValueError):
        read(fail=True)
    assert os.environ["DG_SOMETHING"] == "7"
    holds = False
    assert read() == "7"
    monkeypatch.delenv("DG_SOMETHING")
    holds = True
    assert read() is None and "DG_SOMETHING" not in os.environ


def test_filter_runs_skips_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    holds = True

    @test_filter(lambda: holds)
    def some_test(value: int) -> int:
        return value

    assert some_test(3) == 3
    holds = False
    with pytest.raises(unittest.SkipTest, match="some_test"):
        some_test(3)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert some_test(3) is None
    assert "some_test: skipped" in capsys.readouterr().out


def test_bench_calls_as_often_as_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    calls = []
    assert bench(lambda: calls.append(0), num_warmups=2, num_tests=3) > 0
    assert len(calls) == 5


def gpu_event(name: str, count: int, microseconds: float) -> types.SimpleNamespace:
    return types.SimpleNamespace(key=name, count=count, self_device_time_total=microseconds)


def test_kineto_mean_of_launches():
    events = [gpu_event("sm90_fp8_gemm_1d2d", 4, 20.0), gpu_event("transpose_fp32", 2, 3.0)]
    mean = bench_module._mean_launch_seconds
    assert mean(events, "gemm_", False) == pytest.approx(5e-6)
    assert mean(events, "mqa_logits", False) == 0
    twice = [*events, gpu_event("sm90_bf16_gemm_nt", 4, 60.0)]
    with pytest.raises(AssertionError, match="sm90_bf16_gemm_nt"):
        mean(twice, "gemm_", False)
    assert mean(twice, "gemm_", True) == pytest.approx(10e-6)
    assert mean(twice, "bf16_gemm", False) == pytest.approx(15e-6)


def test_kineto_without_a_matching_kernel(capfd: pytest.CaptureFixture[str]):
    calls, barriers = [], []

    def speak() -> None:
        calls.append(0)
        os.write(1, b"loud")

    seconds = bench_kineto(
        speak, ("a", "b"), num_tests=2, suppress_kineto_output=True, barrier=lambda: barriers.append(0)
    )
    assert seconds == (0, 0) and len(calls) == len(barriers) == 4
    assert "loud" not in capfd.readouterr().out
    assert bench_kineto(speak, "a", num_tests=1) == 0
    assert "loud" in capfd.readouterr().out


def test_kineto_under_another_profiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DG_USE_NVIDIA_TOOLS", "1")
    assert bench_kineto(lambda: pytest.fail("was run"), "gemm_") == 1
    assert bench_kineto(lambda: pytest.fail("was run"), ("gemm_", "transpose")) == (1, 1)


@pytest.mark.gpu
def test_kineto_finds_a_kernel():
    x = torch.randn(1024, 1024, device="cuda")
    assert 0 < bench_kineto(lambda: torch.sort(x), "ort", num_tests=3, with_multiple_kernels=True) < 1
    with pytest.raises(AssertionError):
        bench_kineto(lambda: (x.bfloat16(), x.half(), x + 1), "elementwise", num_tests=3)
    assert 0 < bench(lambda: x @ x, high_precision=True) < 1


def gather_on(local_rank: int, port: int) -> None:
    """One of two processes: every rank adds a differing number of rows, one of them none."""
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
    rank, size, group = init_dist(local_rank, 2)
    assert (rank, size) == (local_rank, 2)
    whole = torch.arange(15.0).view(5, 3)
    mine = whole[:2] if rank == 0 else whole[2:]
    assert torch.equal(uneven_all_gather(mine, group=group), whole)
    assert torch.equal(uneven_all_gather(mine.t(), dim=1), whole.t())
    assert torch.equal(uneven_all_gather(mine.t(), dim=-1), whole.t())
    fp8 = whole.to(torch.float8_e4m3fn)
    gathered = uneven_all_gather(fp8 if rank == 0 else fp8[:0])
    assert torch.equal(gathered.float(), whole) and gathered.dtype == torch.float8_e4m3fn
    assert uneven_all_gather(whole[:0]).shape == (0, 3)
    assert torch.equal(uneven_all_gather(torch.full((rank + 1,), rank)), torch.tensor([0, 1, 1]))
    dist_print("from all")
    dist_print("from one", once_in_node=True)
    torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # tearing Gloo down can hang in PyTorch 2.6 once the other process has left


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no distributed package")
def test_two_processes_gather_uneven_tensors():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = os.path.dirname(os.path.abspath(__file__))
    program = (
        f"import sys; sys.path[:0] = [{here!r}]; import test_testing; "
        f"test_testing.gather_on(int(sys.argv[1]), {port})"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    for name in ("WORLD_SIZE", "RANK"):
        environment.pop(name, None)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank)], env=environment, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=60)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0, 0]
    assert "[rank 0] from all" in outputs[0] and "[rank 1] from all" in outputs[1]
    assert "from one" in outputs[0] and "from one" not in outputs[1]


def test_print_without_a_process_group(capsys: pytest.CaptureFixture[str]):
    dist_print("alone")
    dist_print()
    assert capsys.readouterr().out == "alone\n\n"


def test_import_leaves_cuda_alone():
    program = (
        "import torch, deep_gemm.utils, deep_gemm.testing; "
        "assert not torch.cuda.is_initialized(); "
        "x = deep_gemm.utils.per_token_cast_to_fp8(torch.ones(2, 128), True)[1]; "
        "deep_gemm.utils.transform_sf_into_required_layout(x, 2, 128, (1, 128)); "
        "assert not torch.cuda.is_initialized()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)
