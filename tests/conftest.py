"""GPU tests skip visibly where no GPU has a kernel; settings that a test changes are put back."""

from __future__ import annotations

import pytest
import torch

import deep_gemm
from deep_gemm import _C


def why_no_gpu() -> str:
    """The reason why GPU tests cannot run here, or an empty string."""
    if not torch.cuda.is_available():
        return "no GPU"
    if not deep_gemm.is_supported("fp8_gemm_nt"):
        return f"no kernel for {torch.cuda.get_device_name()}"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_no_gpu()
    for item in items:
        if reason and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def restored_settings():
    """Puts the process-wide settings back after a test."""
    saved = deep_gemm.get_tc_util(), deep_gemm.get_pdl(), deep_gemm.get_compile_mode()
    yield
    deep_gemm.set_tc_util(saved[0])
    deep_gemm.set_pdl(saved[1])
    deep_gemm.set_compile_mode(saved[2])
    deep_gemm.set_ignore_compile_dims(False)
    deep_gemm.set_block_size_multiple_of(1)
    deep_gemm.set_num_sms(0)


@pytest.fixture
def validating(monkeypatch):
    """`DG_VALIDATE=1`, for a test."""
    monkeypatch.setenv("DG_VALIDATE", "1")
    _C.reload_settings()
    yield
    monkeypatch.undo()
    _C.reload_settings()
