"""Seconds of the first FP8 GEMM of a process with an empty kernel cache: NVRTC found and loaded, compiled, loaded, run.

Usage: python scripts/cold_call.py [--repeats N]

For each M the median of fresh processes, with what NVRTC's opening, the compilation, the cache's writing and the driver's loading took of it.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

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
print(1e3 * (time.perf_counter() - start))
"""

# Parts of a call, as the library's log names them.
PARTS = {
    "NVRTC opened": r"found and opened in ([\d.]+) ms",
    "compiled": r"compiled in ([\d.]+) ms",
    "published": r"published in ([\d.]+) ms",
    "loaded": r"loaded on device \d+ in ([\d.]+) ms",
}


def cold_call(m: int, n: int = 4096, k: int = 7168) -> dict[str, float]:
    """Milliseconds of the first call of a fresh process with a fresh cache directory, and of its parts."""
    with tempfile.TemporaryDirectory() as cache:
        # The driver keeps compiled programs of its own, which would answer for NVRTC.
        settings = {"CUDA_CACHE_DISABLE": "1", "DG_JIT_DEBUG": "1", "DG_JIT_PRINT_LOAD_TIME": "1"}
        environment = {**os.environ, **settings, "DG_JIT_CACHE_DIR": cache}
        command = [sys.executable, "-c", CALL, str(m), str(n), str(k)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = {part: re.search(pattern, done.stderr) for part, pattern in PARTS.items()}
    return {"call": float(done.stdout), **{part: float(match[1]) for part, match in found.items() if match}}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="fresh processes for each M")
    options = parser.parse_args()
    for rows in (1, 128, 4096):
        calls = sorted((cold_call(rows) for _ in range(options.repeats)), key=lambda call: call["call"])
        parts = ", ".join(f"{part} {statistics.median(call.get(part, 0.0) for call in calls):.0f}" for part in PARTS)
        every = " ".join(f"{call['call']:.0f}" for call in calls)
        print(f"M = {rows:5d}: {statistics.median(call['call'] for call in calls):.0f} ms cold ({parts}; calls: {every})")


if __name__ == "__main__":
    main()
