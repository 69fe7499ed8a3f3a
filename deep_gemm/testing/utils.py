"""Decorators for tests, and the architecture they run on."""

from __future__ import annotations

import functools
import os
import unittest
from collections.abc import Callable
from typing import Any

from ..utils.arch import current_arch_major

__all__ = ["get_arch_major", "ignore_env", "test_filter"]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def get_arch_major() -> int:
    """Major compute capability of the current CUDA device (9 for SM90, 10 for SM100); 0 if there is none."""
    return current_arch_major() or 0


def ignore_env(name: str, condition: Callable[[], bool]) -> Decorator:
    """Decorator: run a function without the environment variable ``name`` wherever ``condition()`` holds.

    The condition is asked at each call; the variable is back afterwards, also after an exception.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if not condition():
                return function(*args, **kwargs)
            saved = os.environ.pop(name, None)
            try:
                return function(*args, **kwargs)
            finally:
                if saved is not None:
                    os.environ[name] = saved

        return wrapped

    return decorate


def test_filter(condition: Callable[[], bool]) -> Decorator:
    """Decorator: run a test only where ``condition()`` holds, asked at each call.

    Elsewhere the test is skipped visibly: as a skip under pytest and unittest, by a printed line in a script
    (where the call returns None).
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if condition():
                return function(*args, **kwargs)
            if "PYTEST_CURRENT_TEST" in os.environ:
                raise unittest.SkipTest(f"{function.__name__}: its test_filter does not hold here")
            print(f"{function.__name__}: skipped, its test_filter does not hold here", flush=True)
            return None

        return wrapped

    return decorate


test_filter.__test__ = False  # pytest: a decorator, not a test
