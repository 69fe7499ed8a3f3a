"""Process-wide settings. Bad values are refused by the setter, which leaves the old value in place."""

from __future__ import annotations

from typing import Tuple, Union

from . import _C


def set_num_sms(num_sms: int) -> None:
    """Limits the SMs that kernels occupy; 0 means all again. Odd counts are legal. Results do not change with it.

    Raises DeepGemmError for a negative count or more than the current device has.
    """
    _C.set_num_sms(num_sms)


def get_num_sms() -> int:
    """The SMs that kernels may occupy: the set limit, else all of the current device."""
    return _C.get_num_sms()


def set_tc_util(percent: int) -> None:
    """Sets the tensor-core utilisation that a GEMM should aim at, 0 to 100; 0 reads back as 100. A hint that
    the planner does not follow yet."""
    _C.set_tc_util(percent)


def get_tc_util() -> int:
    """The tensor-core utilisation aimed at, in percent."""
    return _C.get_tc_util()


def set_pdl(enabled: bool) -> None:
    """Switches programmatic dependent launch, the overlap of a kernel's start with its predecessor's end; first False."""
    _C.set_pdl(enabled)


def get_pdl() -> bool:
    """Whether programmatic dependent launch is on."""
    return _C.get_pdl()


def set_block_size_multiple_of(value: Union[int, Tuple[int, int]]) -> None:
    """Asks for tile sizes that are multiples of `value`, or of (m, n). A hint that the planner does not follow yet."""
    _C.set_block_size_multiple_of(value)


def set_ignore_compile_dims(ignore: bool) -> None:
    """Accepted for compatibility: no dimension is ever compiled in, so nothing changes."""
    _C.set_ignore_compile_dims(ignore)


def set_compile_mode(mode: int) -> None:
    """1: calls build their kernels and launch nothing; 0: calls run."""
    _C.set_compile_mode(mode)


def get_compile_mode() -> int:
    """1 while calls only build their kernels, else 0."""
    return _C.get_compile_mode()
