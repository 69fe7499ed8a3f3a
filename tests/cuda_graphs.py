"""CUDA graphs of calls."""

from __future__ import annotations

from collections.abc import Callable

import torch


def captured(run: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """A graph of `run`. Let it run once before: a kernel's first call compiles and loads it."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph
