"""1D1D under several pinned configs, its factors per row in every form: D has the same bits, and TMA loads the factors where they lie in
units of 16 bytes. Run with the emulator as the driver; prints how many configs did."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import torch

import deep_gemm
from deep_gemm import _C
from deep_gemm.testing import assert_bitwise_equal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fp8_configs import PER_ROW_CONFIGS  # noqa: E402

PER_ROW = (1, 1, 128)


def bulk_load_bytes() -> int:
    """What TMA loaded in the last kernel."""
    library = ctypes.CDLL(os.environ["DG_DRIVER_LIBRARY"])
    library.dg_emulator_statistics.restype = ctypes.c_char_p
    return json.loads(library.dg_emulator_statistics())["bulk_load_bytes"]


def mn_major(factors: torch.Tensor, pitch: int, offset: int) -> torch.Tensor:
    """The same factors [rows, blocks], `pitch` elements from one K block to the next, the first `offset` elements into a buffer."""
    rows, blocks = factors.shape
    buffer = torch.full((offset + (blocks - 1) * pitch + rows,), float("nan"))
    view = buffer.as_strided((rows, blocks), (1, pitch), offset)
    view.copy_(factors)
    return view


def forms(factors: torch.Tensor) -> dict:
    """name -> factors; of them only "units" can be loaded by TMA, and it if there are whole units of rows."""
    rows = factors.shape[0]
    pitch = -(-rows // 4) * 4
    return {
        "row-major": factors,
        "units": mn_major(factors, pitch, 0),
        "start inside of a unit": mn_major(factors, pitch, 1),
        "blocks inside of units": mn_major(factors, pitch + 1, 0),
    }


def check(config: dict, m: int, n: int, k: int) -> bool:
    """Whether TMA loaded the factors."""
    torch.manual_seed(1)
    (a, sfa), (b, sfb) = (deep_gemm.per_token_cast_to_fp8(torch.randn(rows, k), use_ue8m0=False) for rows in (m, n))
    _C.pin_fp8_gemm_config(m, n, k, 0, config=config, recipe=PER_ROW, d_dtype=config["d_dtype"])
    found, loaded = {}, {}
    sfb_forms = forms(sfb)
    for name, form in forms(sfa).items():
        d = torch.full((m, n), float("nan"))
        deep_gemm.fp8_gemm_nt((a, form), (b, sfb_forms[name]), d, recipe=PER_ROW)
        found[name], loaded[name] = d, bulk_load_bytes()
        assert_bitwise_equal(d, found["row-major"], f"{name}, {m}x{n}x{k}, {config}")
    others = {loaded[name] for name in loaded if name != "units"}
    assert len(others) == 1, loaded
    return loaded["units"] > others.pop()


if __name__ == "__main__":
    by_tma = sum(check(config, 300, 200, 592) for config in PER_ROW_CONFIGS)
    assert by_tma == sum(config["k_blocks"] == 1 for config in PER_ROW_CONFIGS), by_tma
    assert not any(check(config, 301, 200, 272) for config in PER_ROW_CONFIGS), "half a unit of rows was loaded"
    print(by_tma)
