"""Host time of a steady fp8_gemm_nt call on the GPU: what the CPU spends before the call returns, and where.

    python scripts/host_time.py [--shape 64 256 512] [--rounds 200] [--batch 200] [--json FILE]

Calls are queued in batches shorter than the driver's queue, without a synchronisation inside, so that neither the GPU
nor a full queue is measured; between batches the GPU is waited for, outside the clock. A figure is the median of its
batches, in microseconds. The parts are differences:

  front       Python: deep_gemm.fp8_gemm_nt less the extension's own function
  exchange    the tensors, the recipe and the stream read into C++
  plan        contract, planning and kernel look-up: a call in compile mode less `exchange`
  launch      arguments and cuLaunchKernelEx: the extension's function less its compile-mode call. The tensor maps of a steady
              call are remembered
  new_map     beside the total: what a call takes longer for each tensor that lies where none was lately, and needs its map
              encoded
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from itertools import cycle
from typing import Callable, Dict, List, Tuple

import torch

import deep_gemm
from deep_gemm import _C


def median_us(call: Callable[[], None], rounds: int, batch: int) -> float:
    """Median microseconds a call over `rounds` batches of `batch` calls, the GPU idle at the start of each."""
    samples: List[float] = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(batch):
            call()
        samples.append((time.perf_counter_ns() - start) / batch / 1e3)
    torch.cuda.synchronize()
    return statistics.median(samples)


def operands(m: int, n: int, k: int) -> Tuple[tuple, tuple, torch.Tensor]:
    """Quantised operands on the current device, SFA in the aligned MN-major form, and D."""
    a = deep_gemm.per_token_cast_to_fp8(torch.randn(m, k, device="cuda", dtype=torch.bfloat16), use_ue8m0=False)
    b = deep_gemm.per_block_cast_to_fp8(torch.randn(n, k, device="cuda", dtype=torch.bfloat16), use_ue8m0=False)
    sfa = deep_gemm.get_mn_major_tma_aligned_tensor(a[1])
    return (a[0], sfa), b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def new_map_us(a: tuple, b: tuple, d: torch.Tensor, rounds: int, batch: int) -> float:
    """Microseconds of a call whose D moves on at every call, less those of one whose D is as many tensors at one place."""
    remembered, step = 4096, 16 // d.element_size()
    room = torch.empty(d.numel() + 2 * remembered * step, device=d.device, dtype=d.dtype)

    def timed(stride: int) -> float:
        outputs = cycle([room[i * stride :][: d.numel()].view(d.shape) for i in range(2 * remembered)])
        return median_us(lambda: deep_gemm.fp8_gemm_nt(a, b, next(outputs)), rounds, batch)

    return timed(step) - timed(0)


def measure(shape: Tuple[int, int, int], rounds: int, batch: int) -> Dict[str, float]:
    """Microseconds of a whole call and of its parts, and of an empty Python call and torch.mm for scale."""
    a, b, d = operands(*shape)
    arguments = (a, b, d, None, None, None, None, "nk", False)
    x = torch.randn(shape[0], shape[2], device="cuda", dtype=torch.bfloat16)
    y = torch.randn(shape[2], shape[1], device="cuda", dtype=torch.bfloat16)

    def timed(call: Callable[[], None]) -> float:
        return median_us(call, rounds, batch)

    calls = {
        "total": lambda: deep_gemm.fp8_gemm_nt(a, b, d),
        "extension": lambda: _C.fp8_gemm_nt(*arguments),
        "exchange": lambda: _C.read_fp8_gemm_call(*arguments),
        "empty": lambda: None,
        "torch_mm": lambda: torch.mm(x, y, out=d),
    }
    for call in calls.values():  # compiles, and fills every cache
        for _ in range(20):
            call()
    times = {name: timed(call) for name, call in calls.items()}
    deep_gemm.set_compile_mode(1)
    try:
        times["planned"] = timed(calls["extension"])
    finally:
        deep_gemm.set_compile_mode(0)
    empty = times["empty"]
    return {
        "total": times["total"] - empty,
        "front": times["total"] - times["extension"],
        "exchange": times["exchange"] - empty,
        "plan": times["planned"] - times["exchange"],
        "launch": times["extension"] - times["planned"],
        "new_map": new_map_us(a, b, d, rounds, batch),
        "torch_mm": times["torch_mm"] - empty,
        "empty_call": empty,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", type=int, nargs=3, default=(64, 256, 512), metavar=("M", "N", "K"),
                        help="small, so that the GPU keeps up with the CPU")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--batch", type=int, default=200, help="calls between two waits; below the driver's queue of 1024")
    parser.add_argument("--json", help="write the result to this file too")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("host_time needs a CUDA device: it measures the launch path", file=sys.stderr)
        return 2
    gc.disable()
    times = measure(tuple(options.shape), options.rounds, options.batch)
    result = {
        "what": "host time of a steady fp8_gemm_nt call, microseconds",
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpu": platform.processor() or platform.machine(),
        "reader": "exchange" if _C.describe_tensor(torch.empty(1))["fast"] else "attributes",
        "shape": list(options.shape),
        "rounds": options.rounds,
        "batch": options.batch,
        "microseconds": {name: round(value, 3) for name, value in times.items()},
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        with open(options.json, "w") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
