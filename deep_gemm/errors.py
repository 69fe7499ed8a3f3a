"""The one exception of this library, and the one form of its messages."""

from __future__ import annotations

__all__ = ["DeepGemmError", "refusal"]


class DeepGemmError(RuntimeError):
    """A call that was refused, before any output was written and before anything was launched.

    The compiled extension raises this same class. Its message names the argument, what was expected, what
    came and what to do.
    """


def refusal(argument: str, expected: str, came: object, remedy: str) -> DeepGemmError:
    """Build the error for one argument that is not what its contract says.

    Args:
        argument: the argument's name as the caller writes it.
        expected: what the contract asks for.
        came: what was given.
        remedy: what the caller can do about it, as a sentence without its full stop.

    Returns:
        The error, for the caller to raise.
    """
    return DeepGemmError(f"{argument}: expected {expected}, but got {came}. {remedy}.")
