"""Seconds of the first FP8 GEMM of a process with an empty kernel cache: NVRTC found and loaded, compiled, loaded, run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

CALL = """
import sys, time, torch, deep_gemm
m, n, k = map(int, sys.argv[1:])
x, y = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda")
a = deep_gemm.per_token_cast_to_fp8(x, use_ue8m0=False)
b = deep_gemm.per_block_cast_to_fp8(y, use_ue8m0=False)
d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
start = time.perf_counter()
deep_gemm.fp8_gemm_nt(a, b, d)
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


def cold_seconds(m: int, n: int = 4096, k: int = 7168) -> float:
    """The first call of a fresh process with a fresh cache directory."""
    with tempfile.TemporaryDirectory() as cache:
        # The driver keeps compiled programs of its own, which would answer for NVRTC.
        environment = {**os.environ, "DG_JIT_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
        command = [sys.executable, "-c", CALL, str(m), str(n), str(k)]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    for rows in (1, 128, 4096):
        started = time.perf_counter()
        print(f"M = {rows:5d}: {cold_seconds(rows):.3f} s cold ({time.perf_counter() - started:.1f} s with the process)")
