"""Where pip packages put NVRTC: the folders to search before a toolkit's. Nothing is opened here."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import List

import torch


def nvrtc_folders() -> List[str]:
    """Existing folders that may hold libnvrtc, the newest layout first: `nvidia/cu*/lib` (CUDA 13 wheels),
    `nvidia/cuda_nvrtc/lib` (CUDA 12 wheels), then PyTorch's own."""
    folders: List[Path] = []
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folders += sorted(Path(root).glob("cu[0-9]*/lib"), reverse=True)
        folders.append(Path(root) / "cuda_nvrtc" / "lib")
    folders.append(Path(torch.__file__).parent / "lib")
    return [str(folder) for folder in folders if folder.is_dir()]
