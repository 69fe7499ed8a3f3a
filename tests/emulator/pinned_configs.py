"""One problem under several pinned configs: prints a digest of D for each. Run with the emulator as the driver."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import torch

import deep_gemm
from deep_gemm import _C

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fp8_configs import CONFIGS, PER_ROW_CONFIGS  # noqa: E402


def digests(m: int, n: int, k: int, per_row: bool = False) -> dict:
    """config as text -> SHA-256 of D."""
    torch.manual_seed(1)
    cast = deep_gemm.per_token_cast_to_fp8 if per_row else deep_gemm.per_block_cast_to_fp8
    recipe, dtype = ((1, 1, 128), torch.float32) if per_row else ((1, 128, 128), torch.bfloat16)
    a = deep_gemm.per_token_cast_to_fp8(torch.randn(m, k), use_ue8m0=False)
    b = cast(torch.randn(n, k), use_ue8m0=False)
    found = {}
    for config in PER_ROW_CONFIGS if per_row else CONFIGS:
        _C.pin_fp8_gemm_config(m, n, k, 0, config=config, recipe=recipe, d_dtype=config["d_dtype"])
        buffer = torch.full((m, -(-n // 8) * 8 + 8), float("nan"), dtype=dtype)
        d = buffer[:, :n]
        deep_gemm.fp8_gemm_nt(a, b, d, recipe=recipe)
        assert bool(buffer[:, n:].isnan().all()), f"wrote outside of D: {m}x{n}x{k}, {config}"
        found[json.dumps(config)] = hashlib.sha256(d.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
    return found


if __name__ == "__main__":
    found = {f"{m}x{n}x{k}": digests(m, n, k) for m, n, k in ((300, 200, 592), (5, 136, 384), (300, 203, 272))}
    found["300x200x592 per row"] = digests(300, 200, 592, per_row=True)
    found["300x203x272 per row"] = digests(300, 203, 272, per_row=True)
    print(json.dumps(found))
