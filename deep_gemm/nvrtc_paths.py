"""Where pip packages put NVRTC: the folders to search before a toolkit's. Nothing is opened here."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import List, Optional

import torch


def wheel_roots() -> List[Path]:
    """The folders of the `nvidia` namespace package, which several installations may share."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except ValueError:  # something else is called nvidia and was not imported from a file
        return []
    return [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []


def nvrtc_folders(cuda: Optional[str] = torch.version.cuda) -> List[str]:
    """Existing folders that may hold libnvrtc: `nvidia/cu*/lib` (wheels of CUDA 13 and later, the newest first),
    `nvidia/cuda_nvrtc/lib` (CUDA 12), then PyTorch's own. The one that PyTorch's CUDA version `cuda` came with goes first:
    the driver is known to load what it compiles."""
    folders: List[Path] = []
    for root in wheel_roots():
        folders += sorted(root.glob("cu[0-9]*/lib"), reverse=True)
        folders.append(root / "cuda_nvrtc" / "lib")
    if cuda:
        brought = {"12": "cuda_nvrtc"}.get(cuda.partition(".")[0], f"cu{cuda.partition('.')[0]}")
        folders.sort(key=lambda folder: folder.parent.name != brought)
    folders.append(Path(torch.__file__).parent / "lib")
    return [str(folder) for folder in folders if folder.is_dir()]
