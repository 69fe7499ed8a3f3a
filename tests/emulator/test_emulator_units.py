"""Families of instructions against models and hand-computed values."""
from __future__ import annotations

import struct

import numpy as np
import pytest

from cases import barrier_cases, scalar_cases, tma_cases, wgmma_cases
from harness.case import Case, Pointer, run_case
from harness.cuda_driver import CudaDriver, CudaError, TensorMapSpec
from models import BF16, E4M3, E5M2, F16, decode, fused_dot, fused_exponents, operand, swizzle, tma_box

SPANS = (0, 32, 64, 128)
FORMATS = {"e4m3": (E4M3, 1), "e5m2": (E5M2, 1), "bf16": (BF16, 2), "f16": (F16, 2), "tf32": ((8, 10, 127), 4)}
CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def named(module: object, prefix: str) -> list[Case]:
    return [case for case in module.cases() if case.name.startswith(prefix)]  # type: ignore[attr-defined]


def tensor_of(case: Case, spec: TensorMapSpec, element: int) -> np.ndarray:
    """The tensor as bytes, slowest dimension first, padding between rows cut off."""
    raw = np.frombuffer(case.buffers["tensor"], np.uint8)
    strides = (1, *spec.strides)
    dims = (spec.dims[0] * element, *spec.dims[1:])
    return np.lib.stride_tricks.as_strided(raw, dims[::-1], strides[::-1])


@pytest.mark.parametrize("case", named(tma_cases, "tma_load"), ids=lambda case: case.name)
def test_tma_load(emulator: CudaDriver, case: Case) -> None:
    spec = case.params[0]
    element = {0: 1, 7: 4, 9: 2, 6: 2}[spec.dtype]
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint8).reshape(-1, tma_cases.WINDOW)
    places = np.frombuffer(case.buffers["where"], np.int32).reshape(-1, 4)
    inner, rank = spec.box[0] * element, len(spec.dims)
    pitch = SPANS[spec.swizzle] or inner
    for window, place in zip(out, places):
        start = (int(place[0]) * element, *map(int, place[1:rank]))
        box = tma_box(tensor_of(case, spec, element), (inner, *spec.box[1:]), start)
        if spec.nan_fill:  # out of range, every 16 bits are 0x7FF7
            inside = tma_box(np.ones(tensor_of(case, spec, element).shape, np.uint8), (inner, *spec.box[1:]), start)
            box = np.where(inside == 1, box, np.tile(np.array([0xF7, 0x7F], np.uint8), inner // 2))
        expected = np.full(tma_cases.WINDOW, 0xCD, np.uint8)
        address = int(place[3]) + np.arange(box.size // inner)[:, None] * pitch + np.arange(inner)[None, :]
        expected[swizzle(address, SPANS[spec.swizzle])] = box.reshape(-1, inner)
        np.testing.assert_array_equal(window, expected)


@pytest.mark.parametrize("case", named(tma_cases, "tma_store"), ids=lambda case: case.name)
def test_tma_store(emulator: CudaDriver, case: Case) -> None:
    spec, data = case.params[0], np.frombuffer(case.buffers["data"], np.uint8)
    expected = np.frombuffer(case.buffers["tensor"], np.uint8).copy()
    element = {0: 1, 7: 4, 9: 2}[spec.dtype]
    inner, end = spec.box[0] * element, -(-spec.dims[0] * element // 16) * 16  # the last 16 bytes are written whole
    for x, y, _, offset in np.frombuffer(case.buffers["where"], np.int32).reshape(-1, 4):
        for row in range(min(spec.box[1], spec.dims[1] - y)):
            columns = np.arange(max(min(inner, end - x * element), 0))
            at = int(offset) + row * (SPANS[spec.swizzle] or inner) + columns
            expected[(y + row) * spec.strides[0] + x * element + columns] = data[swizzle(at, SPANS[spec.swizzle])]
    np.testing.assert_array_equal(np.frombuffer(run_case(emulator, case)["tensor"], np.uint8), expected)


@pytest.mark.parametrize("operation", ["store", "reduce_add"])
@pytest.mark.parametrize("place", [(-4, 0, 0, 0), (0, -1, 0, 0), (-4, -7, 0, 0), (0, -8, 0, 0)])
def test_tma_stores_before_the_tensor_are_illegal(emulator: CudaDriver, operation: str, place: tuple[int, int, int, int]) -> None:
    """As on an H200, unlike loads: not even a box wholly outside may begin there."""
    spec = TensorMapSpec("tensor", 7, (32, 40), (128,), (32, 8), 3)
    with pytest.raises(CudaError) as caught:
        run_case(emulator, tma_cases.store_case("before", spec, bytes(tma_cases.WINDOW), [place], bytes(128 * 40), operation))
    assert "negative ones are illegal in stores and reductions" in caught.value.report and "PTX line" in caught.value.report


def test_tma_reduce_adds(emulator: CudaDriver) -> None:
    case = next(c for c in tma_cases.cases() if c.name == "tma_reduce_add_f32")
    data, expected = np.frombuffer(case.buffers["data"], np.float32), np.frombuffer(case.buffers["tensor"], np.float32).reshape(40, 16).copy()
    for x, y, _, offset in np.frombuffer(case.buffers["where"], np.int32).reshape(-1, 4):
        for row in range(20):
            for column in range(8):
                if 0 <= y + row < 40 and x + column < 16:
                    expected[y + row, x + column] += data[swizzle(np.array(int(offset) + row * 32 + column * 4), 32) // 4]
    np.testing.assert_array_equal(np.frombuffer(run_case(emulator, case)["tensor"], np.float32).reshape(40, 16), expected)


def test_multicast_reaches_the_ctas_of_the_mask(emulator: CudaDriver) -> None:
    case = next(c for c in tma_cases.cases() if c.name == "tma_multicast")
    tensor = np.frombuffer(case.buffers["tensor"], np.uint8).reshape(32, 128)
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint8).reshape(4, 2, tma_cases.WINDOW)
    lines = np.arange(16)[:, None] * 64 + np.arange(64)[None, :]
    for y in range(4):
        for x in range(2):
            rank, expected = x + 2 * (y % 2), np.full(tma_cases.WINDOW, 0xCD, np.uint8)
            for offset, column, row, mask in ((0, 0, 0, 0xD), (2048, 64, 3, 0x2), (4096, 32, 10, 0xD)):
                if mask >> rank & 1:
                    expected[swizzle(offset + lines, 64)] = tensor[row:row + 16, column:column + 64]
            np.testing.assert_array_equal(out[y, x], expected)


def fragment(out: np.ndarray, n: int) -> np.ndarray:
    """[thread, register] -> [64, n]."""
    thread, register = np.meshgrid(np.arange(128), np.arange(n // 2), indexing="ij")
    lane = thread % 32
    rows = thread // 32 * 16 + lane // 4 + 8 * (register // 2 % 2)
    columns = 2 * (lane % 4) + register % 2 + 8 * (register // 4)
    d = np.empty((64, n), out.dtype)
    d[rows, columns] = out
    return d


def a_from_registers(data: bytes, k: int, element: int) -> np.ndarray:
    """Codes [64, K] of A held in registers: four words a thread."""
    words = np.frombuffer(data, np.uint8)[:2048].reshape(128, 4, 4 // element, element)
    a = np.zeros((64, k), np.uint8 if element == 1 else np.uint16)
    codes = words.reshape(128, 4, 4) if element == 1 else words.view(np.uint16)[..., 0]
    per = 4 // element
    for thread in range(128):
        for q in range(4):
            for h in range(per):
                a[thread // 32 * 16 + thread % 32 // 4 + 8 * (q % 2), thread % 4 * per + h + q // 2 * 4 * per] = codes[thread, q, h]
    return a


def matrix(window: np.ndarray, descriptor: int, rows: int, case: wgmma_cases.WgmmaCase, element: int) -> np.ndarray:
    if not case.mn_major:
        codes = operand(window, descriptor, rows, 2, False).view(CODES[element])
        return codes >> 13 if element == 4 else codes  # tf32 ignores the low bits
    return operand(window, descriptor, case.k, rows * element // 16, True).view(np.uint16).T


@pytest.mark.parametrize("case", [c for c in named(wgmma_cases, "wgmma") if "f16_result" not in c.name and "specials" not in c.name],
                         ids=lambda case: case.name)
def test_wgmma(emulator: CudaDriver, case: wgmma_cases.WgmmaCase) -> None:
    _, a_name, b_name = case.types.split(".")
    (a_format, element), (b_format, _) = FORMATS[a_name], FORMATS[b_name]
    window = np.frombuffer(case.buffers["data"], np.uint8)
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint32).reshape(len(case.pairs), 128, case.n // 2)
    c = fragment(np.frombuffer(case.buffers["c"], np.float32)[:64 * case.n].reshape(128, case.n // 2), case.n)
    bits = 13 if element == 1 else 25
    for (a_descriptor, b_descriptor), result in zip(case.pairs, out):
        a = a_from_registers(case.buffers["data"], case.k, element) if case.registers else matrix(window, a_descriptor, 64, case, element)
        b = matrix(window, b_descriptor, case.n, case, element)
        values = decode(a, a_format) * (-1 if case.negates_a else 1)
        expected = fused_dot(values, decode(b, b_format), c if case.accumulate else np.zeros_like(c), (1 - a_format[2], 1 - b_format[2]), bits,
                             13 if element == 1 else 23)
        np.testing.assert_array_equal(fragment(result, case.n), expected.view(np.uint32))


def test_wgmma_nan_is_canonical(emulator: CudaDriver) -> None:
    case = next(c for c in wgmma_cases.cases() if c.name == "wgmma_e4m3_specials")
    window = np.frombuffer(case.buffers["data"], np.uint8)
    a, b = (operand(window, d, rows, 2, False) for d, rows in zip(case.pairs[0], (64, case.n)))
    nan = ((a & 0x7F) == 0x7F).any(axis=1)[:, None] | ((b & 0x7F) == 0x7F).any(axis=1)[None, :]
    out = fragment(np.frombuffer(run_case(emulator, case)["out"], np.uint32).reshape(128, -1), case.n)
    assert 0 < nan.sum() < nan.size
    np.testing.assert_array_equal(out == 0x7FFFFFFF, nan)


def scalar(emulator: CudaDriver, text: str, inputs: list[int], out: str = "r") -> int:
    """The result of one instruction; `text` writes %0 and reads %1, %2, ..."""
    arguments = ", ".join(f'"r"(in[{i}])' for i in range(len(inputs)))
    kind, letter = ("u16", "h") if out == "h" else ("u64", "l") if out == "l" else ("u32", "r")
    source = f'extern "C" __global__ void kernel_main(const u32* in, u64* out) {{ {kind} r; asm volatile("{text}" : "={letter}"(r) : {arguments}); *out = r; }}'
    case = Case(name="scalar", source=source, block=(1,), buffers={"in": struct.pack(f"<{max(len(inputs), 1)}I", *(inputs or [0])), "out": bytes(8)},
                params=(Pointer("in"), Pointer("out")), outputs=("out",))
    return struct.unpack("<Q", run_case(emulator, case)["out"])[0]


def bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


HAND_COMPUTED = [
    ("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", [bits(448.0), bits(1000.0)], "h", 0x7E7E),
    ("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", [bits(1.0), bits(-0.0625)], "h", 0x3898),
    ("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", [bits(float("nan")), bits(2.0**-9)], "h", 0x7F01),
    ("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;", [bits(1.0), bits(1e9)], "h", 0x3C7B),
    ("cvt.rn.bf16x2.f32 %0, %1, %2;", [bits(1.0), bits(-2.0)], "r", 0x3F80C000),
    ("cvt.rn.bf16x2.f32 %0, %1, %2;", [0x3F808000, 0x3F818000], "r", 0x3F803F82),  # ties go to even
    ("cvt.rz.bf16x2.f32 %0, %1, %2;", [0x3F80FFFF, 0xBF81FFFF], "r", 0x3F80BF81),
    ("cvt.rn.f16x2.f32 %0, %1, %2;", [bits(65520.0), bits(2.0**-25)], "r", 0x7C000000),
    ("cvt.rna.tf32.f32 %0, %1;", [0x3F801000], "r", 0x3F802000),
    ("cvt.rna.tf32.f32 %0, %1;", [0xFF812345], "r", 0xFF812000),  # H200: the payload is cut
    ("cvt.sat.f32.f32 %0, %1;", [0x80000000], "r", 0),
    ("neg.f32 %0, %1;", [0xFF812345], "r", 0x7FFFFFFF),  # H200: an addition
    ("abs.f32 %0, %1;", [0x7FC00000], "r", 0x7FFFFFFF),
    ("neg.bf16x2 %0, %1;", [0x7F813F80], "r", 0x7FFFBF80),
    ("fma.rn.bf16x2 %0, %1, %2, %3;", [0x0000D0A0, 0x000066A2, 0x000098EE], "r", 0x0000F7CB),  # a tie, but for the addend
    ("rem.u32 %0, %1, %2;", [7, 0], "r", 0xFFFFFFFF),
    ("cvt.rni.s32.f32 %0, %1;", [bits(2.5)], "r", 2),
    ("cvt.rzi.s32.f32 %0, %1;", [bits(-3e9)], "r", 0x80000000),
    ("cvt.rzi.u32.f32 %0, %1;", [bits(-1.5)], "r", 0),
    ("prmt.b32 %0, %1, %2, 0x7531;", [0x33221100, 0x77665544], "r", 0x77553311),
    ("prmt.b32 %0, %1, %2, 0x89AB;", [0x80FF7F01, 0], "r", 0x0000FFFF),
    ("shf.l.wrap.b32 %0, %1, %2, 36;", [0x80000000, 0x00000001], "r", 0x18),
    ("shf.r.clamp.b32 %0, %1, %2, 40;", [0x11111111, 0x22222222], "r", 0x22222222),
    ("bfe.s32 %0, %1, 4, 4;", [0x000000F0], "r", 0xFFFFFFFF),
    ("bfe.u32 %0, %1, 28, 8;", [0xA0000000], "r", 0xA),
    ("bfi.b32 %0, %1, %2, 8, 8;", [0xFFFFFFAB, 0x12345678], "r", 0x1234AB78),
    ("lop3.b32 %0, %1, %2, %3, 0xCA;", [0xF0F0F0F0, 0xAAAAAAAA, 0x55555555], "r", 0xA5A5A5A5),
    ("mul.hi.s32 %0, %1, %2;", [0x80000000, 2], "r", 0xFFFFFFFF),
    ("mul.wide.s32 %0, %1, %2;", [0xFFFFFFFF, 3], "l", 0xFFFFFFFFFFFFFFFD),
    ("mad.lo.s32 %0, %1, %2, %3;", [7, 6, 0xFFFFFFFF], "r", 41),
    ("div.s32 %0, %1, %2;", [0x80000000, 0xFFFFFFFF], "r", 0x80000000),
    ("rem.s32 %0, %1, %2;", [0xFFFFFFF9, 4], "r", 0xFFFFFFFD),
    ("shr.s32 %0, %1, %2;", [0x80000000, 40], "r", 0xFFFFFFFF),
    ("shl.b32 %0, %1, %2;", [1, 32], "r", 0),
    ("bfind.u32 %0, %1;", [0x00010000], "r", 16),
    ("clz.b32 %0, %1;", [0x00010000], "r", 15),
    ("brev.b32 %0, %1;", [0x00000003], "r", 0xC0000000),
    ("add.rz.f32 %0, %1, %2;", [bits(1.0), 0x33FFFFFF], "r", 0x3F800000),
    ("add.rp.f32 %0, %1, %2;", [bits(1.0), 0x20000000], "r", 0x3F800001),
    ("fma.rn.f32 %0, %1, %2, %3;", [0x3F800001, 0x3F800001, 0xBF800002], "r", bits(2.0**-46)),
    ("min.f32 %0, %1, %2;", [0x7FC00000, bits(3.0)], "r", bits(3.0)),
    ("max.NaN.f32 %0, %1, %2;", [0x7FC00000, bits(3.0)], "r", 0x7FFFFFFF),
    ("mul.rn.ftz.f32 %0, %1, %2;", [0x00800000, bits(0.5)], "r", 0),
    ("{.reg .pred p; setp.neu.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}", [0x7FC00000, 0], "r", 1),
    ("{.reg .pred p; setp.ne.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}", [0x7FC00000, 0], "r", 0),
    ("{.reg .pred p, q; setp.lt.and.s32 p|q, %1, %2, 1; selp.u32 %0, 5, 9, q;}", [1, 2], "r", 9),
    ("mul.sat.f32 %0, %1, %2;", [1, 0x80000001], "r", 0),  # H200: no -0 (the product underflows to it)
    ("neg.ftz.f32 %0, %1;", [0x00000003], "r", 0x80000000),
    ("abs.ftz.f32 %0, %1;", [0x80010001], "r", 0),
    ("neg.ftz.f32 %0, %1;", [0x00800000], "r", 0x80800000),
]


@pytest.mark.parametrize(("text", "inputs", "out", "expected"), HAND_COMPUTED, ids=[f"{i}-{row[0].split()[0]}" for i, row in enumerate(HAND_COMPUTED)])
def test_scalar(emulator: CudaDriver, text: str, inputs: list[int], out: str, expected: int) -> None:
    assert scalar(emulator, text, inputs, out) == expected


SM100_SCALARS = [
    ("{.reg .b8 q; .reg .b16 h; cvt.rn.satfinite.e2m1x2.f32 q, %1, %2; mov.b16 h, {q, 0}; cvt.u32.u16 %0, h;}", [bits(-6.5), bits(0.75)], "r", 0xF2),
    ("{.reg .b16 h; cvt.rp.satfinite.ue8m0x2.f32 h, %1, %2; cvt.u32.u16 %0, h;}", [bits(1.0), bits(1.5)], "r", 0x7F80),
    ("{.reg .b16 h; cvt.rz.satfinite.ue8m0x2.f32 h, %1, %2; cvt.u32.u16 %0, h;}", [bits(3.9), bits(0.9)], "r", 0x807E),
    ("{.reg .b64 x, y; mov.b64 x, {%1, %2}; mov.b64 y, {%2, %1}; add.rn.f32x2 x, x, y; mov.b64 {%0, _}, x;}", [bits(1.5), bits(2.0)], "r", bits(3.5)),
]


@pytest.mark.parametrize(("text", "inputs", "out", "expected"), SM100_SCALARS, ids=[row[0].split(";")[1] for row in SM100_SCALARS])
def test_sm100_scalar(emulator: CudaDriver, text: str, inputs: list[int], out: str, expected: int) -> None:
    emulator.set("arch", "sm100a")
    arguments = ", ".join(f'"r"(in[{i}])' for i in range(len(inputs)))
    source = f'extern "C" __global__ void kernel_main(const u32* in, u64* out) {{ u32 r; asm volatile("{text}" : "=r"(r) : {arguments}); *out = r; }}'
    case = Case(name="scalar", arch="sm100a", source=source, block=(1,), buffers={"in": struct.pack("<2I", *inputs), "out": bytes(8)},
                params=(Pointer("in"), Pointer("out")), outputs=("out",))
    assert struct.unpack("<Q", run_case(emulator, case)["out"])[0] == expected


def test_mbarrier_phases(emulator: CudaDriver) -> None:
    case = named(barrier_cases, "mbarrier_phases")[0]
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint32)
    # fresh: wait(0) blocks, wait(1) passes; after one phase the other way round; after two as at the start
    assert (out[:128] == 0b10110).all()
    assert out[128] == 0b100  # arrivals alone do not complete a phase with bytes outstanding


def test_cluster_ids_and_addresses(emulator: CudaDriver) -> None:
    case = named(barrier_cases, "cluster_addresses")[0]
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint32).reshape(4, 4, 512)
    thread = np.arange(128)
    for y in range(4):
        for x in range(4):
            rank = x % 2 + 2 * (y % 2)
            peer = (rank + thread) % 4
            np.testing.assert_array_equal(out[y, x, :128], peer * 1000 + thread)
            np.testing.assert_array_equal(out[y, x, 128:256] >> 24, peer)
            assert out[y, x, 256:262].tolist() == [x % 2, y % 2, x // 2, y // 2, 2, 4]
            assert out[y, x, 300] == rank


def test_named_barriers_order_three_warps(emulator: CudaDriver) -> None:
    out = np.frombuffer(run_case(emulator, named(barrier_cases, "named_barriers")[0])["out"], np.uint32)
    assert out.tolist() == [42] * 64 + [44] * 32


def test_atomics(emulator: CudaDriver) -> None:
    found = run_case(emulator, named(barrier_cases, "atomics")[0])
    thread = np.arange(128)
    expected = [thread.sum(), (thread * 7919 % 101).max(), 0xFFFFFFFF, 0xFFFFFFE0, 128 % 10, 7, 0, 256]
    assert np.frombuffer(found["out"], np.uint32).tolist() == expected
    sums = np.frombuffer(found["sums"], np.float32)
    assert sums[:8].tolist() == [1 + 0.25 * float((thread[thread % 4 == i] % 8).sum()) for i in range(4)] + [65.0] * 4


def test_ldmatrix_and_stmatrix(emulator: CudaDriver) -> None:
    case = named(barrier_cases, "matrix_moves")[0]
    data = np.frombuffer(case.buffers["data"], np.uint16).reshape(32, 16)[:, :8]
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint16).reshape(5, 512)
    matrices = data[np.arange(32) * 7 % 32].reshape(4, 8, 8)
    straight, transposed = out[0].reshape(8, 32, 2)[:4], out[0].reshape(8, 32, 2)[4:]
    for i in range(4):
        np.testing.assert_array_equal(straight[i].reshape(8, 8), matrices[i])
        np.testing.assert_array_equal(transposed[i].reshape(8, 8), matrices[i].T)
    np.testing.assert_array_equal(out[1].reshape(64, 8)[:32].reshape(4, 8, 8), matrices.transpose(0, 2, 1))
    np.testing.assert_array_equal(out[2].reshape(32, 16)[:, :8].reshape(4, 8, 8), matrices)


def shuffle_model(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Source lane and predicate, by the ISA's words: lanes form segments, a source outside of the segment is the lane itself."""
    segment, clamp = c >> 8 & 31, c & 31
    first, last = lane & segment, (lane & segment) | (clamp & ~segment)
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | (b & ~segment)}[mode]
    good = source >= last if mode == "up" else source <= last
    return (source, True) if good else (lane, False)


def test_warp_collectives(emulator: CudaDriver) -> None:
    case = named(scalar_cases, "warp_collectives")[0]
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint32).reshape(-1, 256)
    words = np.frombuffer(case.buffers["in"], np.uint32)
    a, b = words, words[(np.arange(256) * 7 + 3) % 256] & 31
    slot = 0
    for mode in ("up", "down", "bfly", "idx"):
        for control in (31, 0, 0x181F, 0x1C00 if mode == "up" else 0x1C07):
            for thread in range(256):
                source, good = shuffle_model(mode, thread % 32, int(b[thread]), control)
                assert (out[slot, thread], out[slot + 1, thread]) == (a[thread // 32 * 32 + source], good), (mode, control, thread)
            slot += 2
    warps = a.reshape(8, 32)
    for expected in (warps.sum(axis=1, dtype=np.uint32), warps.view(np.int32).min(axis=1), warps.max(axis=1), np.bitwise_and.reduce(warps, axis=1),
                     np.bitwise_or.reduce(warps, axis=1), np.bitwise_xor.reduce(warps, axis=1)):
        np.testing.assert_array_equal(out[slot].reshape(8, 32), np.repeat(expected.astype(np.int64) & 0xFFFFFFFF, 32).reshape(8, 32))
        slot += 1
    signs = (warps >> 31).astype(np.uint64)
    ballots = (signs << np.arange(32, dtype=np.uint64)).sum(axis=1)
    np.testing.assert_array_equal(out[slot].reshape(8, 32)[:, 0], ballots)
    matches = [sum(1 << k for k in range(32) if (int(warp[k]) ^ int(warp[l])) & 3 == 0) for warp in warps for l in range(32)]
    assert out[slot + 1].tolist() == matches
    leaders, elected = out[slot + 2].reshape(8, 32), out[slot + 3].reshape(8, 32)
    assert (leaders == 0).all() and elected.tolist() == [[1] + [0] * 31] * 8
    assert out[slot + 4].reshape(8, 32).tolist() == [[1, 77] + [0, 0, 0, 77] * 7 + [0, 0]] * 8  # lanes 1, 5, 9, ... stay out


@pytest.mark.parametrize("name", ["wgmma_f16_result", "wgmma_e4m3_f16_result"])
def test_wgmma_f16_result(emulator: CudaDriver, name: str) -> None:
    """The sum is rounded once, to nearest even; exact sums make this one rounding of a float64 dot product."""
    case = next(c for c in wgmma_cases.cases() if c.name == name)
    window, n = np.frombuffer(case.buffers["data"], np.uint8), case.n
    _, a_name, b_name = case.types.split(".")
    (a_format, element), (b_format, _) = FORMATS[a_name], FORMATS[b_name]
    a, b = (decode(matrix(window, d, rows, case, element), f) for d, rows, f in zip(case.pairs[0], (64, n), (a_format, b_format)))
    start = np.frombuffer(case.buffers["c"], np.uint32)[:128 * n // 4].reshape(128, n // 4) & 0x3BFF3BFF
    halves = lambda words: fragment(words.reshape(128, -1).copy().view(np.uint16), n)  # noqa: E731
    c = halves(start).view(np.float16).astype(np.float32)
    out = halves(np.frombuffer(run_case(emulator, case)["out"], np.uint32)).view(np.float16)
    exponent = fused_exponents(a, b, c, (1 - a_format[2], 1 - b_format[2]))
    unit = np.ldexp(1.0, exponent - (13 if element == 1 else 25))
    total = np.trunc(a[:, None, :] * b[None, :, :] / unit[:, :, None]).sum(axis=2) + np.trunc(c / unit)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, (total * unit).astype(np.float16))


def test_remote_stores_around_a_ring(emulator: CudaDriver) -> None:
    case = named(tma_cases, "cluster_remote_stores")[0]
    out = np.frombuffer(run_case(emulator, case)["out"], np.uint32)
    windows, addresses = out[:tma_cases.WINDOW].reshape(4, -1), out[tma_cases.WINDOW:].reshape(4, 128)
    for rank in range(4):
        before = (rank + 3) % 4
        expected = np.full(tma_cases.WINDOW // 4, 0x01010101 * (rank + 1), np.uint32)
        expected[256:384] = before * 1000 + np.arange(128)
        expected[1024:1088] = 0x01010101 * (before + 1)
        np.testing.assert_array_equal(windows[rank], expected)
        assert (addresses[rank] == ((rank + 1) % 4) << 24).all()


def test_bulk_copies(emulator: CudaDriver) -> None:
    case = named(tma_cases, "bulk_copies")[0]
    data, found = np.frombuffer(case.buffers["data"], np.uint8), run_case(emulator, case)
    window = np.full(tma_cases.WINDOW, 0xCD, np.uint8)
    window[16:64], window[8192:12288], window[2048:2064] = data[32:80], data[1024:5120], data[16:32]
    np.testing.assert_array_equal(np.frombuffer(found["window"], np.uint8), window)
    expected = np.zeros(8192, np.uint8)
    expected[16:80], expected[4096:5120] = window[:64], window[8192:9216]
    np.testing.assert_array_equal(np.frombuffer(found["out"], np.uint8), expected)


@pytest.mark.parametrize("seed", ["", "1", "2"])
def test_cp_async_lands_with_its_barrier(emulator: CudaDriver, seed: str) -> None:
    source = """extern "C" __global__ void kernel_main(const u32* in, u32* out) {
        __shared__ __align__(16) u32 s[512];
        __shared__ u64 barrier;
        const u32 b = smem_address(&barrier), t = threadIdx.x;
        if (t == 0) { mbarrier_init(b, 32); fence_mbarrier_init(); }
        __syncthreads();
        if (t < 32) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_address(s + 4 * t)), "l"(in + 4 * t), "r"(t % 3 == 0 ? 8 : 16) : "memory");
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem_address(s + 128 + t)), "l"(in + 200 - t) : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(b) : "memory");
        }
        mbarrier_wait(b, 0);
        for (int i = t; i < 160; i += 128) out[i] = s[i];
    }"""
    emulator.set("seed", seed)
    values = np.arange(1000, 1256, dtype=np.uint32)
    case = Case(name="cp_async", source=source, buffers={"in": values.tobytes(), "out": bytes(640)}, params=(Pointer("in"), Pointer("out")), outputs=("out",))
    expected = np.concatenate([values[:128], values[200 - np.arange(32)]])
    for t in range(0, 32, 3):
        expected[4 * t + 2:4 * t + 4] = 0
    np.testing.assert_array_equal(np.frombuffer(run_case(emulator, case)["out"], np.uint32), expected)
