"""Kernel time of several contenders, alternated in one profiler run: what `demo` and the benchmarks report.

Every launch starts with an L2 that holds none of its operands. A round runs every contender once, so heat and clocks are
shared. The time of a call is the sum of the durations of the kernels it launched, as the profiler saw them: host time and
launch gaps do not enter.
"""

from __future__ import annotations

from statistics import median
from typing import Callable, Dict, List, Tuple

import torch

FLUSH_BYTES = 512 << 20  # several times the L2 of any supported device


def split_by_flush(trace: List[Tuple[str, float]], flush_name: str) -> List[float]:
    """Sums durations between the flushes of a trace, in order; entries before the first flush are dropped."""
    groups: List[float] = []
    for name, duration in trace:
        if name == flush_name:
            groups.append(0.0)
        elif groups:
            groups[-1] += duration
    return groups


def device_trace(run: Callable[[], object]) -> List[Tuple[str, float]]:
    """(name, microseconds) of everything the device did during `run`, in order of start."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize()
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    events.sort(key=lambda event: event.time_range.start)
    return [(event.name, event.time_range.end - event.time_range.start) for event in events]


def name_of_flush(flush: torch.Tensor) -> str:
    """The kernel that fills `flush`, as the profiler names it: a fill by 1, which is never a memset."""
    flush.fill_(1)
    trace = device_trace(lambda: flush.fill_(1))
    if len(trace) != 1:
        raise RuntimeError(f"expected one kernel in the trace of a fill, got {trace}; is another profiler at work?")
    return trace[0][0]


def kernel_times(contenders: Dict[str, Callable[[], object]], rounds: int = 30, warmups: int = 5) -> Dict[str, List[float]]:
    """Times of each contender in microseconds, one for each round, L2 flushed before each call.

    Args:
        contenders: name -> a call that launches its kernels on the current stream and fills no int8 tensor.
        rounds: measured calls of each.
        warmups: unmeasured calls of each.

    Raises:
        RuntimeError: the trace does not hold one flush for each call, so durations cannot be attributed.
    """
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    flush_name = name_of_flush(flush)
    for _ in range(warmups):
        for call in contenders.values():
            call()
    torch.cuda.synchronize()

    def run() -> None:
        for _ in range(rounds):
            for call in contenders.values():
                flush.fill_(1)
                call()

    groups = split_by_flush(device_trace(run), flush_name)
    if len(groups) != rounds * len(contenders):
        raise RuntimeError(f"the trace holds {len(groups)} flushes, expected {rounds * len(contenders)}")
    names = list(contenders)
    return {name: groups[index :: len(names)] for index, name in enumerate(names)}


def median_times(contenders: Dict[str, Callable[[], object]], rounds: int = 30) -> Dict[str, float]:
    """The median of `kernel_times` for each contender, in microseconds."""
    return {name: median(times) for name, times in kernel_times(contenders, rounds).items()}
