"""Timing: of a call by CUDA events, and of single kernels by the profiler."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

__all__ = ["bench", "bench_kineto"]

# Larger than any L2 there is (B200: 126 MB).
L2_FLUSH_BYTES = 256 * 10**6


def bench(
    fn: Callable[[], Any], num_warmups: int = 5, num_tests: int = 10, high_precision: bool = False
) -> float:
    """Mean time of a call, launches included.

    Args:
        fn: what to time.
        num_warmups: untimed calls before.
        num_tests: timed calls; L2 is flushed once before them, not between.
        high_precision: give the GPU long work first, so that launches are queued when timing starts and the
            host's time does not count.

    Returns:
        Seconds a call: of the GPU, by CUDA events, or without one of the host.
    """
    if not torch.cuda.is_available():
        for _ in range(num_warmups):
            fn()
        begin = time.perf_counter()
        for _ in range(num_tests):
            fn()
        return (time.perf_counter() - begin) / num_tests

    flush = _l2_flush()
    for _ in range(num_warmups):
        fn()
    torch.cuda.synchronize()
    flush()
    if high_precision:
        _occupy_gpu()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(num_tests):
        fn()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / num_tests / 1e3


def bench_kineto(
    fn: Callable[[], Any],
    kernel_names: str | tuple[str, ...],
    num_tests: int = 30,
    suppress_kineto_output: bool = False,
    trace_path: str | None = None,
    flush_l2: bool = True,
    with_multiple_kernels: bool = False,
    barrier: Callable[[], Any] | None = None,
) -> float | tuple[float, ...]:
    """Mean time of one launch of named kernels, by PyTorch's profiler.

    Args:
        fn: what launches them; it runs ``2 * num_tests`` times, the first half untimed.
        kernel_names: a part of the kernel's name, or several.
        num_tests: timed runs.
        suppress_kineto_output: keep what the profiler and ``fn`` print off the terminal.
        trace_path: where to write a Chrome trace, if anywhere.
        flush_l2: overwrite L2 before each run.
        with_multiple_kernels: let one name match several kernels; the mean is then over all their launches.
        barrier: called before each run, to bring processes together.

    Returns:
        Seconds a launch, 0 if no kernel matches; a tuple for a tuple of names. With ``DG_USE_NVIDIA_TOOLS=1``
        1 for each name, and ``fn`` is not run: another profiler is at work.

    Raises:
        AssertionError: two kernels match one name and ``with_multiple_kernels`` is False.
    """
    names = (kernel_names,) if isinstance(kernel_names, str) else tuple(kernel_names)
    if os.environ.get("DG_USE_NVIDIA_TOOLS", "0") == "1":
        seconds = (1.0,) * len(names)
    else:
        silence = _silenced() if suppress_kineto_output else contextlib.nullcontext()
        with silence:
            profile = _profile(fn, num_tests, flush_l2, barrier)
            if trace_path is not None:
                profile.export_chrome_trace(trace_path)
        events = [event for event in profile.key_averages() if _is_on_gpu(event)]
        seconds = tuple(_mean_launch_seconds(events, name, with_multiple_kernels) for name in names)
    return seconds[0] if isinstance(kernel_names, str) else seconds


def _profile(
    fn: Callable[[], Any], num_tests: int, flush_l2: bool, barrier: Callable[[], Any] | None
) -> torch.profiler.profile:
    """Profile the second of two rounds of ``num_tests`` runs."""
    has_cuda = torch.cuda.is_available()
    flush = _l2_flush() if has_cuda and flush_l2 else None
    activity = torch.profiler.ProfilerActivity.CUDA if has_cuda else torch.profiler.ProfilerActivity.CPU
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(activities=[activity], schedule=schedule) as profile:
        for _ in range(2):
            for _ in range(num_tests):
                if flush is not None:
                    flush()
                if barrier is not None:
                    barrier()
                fn()
            if has_cuda:
                torch.cuda.synchronize()
            profile.step()
    return profile


def _is_on_gpu(event: Any) -> bool:
    return getattr(event.device_type, "name", "") == "CUDA"


def _mean_launch_seconds(events: Iterable[Any], name: str, with_multiple_kernels: bool) -> float:
    """Mean seconds a launch over the averaged GPU events whose name contains ``name``; 0 without one."""
    matches = [event for event in events if name in event.key]
    if len(matches) > 1 and not with_multiple_kernels:
        raise AssertionError(
            f"kernel_names: expected one kernel whose name contains {name!r}, but {len(matches)} do: "
            f"{[event.key for event in matches]}. Give a longer part, or with_multiple_kernels=True."
        )
    launches = sum(event.count for event in matches)
    microseconds = sum(event.self_device_time_total for event in matches)
    return microseconds / launches / 1e6 if launches > 0 else 0.0


def _l2_flush() -> Callable[[], None]:
    """A call that overwrites L2 on the current device."""
    cache = torch.empty(L2_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def flush() -> None:
        cache.zero_()

    return flush


def _occupy_gpu() -> None:
    """Queue some milliseconds of work."""
    side = torch.zeros((8192, 8192), dtype=torch.float32, device="cuda")
    side @ side


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Send the process's standard output and error, native code's too, to nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), saved):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
