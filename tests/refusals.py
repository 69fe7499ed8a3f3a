"""What every refusal owes its caller, as a check for the tests of all contracts."""

import contextlib
from typing import Iterable, Iterator

import pytest

import deep_gemm


@contextlib.contextmanager
def refused_in_words(words: Iterable[str]) -> Iterator[None]:
    """The body is refused with a DeepGemmError that contains each of `words`."""
    with pytest.raises(deep_gemm.DeepGemmError) as refusal:
        yield
    missing = [word for word in words if word not in str(refusal.value)]
    assert not missing, f"{missing} not in: {refusal.value}"
