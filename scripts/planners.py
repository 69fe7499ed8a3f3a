"""The planners of the kernel families behind one interface: candidates of a shape, pins, kernels built ahead of timing."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Tuple

from deep_gemm import _C

Config = Dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What a planner chooses for: a family of kernels, extents, and the planner's keywords."""

    family: str  # "fp8" or "bf16"
    m: int
    n: int
    k: int
    keywords: Tuple[Tuple[str, Any], ...]

    def options(self) -> Dict[str, Any]:
        """The keywords as a dictionary."""
        return dict(self.keywords)


def shape_of(family: str, m: int, n: int, k: int, **keywords: Any) -> Shape:
    """A shape from keywords of `_C.plan_<family>_gemm`."""
    return Shape(family, m, n, k, tuple(sorted(keywords.items())))


def function(pattern: str, family: str) -> Callable[..., Any]:
    """A function of the extension, by a name with {} in the place of the family."""
    found: Callable[..., Any] = getattr(_C, pattern.format(f"{family}_gemm"))
    return found


def candidates(shape: Shape, arch: Dict[str, Any]) -> List[Dict[str, Any]]:
    """All plans that run a shape: the pick, then the others by rising estimate."""
    extents = (shape.m, shape.n, shape.k)
    if shape.family == "bf16":
        return list(_C.plans_bf16_gemm(*extents, arch=arch, **shape.options()))
    choice = _C.explain_fp8_gemm(*extents, arch=arch, **shape.options())
    return [choice["best"], *choice["runners_up"]]


def pick(shape: Shape, arch: Dict[str, Any]) -> Dict[str, Any]:
    """The plan that a call of this shape runs."""
    plan: Dict[str, Any] = function("plan_{}", shape.family)(shape.m, shape.n, shape.k, arch=arch, **shape.options())
    return plan


def estimate_parts(shape: Shape, config: Config, arch: Dict[str, Any]) -> Dict[str, float]:
    """The model's estimate of a config in microseconds as "total", split by what limits it where the model tells."""
    extents = (shape.m, shape.n, shape.k)
    if shape.family == "fp8":
        return dict(_C.fp8_gemm_cost(*extents, config=config, arch=arch, **shape.options()))
    return {"total": _C.plan_bf16_gemm(*extents, config=config, arch=arch, **shape.options())["estimate_us"]}


def pinned(shape: Shape, config: Config, device: int, call: Callable[[], object]) -> Callable[[], object]:
    """`call` with `config` pinned for its shape first: a table entry, once the kernel is loaded."""
    pin, options = function("pin_{}_config", shape.family), shape.options()

    def run() -> object:
        pin(shape.m, shape.n, shape.k, device, config=config, **options)
        return call()

    return run


def forget() -> None:
    """Undoes every pin."""
    for family in ("fp8", "bf16"):
        function("forget_{}_plans", family)()


def build(configs: Iterable[Tuple[str, Config]], arch: Dict[str, Any], jobs: int) -> int:
    """Builds the kernels of (family, config) pairs into the cache that calls read, on `jobs` threads; returns how many."""
    sources = {}
    for family, config in configs:
        source = function("print_{}_source", family)(config, arch)
        sources[source["entry"], source["text"]] = None
    numbers = _C.planning_arch()
    start = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda source: _C.jit_build(*source, numbers["major"], numbers["minor"]), sources))
    print(f"{len(sources)} kernels built in {time.perf_counter() - start:.1f} s on {jobs} threads", file=sys.stderr, flush=True)
    return len(sources)


def default_jobs() -> int:
    """Threads that build kernels: a processor each, 16 at most."""
    return min(os.cpu_count() or 1, 16)


def current_arch() -> Dict[str, Any]:
    """What of the current CUDA device differs from the planner's own numbers; nothing without one."""
    import torch

    if not torch.cuda.is_available():
        return {}
    return {"sm_count": torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count}
