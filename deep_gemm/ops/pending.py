"""Stand-ins for operations of the contract that run nowhere yet: right signature, and a refusal that says what runs."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

from ..errors import DeepGemmError
from .table import OPS, Op, supported_sentence


def refusal(op: Op) -> str:
    """The message of a call to `op`, which has no implementation yet."""
    return (
        f"{op.name} ({op.summary}) is not implemented yet on any architecture. Supported: {supported_sentence()}. "
        f"Ask is_supported({op.name!r}, arch) before the call, or use another implementation."
    )


def pending_function(op: Op) -> Callable[..., Any]:
    """A function with the signature of `op` that refuses every well-formed call; a wrong argument list is a TypeError."""
    binder = eval(f"lambda {op.signature}: None", {"torch": torch})
    binder.__name__ = binder.__qualname__ = op.name

    def function(*args: Any, **kwargs: Any) -> Any:
        binder(*args, **{op.older_keywords.get(key, key): value for key, value in kwargs.items()})
        raise DeepGemmError(refusal(op))

    function.__name__ = function.__qualname__ = op.name
    function.__module__ = __package__.rpartition(".")[0]
    function.__signature__ = inspect.signature(binder)  # type: ignore[attr-defined]
    function.__doc__ = f"{op.summary[0].upper()}{op.summary[1:]}. Not implemented yet: raises DeepGemmError."
    function.is_pending = True  # type: ignore[attr-defined]
    return function


def pending_functions(module: str = "") -> dict[str, Callable[..., Any]]:
    """name -> stand-in for every operation of `module` (a submodule's name, "" for the package) that runs nowhere yet."""
    functions: dict[str, Callable[..., Any]] = {}
    for op in OPS:
        if not op.archs and op.module == module:
            function = pending_function(op)
            functions.update({name: function for name in (op.name, *op.aliases)})
    return functions
