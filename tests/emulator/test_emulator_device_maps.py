"""Tensor maps that a kernel changes, publishes and acquires: what they load, and what each forgotten step is told."""
from __future__ import annotations

import re

import numpy as np
import pytest

from cases.device_map_cases import BOX, COLUMNS, LOADS, MATRICES, ROWS, device_map_case, starts
from harness.case import run_case
from harness.cuda_driver import CudaDriver, CudaError
from models import tma_box


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("seed", ["", "1", "2"])
def test_changed_maps_load_their_matrices(emulator: CudaDriver, slots: int, seed: str) -> None:
    emulator.set("seed", seed)
    case = device_map_case(slots)
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint8).reshape(-1, ROWS, COLUMNS)
    raw = np.frombuffer(case.buffers["tensor"], np.uint8)
    for got, (matrix, x, y) in zip(out, LOADS):
        rows, width, pitch = MATRICES[matrix]
        tensor = np.lib.stride_tricks.as_strided(raw[starts()[matrix]:], (rows, width), (pitch, 1))
        np.testing.assert_array_equal(got, tma_box(tensor, (COLUMNS, ROWS), (x, y)))
    assert out.size == len(LOADS) * BOX


BUGS = {
    "NOT_ACQUIRED": "missing fence.proxy.tensormap::generic.acquire: thread 0 copies through the map",
    "NOT_PUBLISHED": "was written by this grid and never published",
    "IN_FLIGHT": "data race: global memory .* read at PTX line \\d+ and overwritten at PTX line \\d+",
    "CHANGED_ELSEWHERE": "data race: shared memory",
    "CHANGED_TOO_SOON": "lanes of a warp race: shared memory .* read at PTX line \\d+ by several threads and overwritten at PTX line \\d+ by thread 1",
    "READ_TOO_SOON": "lanes of a warp race: shared memory .* written at PTX line \\d+ by thread 0 and read",
    "ODD_PITCH": "tensormap.replace: the stride \\d+ is no multiple of 16",
}


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("seed", ["", "4"])
def test_a_forgotten_step_is_found(emulator: CudaDriver, bug: str, seed: str) -> None:
    emulator.set("seed", seed)
    with pytest.raises(CudaError) as caught:
        run_case(emulator, device_map_case(1, bug))
    assert re.search(BUGS[bug], caught.value.report), caught.value.report


REFUSED = {
    "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, 8;": "only global_address, global_dim and global_stride",
    "tensormap.replace.tile.global_dim.global.b1024.b32 [%1], 0, 8;": "lacks .shared::cta",
    "fence.proxy.tensormap::generic.release.gpu;": "released by tensormap.cp_fenceproxy",
}


@pytest.mark.parametrize("instruction", REFUSED)
def test_other_forms_are_refused(emulator: CudaDriver, instruction: str) -> None:
    case = device_map_case()
    body = f'DEV void other(u32 shared, const void* global) {{ asm volatile("{instruction}" ::"r"(shared), "l"(global)); }}\n'
    source = case.source.replace('extern "C"', body + 'extern "C"').replace("__syncthreads();", "other(m, slots); __syncthreads();", 1)
    with pytest.raises(CudaError) as caught:
        run_case(emulator, type(case)(**{**case.__dict__, "source": source}))
    assert re.search(REFUSED[instruction], str(caught.value) + caught.value.report)
