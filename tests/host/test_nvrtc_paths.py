"""The order in which pip's NVRTC folders are searched."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from deep_gemm import nvrtc_paths


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A site folder with the NVRTC wheels of CUDA 12, 13 and 14, and a folder that has none."""
    for name in ("cu13", "cu14", "cuda_nvrtc"):
        (tmp_path / name / "lib").mkdir(parents=True)
    (tmp_path / "cudnn").mkdir()
    monkeypatch.setattr(nvrtc_paths, "wheel_roots", lambda: [tmp_path])
    return tmp_path


@pytest.mark.parametrize(
    "cuda, expected",
    [
        (None, ["cu14", "cu13", "cuda_nvrtc"]),
        ("12.4", ["cuda_nvrtc", "cu14", "cu13"]),
        ("13.0", ["cu13", "cu14", "cuda_nvrtc"]),
        ("15.1", ["cu14", "cu13", "cuda_nvrtc"]),
    ],
)
def test_the_wheel_that_pytorch_brings_goes_first(wheels, cuda, expected):
    folders = [Path(folder) for folder in nvrtc_paths.nvrtc_folders(cuda)]
    assert [folder.parent.name for folder in folders if folder.parent.parent == wheels] == expected


def test_folders_exist():
    assert all(Path(folder).is_dir() for folder in nvrtc_paths.nvrtc_folders())


def test_a_module_that_is_called_nvidia_is_no_obstacle(monkeypatch):
    module = types.ModuleType("nvidia")
    module.__spec__ = None
    monkeypatch.setitem(sys.modules, "nvidia", module)
    assert nvrtc_paths.wheel_roots() == []
