"""Which architecture a tensor's device has, asked for only when a rule depends on it."""

from __future__ import annotations

import torch

__all__ = ["arch_major_of", "current_arch_major"]


def arch_major_of(tensor: torch.Tensor) -> int | None:
    """Major compute capability of the tensor's own device (9 for SM90, 10 for SM100); None on the CPU."""
    if tensor.device.type != "cuda":
        return None
    return torch.cuda.get_device_capability(tensor.device)[0]


def current_arch_major() -> int | None:
    """Major compute capability of the current CUDA device; None where there is none."""
    return torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else None
