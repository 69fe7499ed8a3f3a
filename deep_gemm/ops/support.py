"""Answers "does this operation run here?" from the operation table."""

from __future__ import annotations

from typing import Optional, Tuple, Union

import torch

from ..errors import DeepGemmError
from .table import BY_NAME

Arch = Union[str, int, Tuple[int, int]]


def arch_name(arch: Arch) -> str:
    """The table's name of an architecture: (9, 0), 90, "90a", "sm_90a" and "sm_90" are "sm_90"; "cpu" is itself."""
    if isinstance(arch, tuple) and len(arch) == 2 and all(isinstance(part, int) and 0 <= part < 100 for part in arch):
        return f"sm_{arch[0]}{arch[1]}"
    text = str(arch).lower()
    digits = (text[3:] if text.startswith("sm_") else text).rstrip("af")
    if text != "cpu" and not (digits.isdigit() and len(digits) >= 2):
        raise DeepGemmError(f"arch: expected 'cpu', 'sm_90a', 90 or (9, 0), got {arch!r}")
    return text if text == "cpu" else f"sm_{digits}"


def is_supported(op: str, arch: Optional[Arch] = None) -> bool:
    """Whether `op` has an implementation on an architecture.

    Args:
        op: a public name, e.g. "fp8_gemm_nt"; older names count.
        arch: "sm_90a", "sm_90", 90, (9, 0) or "cpu". None: the current CUDA device, or "cpu" where there is none.

    Raises:
        DeepGemmError: `op` is no operation of this library, or `arch` is no architecture.
    """
    if not isinstance(op, str) or op not in BY_NAME:
        raise DeepGemmError(f"op: {op!r} is no operation of this library; expected one of {', '.join(sorted(BY_NAME))}")
    if arch is None:
        arch = torch.cuda.get_device_capability() if torch.cuda.is_available() else "cpu"
    return arch_name(arch) in BY_NAME[op].archs
