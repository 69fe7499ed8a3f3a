"""What tests and benches of kernels need: comparison, timing, and decorators."""

from __future__ import annotations

from .bench import bench, bench_kineto
from .numeric import Comparison, assert_bitwise_equal, calc_diff, compare, count_bytes
from .utils import get_arch_major, ignore_env, test_filter

__all__ = [
    "Comparison",
    "assert_bitwise_equal",
    "bench",
    "bench_kineto",
    "calc_diff",
    "compare",
    "count_bytes",
    "get_arch_major",
    "ignore_env",
    "test_filter",
]
