"""Process-wide settings. Bad values are refused by the setter, which leaves the old value in place."""

from __future__ import annotations

from typing import Any, Tuple, Union

from . import _C
from .errors import refusal
from .utils.expect import is_integer

_FITS = range(-(2**63), 2**63)  # what the extension reads; it knows the narrower bounds


def _integer(value: Any, name: str, remedy: str) -> int:
    if not is_integer(value) or int(value) not in _FITS:
        raise refusal(name, "an integer", repr(value), remedy)
    return int(value)


def _switch(value: Any, name: str) -> bool:
    if value not in (True, False):
        raise refusal(name, "True or False", repr(value), "Pass one of them")
    return bool(value)


def set_num_sms(num_sms: int) -> None:
    """Limits the SMs that kernels occupy; 0 means all again. Odd counts are legal. Results do not change with it.

    Raises DeepGemmError for a negative count or more than the current device has.
    """
    _C.set_num_sms(_integer(num_sms, "num_sms", "Pass a count, or 0 for all SMs"))


def get_num_sms() -> int:
    """The SMs that kernels may occupy: the set limit, else all of the current device."""
    return _C.get_num_sms()


def set_tc_util(percent: int) -> None:
    """Sets the tensor-core utilisation that a GEMM should aim at, 0 to 100; 0 reads back as 100. A hint that
    the planner does not follow yet."""
    _C.set_tc_util(_integer(percent, "tc_util", "Pass whole percents, 0 to 100"))


def get_tc_util() -> int:
    """The tensor-core utilisation aimed at, in percent."""
    return _C.get_tc_util()


def set_pdl(enabled: bool) -> None:
    """Switches programmatic dependent launch, the overlap of a kernel's start with its predecessor's end; first False."""
    _C.set_pdl(_switch(enabled, "pdl"))


def get_pdl() -> bool:
    """Whether programmatic dependent launch is on."""
    return _C.get_pdl()


def set_block_size_multiple_of(value: Union[int, Tuple[int, int]]) -> None:
    """Asks for tile sizes that are multiples of `value`, or of (m, n). A hint that the planner does not follow yet."""
    both = (value, value) if is_integer(value) else value
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        raise refusal("block_size_multiple_of", "an integer or a pair (m, n)", repr(value), "Pass 1 to ask for nothing")
    m, n = (_integer(one, "block_size_multiple_of", "Pass an integer or a pair of them") for one in both)
    _C.set_block_size_multiple_of((m, n))


def set_ignore_compile_dims(ignore: bool) -> None:
    """Accepted for compatibility: no dimension is ever compiled in, so nothing changes."""
    _C.set_ignore_compile_dims(_switch(ignore, "ignore_compile_dims"))


def set_compile_mode(mode: int) -> None:
    """1: calls build their kernels and launch nothing; 0: calls run."""
    _C.set_compile_mode(int(mode) if mode is True or mode is False else _integer(mode, "compile_mode", "Pass 0 or 1"))


def get_compile_mode() -> int:
    """1 while calls only build their kernels, else 0."""
    return _C.get_compile_mode()
