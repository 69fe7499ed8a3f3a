"""Keywords of older releases, renamed on their way in."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .table import BY_NAME


def accept_older_keywords(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, an operation of the table, that also takes the older keywords of its row. Both at once: TypeError."""
    renamed = BY_NAME[function.__name__].older_keywords

    @functools.wraps(function)
    def accepting(*args: Any, **kwargs: Any) -> Any:
        for older, name in renamed.items():
            if older in kwargs:
                if name in kwargs:
                    raise TypeError(f"{function.__name__}() got {older!r}, the older name of {name!r}, beside it")
                kwargs[name] = kwargs.pop(older)
        return function(*args, **kwargs)

    return accepting
