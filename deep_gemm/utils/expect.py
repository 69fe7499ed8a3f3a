"""Refusals of arguments that are not of the kind a helper works on, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..errors import refusal

__all__ = ["require_integer", "require_integers", "require_tensor"]


def is_integer(value: Any) -> bool:
    """Whether ``value`` is an integer of Python, NumPy or a traced program; a truth value is none."""
    return not isinstance(value, (bool, torch.Tensor)) and hasattr(type(value), "__index__")


def require_tensor(value: Any, argument: str) -> None:
    """Refuse what is not a dense PyTorch tensor."""
    if not isinstance(value, torch.Tensor):
        raise refusal(argument, "a torch.Tensor", type(value).__name__, "Pass a tensor")
    if value.layout != torch.strided:
        raise refusal(argument, "a dense tensor", f"layout {value.layout}", "Call .to_dense() on it")


def require_integer(value: Any, argument: str, remedy: str) -> None:
    """Refuse what is not an integer."""
    if not is_integer(value):
        raise refusal(argument, "an integer", repr(value), remedy)


def require_integers(values: Any, argument: str, remedy: str) -> None:
    """Refuse what is not a tuple or another sequence of integers."""
    is_sequence = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_sequence or not all(is_integer(value) for value in values):
        raise refusal(argument, "a sequence of integers", repr(values), remedy)
