"""TMA forms that only Blackwell has: padded sub-byte types and row gathers. They follow the ISA text, nothing was measured."""
from __future__ import annotations

import struct

import numpy as np
import pytest

from cases import tma_cases
from harness.case import Case, Pointer, i32, random_bytes, run_case
from harness.cuda_driver import CudaDriver, TensorMapSpec
from models import swizzle


def load(emulator: CudaDriver, call: str, spec: TensorMapSpec, tensor: bytes, place: tuple[int, ...], bytes_expected: int) -> np.ndarray:
    """The window after one load at `place` = (x, y, unused, offset)."""
    emulator.set("arch", "sm100a")
    case = Case(name="load", arch="sm100a", source=f"#define LOAD(to, map) {call}\n" + tma_cases._LOAD, shared=tma_cases.WINDOW,
                buffers={"tensor": tensor, "where": struct.pack("<4i", *place), "out": bytes(tma_cases.WINDOW)},
                params=(spec, Pointer("where"), Pointer("out"), i32(bytes_expected)), outputs=("out",))
    return np.frombuffer(run_case(emulator, case)["out"], np.uint8)


@pytest.mark.parametrize(("dtype", "data_bytes"), [(14, 8), (15, 12)])
@pytest.mark.parametrize("code", [0, 3])
def test_padded_types(emulator: CudaDriver, dtype: int, data_bytes: int, code: int) -> None:
    """16 elements take 16 bytes of shared memory; the bytes behind the data stay as they were and are not counted."""
    row_bytes = 256 * data_bytes // 16
    tensor = random_bytes(dtype, row_bytes * 20)
    spec = TensorMapSpec("tensor", dtype, (256, 20), (row_bytes,), (128, 8), code)
    window = load(emulator, "tma_load_2d(to, map, c[0], c[1], full)", spec, tensor, (128, 15, 0, 1024), 8 * 8 * data_bytes)
    expected = np.full(tma_cases.WINDOW, 0xCD, np.uint8)
    rows = np.frombuffer(tensor, np.uint8).reshape(20, row_bytes)
    for row in range(8):
        for chunk in range(8):
            at = int(swizzle(np.array(1024 + row * 128 + chunk * 16), 128 if code == 3 else 0))
            start = row_bytes // 2 + chunk * data_bytes
            expected[at:at + data_bytes] = rows[15 + row, start:start + data_bytes] if 15 + row < 20 else 0
    np.testing.assert_array_equal(window, expected)


def test_packed_fp4(emulator: CudaDriver) -> None:
    tensor = random_bytes(1, 64 * 16)
    spec = TensorMapSpec("tensor", 13, (128, 16), (64,), (64, 8), 1)
    window = load(emulator, "tma_load_2d(to, map, c[0], c[1], full)", spec, tensor, (64, 2, 0, 0), 32 * 8)
    rows = np.frombuffer(tensor, np.uint8).reshape(16, 64)
    at = swizzle(np.arange(8)[:, None] * 32 + np.arange(32)[None, :], 32)
    np.testing.assert_array_equal(window[at], rows[2:10, 32:])


def test_gather_of_four_rows(emulator: CudaDriver) -> None:
    tensor = random_bytes(2, 256 * 30)
    spec = TensorMapSpec("tensor", 0, (256, 30), (256,), (128, 1), 3)
    call = ('asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" '
            ':: "r"(to), "l"(map), "r"(c[0]), "r"(c[1]), "r"(3), "r"(29), "r"(30), "r"(full) : "memory")')
    window = load(emulator, call, spec, tensor, (128, 17, 0, 512), 512)
    rows = np.frombuffer(tensor, np.uint8).reshape(30, 256)
    at = swizzle(512 + np.arange(4)[:, None] * 128 + np.arange(128)[None, :], 128)
    expected = np.stack([rows[17, 128:], rows[3, 128:], rows[29, 128:], np.zeros(128, np.uint8)])
    np.testing.assert_array_equal(window[at], expected)
