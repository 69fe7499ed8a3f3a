"""Quantise two matrices, multiply them, and print the error and, on a GPU, the speed."""

from __future__ import annotations

import argparse
from typing import Callable, Dict, Tuple

import torch

from ..ops.fp8_gemm import Pair, fp8_gemm_nt
from ..ops.support import is_supported
from ..testing import calc_diff
from ..utils import per_block_cast_to_fp8, per_token_cast_to_fp8

GPU_SHAPE = (4096, 4096, 7168)
CPU_SHAPE = (64, 576, 1024)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds this command's options."""
    for index, (name, meaning) in enumerate((("m", "rows of A"), ("n", "rows of B"), ("k", "depth"))):
        parser.add_argument(
            f"--{name}", type=int, help=f"{meaning} (default: {GPU_SHAPE[index]} on a GPU, {CPU_SHAPE[index]} on the CPU)"
        )


def choose_device() -> Tuple[str, str]:
    """("cuda" or "cpu", the sentence that says why)."""
    if not torch.cuda.is_available():
        return "cpu", "No GPU here: running the CPU reference (exact, slow)."
    name = torch.cuda.get_device_name()
    if not is_supported("fp8_gemm_nt"):
        return "cpu", f"No kernel for {name} yet: running the CPU reference (exact, slow)."
    return "cuda", f"Running on {name}."


def dequantised(pair: Pair, rows: int) -> torch.Tensor:
    """FP64 values of a quantised operand whose factors cover `rows` x 128 elements each."""
    data, factors = pair
    spread = factors.double().repeat_interleave(rows, 0)[: data.shape[0]].repeat_interleave(128, 1)[:, : data.shape[1]]
    return data.double() * spread


def vendor_calls(x: torch.Tensor, y: torch.Tensor, a: Pair, b: Pair) -> Dict[str, Callable[[], None]]:
    """PyTorch's own products of the same shape: BF16, and FP8 with one factor a tensor (less work: no block factors)."""
    one = torch.ones((), device=x.device)

    def scaled() -> None:
        torch._scaled_mm(a[0], b[0].t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    return {"torch.matmul BF16": lambda: torch.matmul(x, y.t()), "torch._scaled_mm, one factor a tensor": scaled}


def print_speed(x: torch.Tensor, y: torch.Tensor, a: Pair, b: Pair, d: torch.Tensor) -> None:
    """Prints kernel times beside PyTorch's, measured alternately."""
    from .timing import median_times

    ours = "deep_gemm.fp8_gemm_nt"
    times = median_times({ours: lambda: fp8_gemm_nt(a, b, d), **vendor_calls(x, y, a, b)})
    flop = 2 * x.shape[0] * y.shape[0] * x.shape[1]
    for name, microseconds in times.items():
        ratio = microseconds / times[ours]
        print(f"  {name:38} {microseconds:9.1f} us  {flop / microseconds / 1e6:7.0f} TFLOPS  {ratio:5.2f}x our time")


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo; status 1 if the error is larger than FP8 explains."""
    device, why = choose_device()
    print(why)
    defaults = GPU_SHAPE if device == "cuda" else CPU_SHAPE
    m, n, k = (given or default for given, default in zip((arguments.m, arguments.n, arguments.k), defaults))
    torch.manual_seed(0)
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    y = torch.randn(n, k, device=device, dtype=torch.bfloat16)
    a = per_token_cast_to_fp8(x, use_ue8m0=False)
    b = per_block_cast_to_fp8(y, use_ue8m0=False)
    d = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    fp8_gemm_nt(a, b, d)
    print(f"D[{m}, {n}] = A[{m}, {k}] @ B[{n}, {k}].T, E4M3 with factors per 1x128 of A and 128x128 of B, D in BF16")
    to_inputs = calc_diff(d, x.double() @ y.double().t())
    to_quantised = calc_diff(d, dequantised(a, 1) @ dequantised(b, 128).t())
    print(f"difference to the product of the inputs: {to_inputs:.2e} (FP8 costs up to 1e-3)")
    print(f"difference to the exact product of the quantised operands: {to_quantised:.2e} (at most 1e-5)")
    if device == "cuda":
        print("kernel time, L2 flushed, median:")
        print_speed(x, y, a, b, d)
    return 0 if to_inputs < 1e-3 and to_quantised < 1e-5 else 1
