"""Every kind of tcgen05.mma against float models: formats, majors, swizzles, accumulator layouts, scale factors."""
from __future__ import annotations

import numpy as np
import pytest

from cases.tcgen05_probe import PLAIN, SCALED, WINDOW, Placement, probe
from harness.case import Case, Pointer, run_case
from harness.cuda_driver import CudaDriver
from models import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, decode, fused_dot, truncate_f32

FORMATS = {"e4m3": (E4M3, 0), "e5m2": (E5M2, 1), "e2m3": (E2M3, 3), "e3m2": (E3M2, 4), "e2m1": (E2M1, 5)}
N = 48


def codes(rng: np.random.Generator, rows: int, k: int, name: str) -> np.ndarray:
    bits = 1 + FORMATS[name][0][0] + FORMATS[name][0][1]
    found = rng.integers(0, 1 << bits, (rows, k)).astype(np.uint8)
    if name == "e4m3":
        found[(found & 0x7F) == 0x7F] = 0x31
    if name == "e5m2":
        found[(found & 0x7C) == 0x7C] &= 0xBF
    return found


def chunks_of(matrix: np.ndarray, bits: int) -> np.ndarray:
    """Rows of elements -> rows of bytes; 4- and 6-bit elements are packed at the start of every 16-byte chunk."""
    if bits == 8:
        return matrix
    rows, count = matrix.shape
    out = np.zeros((rows, count), np.uint8)
    for r in range(rows):
        for c in range(0, count, 16):
            word = sum(int(v) << (bits * i) for i, v in enumerate(matrix[r, c:c + 16]))
            out[r, c:c + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
    return out


def place(matrix_bytes: np.ndarray, start: int, swizzle: int) -> tuple[Placement, np.ndarray]:
    """K-major with 32 bytes along K in use."""
    return (Placement(start, swizzle, lbo=128, sbo=256) if swizzle == 0 else Placement(start, swizzle, sbo=1024)), matrix_bytes


def accumulators(rng: np.random.Generator) -> np.ndarray:
    return (rng.integers(-2000, 2000, (256, 128)) / 16).astype(np.float32)


def dense_descriptor(m: int, n: int, a: int, b: int, d: int = 1, majors: int = 0) -> int:
    return d << 4 | a << 7 | b << 10 | majors << 15 | n // 8 << 17 | m // 16 << 24


def read_d(out: bytes, m: int, n: int) -> np.ndarray:
    image = np.frombuffer(out, np.uint32).reshape(256, 128)
    lanes = [row // 16 * 32 + row % 16 for row in range(64)] if m == 64 else list(range(128))
    return image[:n, lanes].T


@pytest.fixture
def sm100(emulator: CudaDriver) -> CudaDriver:
    emulator.set("arch", "sm100a")
    return emulator


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("swizzle", [0, 2, 4, 6])
@pytest.mark.parametrize(("a_name", "b_name"), [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e2m1"), ("e2m3", "e3m2"), ("e2m1", "e5m2")])
def test_f8f6f4(sm100: CudaDriver, m: int, swizzle: int, a_name: str, b_name: str) -> None:
    rng = np.random.default_rng(m + swizzle)
    a, b, initial = codes(rng, m, 32, a_name), codes(rng, N, 32, b_name), accumulators(rng)
    window = bytearray(WINDOW)
    bits = {name: 1 + FORMATS[name][0][0] + FORMATS[name][0][1] for name in (a_name, b_name)}
    pa, pb = place(a, 0, swizzle)[0], place(b, 32768, swizzle)[0]
    pa.write(window, chunks_of(a, bits[a_name]))
    pb.write(window, chunks_of(b, bits[b_name]))
    idesc = dense_descriptor(m, N, FORMATS[a_name][1], FORMATS[b_name][1])
    case = probe("f8f6f4", "kind::f8f6f4 " + PLAIN, bytes(window), pa, pb, idesc, initial.view(np.uint32), np.zeros((16, 32)), True)
    lowest = tuple(1 - FORMATS[name][0][2] for name in (a_name, b_name))
    c = read_d(initial.tobytes(), m, N).view(np.float32)
    expected = fused_dot(decode(a, FORMATS[a_name][0]), decode(b, FORMATS[b_name][0]), c, lowest, 25, 23)
    np.testing.assert_array_equal(read_d(run_case(sm100, case)["out"], m, N), expected.view(np.uint32))


@pytest.mark.parametrize("mn_major", [False, True])
@pytest.mark.parametrize("swizzle", [0, 2, 4, 6])
@pytest.mark.parametrize("is_bf16", [False, True])
def test_f16(sm100: CudaDriver, swizzle: int, mn_major: bool, is_bf16: bool) -> None:
    rng = np.random.default_rng(swizzle)
    fmt = BF16 if is_bf16 else F16
    random16 = lambda rows: (rng.integers(0, 1 << 16, (rows, 16)) & (0x87FF if is_bf16 else 0xBBFF) | (0x3800 if is_bf16 else 0)).astype(np.uint16)  # noqa: E731
    n = 64
    a, b, initial = random16(128), random16(n), accumulators(rng)
    window, majors = bytearray(WINDOW), 3 if mn_major else 0
    span = {0: 16, 2: 128, 4: 64, 6: 32}[swizzle]
    if mn_major:  # a line is one k; next to it 8 k's; along M or N further spans
        pa = Placement(0, swizzle, True, lbo=2048 if swizzle == 0 else 2 * 8 * span, sbo=128 if swizzle == 0 else 8 * span)
        pb = Placement(32768, swizzle, True, pa.lbo, pa.sbo)
        lines_a, lines_b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    else:
        (pa, lines_a), (pb, lines_b) = place(a, 0, swizzle), place(b, 32768, swizzle)
    pa.write(window, lines_a.view(np.uint8))
    pb.write(window, lines_b.view(np.uint8))
    case = probe("f16", "kind::f16 " + PLAIN, bytes(window), pa, pb, dense_descriptor(128, n, int(is_bf16), int(is_bf16), majors=majors), initial.view(np.uint32),
                 np.zeros((16, 32)), True)
    expected = fused_dot(decode(a, fmt), decode(b, fmt), read_d(initial.tobytes(), 128, n).view(np.float32), (1 - fmt[2],) * 2, 25, 23)
    np.testing.assert_array_equal(read_d(run_case(sm100, case)["out"], 128, n), expected.view(np.uint32))


def test_tf32_ignores_the_low_bits(sm100: CudaDriver) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((rows, 8)).astype(np.float32) for rows in (128, N))
    window, initial = bytearray(WINDOW), accumulators(rng)
    (pa, _), (pb, _) = place(a, 0, 2), place(b, 32768, 2)
    pa.write(window, a.view(np.uint8))
    pb.write(window, b.view(np.uint8))
    case = probe("tf32", "kind::tf32 " + PLAIN, bytes(window), pa, pb, dense_descriptor(128, N, 2, 2), initial.view(np.uint32), np.zeros((16, 32)), False)
    cut = lambda v: (v.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64)  # noqa: E731
    expected = fused_dot(cut(a), cut(b), np.zeros((128, N), np.float32), (-126, -126), 25, 23)
    np.testing.assert_array_equal(read_d(run_case(sm100, case)["out"], 128, N), expected.view(np.uint32))


@pytest.mark.parametrize("sf_id", [0, 1, 2, 3])
@pytest.mark.parametrize(("a_name", "b_name"), [("e4m3", "e4m3"), ("e4m3", "e2m1"), ("e3m2", "e5m2")])
def test_mxf8f6f4(sm100: CudaDriver, sf_id: int, a_name: str, b_name: str) -> None:
    rng = np.random.default_rng(sf_id)
    a, b, initial = codes(rng, 128, 32, a_name), codes(rng, N, 32, b_name), accumulators(rng)
    scales = rng.integers(118, 136, (16, 32, 4)).astype(np.uint8)
    window = bytearray(WINDOW)
    (pa, _), (pb, _) = place(a, 0, 2), place(b, 32768, 2)
    for p, matrix, name in ((pa, a, a_name), (pb, b, b_name)):
        p.write(window, chunks_of(matrix, 1 + FORMATS[name][0][0] + FORMATS[name][0][1]))
    b_id = (sf_id + 1) % 4
    idesc = b_id << 4 | FORMATS[a_name][1] << 7 | FORMATS[b_name][1] << 10 | N // 8 << 17 | 1 << 23 | 8 << 24 | sf_id << 29
    case = probe("mxf8f6f4", "kind::mxf8f6f4.block_scale.scale_vec::1X " + SCALED, bytes(window), pa, pb, idesc, initial.view(np.uint32),
                 scales.reshape(16, 32, 4).view(np.uint32).reshape(16, 32), True)
    sfa = scales[:4, :, sf_id].reshape(-1)[:128].astype(np.int64) - 127
    sfb = scales[8:, :, b_id].reshape(-1)[:N].astype(np.int64) - 127
    lowest = tuple(1 - FORMATS[name][0][2] for name in (a_name, b_name))
    expected = fused_dot(decode(a, FORMATS[a_name][0]), decode(b, FORMATS[b_name][0]), read_d(initial.tobytes(), 128, N).view(np.float32), lowest, 25, 23,
                         sfa[:, None] + sfb[None, :])
    np.testing.assert_array_equal(read_d(run_case(sm100, case)["out"], 128, N), expected.view(np.uint32))


def fp4_model(a: np.ndarray, b: np.ndarray, sa: np.ndarray, sb: np.ndarray, ea: np.ndarray, eb: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Groups of 16: exact sums times scale significands sa, sb; exponents ea, eb [rows, 4]; 35 fraction bits."""
    products = np.einsum("mgk,ngk->mng", a.reshape(len(a), 4, 16), b.reshape(len(b), 4, 16)) * sa[:, None, :] * sb[None, :, :]
    e = ea[:, None, :] + eb[None, :, :]
    _, ce = np.frexp(c.astype(np.float64))
    top = np.maximum(np.where(products == 0, -10000, e).max(axis=2), np.where(c == 0, -126, ce - 1))
    unit = np.ldexp(1.0, top - 35)
    total = np.trunc(products * np.ldexp(1.0, e) / unit[:, :, None]).sum(axis=2) + np.trunc(c.astype(np.float64) / unit)
    return truncate_f32(total * unit)


@pytest.mark.parametrize(("form", "ue8m0", "per_row"), [("kind::mxf4.block_scale.scale_vec::2X", True, 2), ("kind::mxf4nvf4.block_scale.scale_vec::4X", False, 4),
                                                        ("kind::mxf4nvf4.block_scale.scale_vec::2X", True, 2)])
def test_packed_fp4(sm100: CudaDriver, form: str, ue8m0: bool, per_row: int) -> None:
    rng = np.random.default_rng(per_row)
    a, b = rng.integers(0, 16, (128, 64)).astype(np.uint8), rng.integers(0, 16, (N, 64)).astype(np.uint8)
    initial = accumulators(rng)
    scales = rng.integers(120, 134, (16, 32, 4)).astype(np.uint8) if ue8m0 else rng.integers(0, 0x7F, (16, 32, 4)).astype(np.uint8)
    window = bytearray(WINDOW)
    (pa, _), (pb, _) = place(a, 0, 2), place(b, 32768, 2)
    for p, matrix in ((pa, a), (pb, b)):
        p.write(window, matrix[:, 0::2] | matrix[:, 1::2] << 4)
    sf_id = 2 if per_row == 2 else 0
    idesc = sf_id << 4 | 1 << 7 | 1 << 10 | N // 8 << 17 | int(ue8m0) << 23 | 8 << 24 | sf_id << 29
    case = probe("fp4", form + " " + SCALED, bytes(window), pa, pb, idesc, initial.view(np.uint32), scales.view(np.uint32).reshape(16, 32), True)

    def groups(first: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
        raw = scales[first:first + 8].reshape(-1, 4)[:rows]
        raw = np.repeat(raw[:, sf_id:sf_id + per_row], 4 // per_row, axis=1).astype(np.int64)
        if ue8m0:
            return np.ones(raw.shape), raw - 127
        value, field = decode(raw & 0x7F, E4M3), np.maximum(raw >> 3 & 15, 1)
        return value / np.ldexp(1.0, field - 7), np.where(value == 0, -126, field - 7)

    (sa, ea), (sb, eb) = groups(0, 128), groups(8, N)
    expected = fp4_model(decode(a, E2M1), decode(b, E2M1), sa, sb, ea, eb, read_d(initial.tobytes(), 128, N).view(np.float32))
    np.testing.assert_array_equal(read_d(run_case(sm100, case)["out"], 128, N), expected.view(np.uint32))


def test_f16_result_sits_in_the_low_half(sm100: CudaDriver) -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.integers(-3, 4, (rows, 16)).astype(np.float16) for rows in (128, N))
    window = bytearray(WINDOW)
    (pa, _), (pb, _) = place(a, 0, 2), place(b, 32768, 2)
    pa.write(window, a.view(np.uint8))
    pb.write(window, b.view(np.uint8))
    case = probe("f16d", "kind::f16 " + PLAIN, bytes(window), pa, pb, dense_descriptor(128, N, 0, 0, d=0), np.zeros((256, 128), np.uint32), np.zeros((16, 32)), False)
    expected = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float16)
    np.testing.assert_array_equal(read_d(run_case(sm100, case)["out"], 128, N), expected.view(np.uint16).astype(np.uint32))


FRAGMENT_SOURCE = """
extern "C" __global__ void __launch_bounds__(128) kernel_main(u32* out) {
    __shared__ u32 base;
    const u32 part = threadIdx.x / 32 * 32 << 16;
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%%0], 64;" ::"r"(smem_address(&base)) : "memory");
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    for (int column = 0; column < 64; ++column)
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%%0], {%%1};" ::"r"(base + part + column), "r"(threadIdx.x << 16 | column) : "memory");
    tcgen05_wait_st();
    for (int half = 0; half < %(halves)d; ++half) {
        u32 r[%(registers)d];
        asm volatile("tcgen05.ld.sync.aligned.%(shape)s.b32 {%(names)s}, [%%%(registers)d];" : %(outputs)s : "r"(base + part + (half * 16 << 16)));
        tcgen05_wait_ld();
        for (int i = 0; i < %(registers)d; ++i) out[((half * %(registers)d) + i) * 128 + threadIdx.x] = r[i];
    }
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %%0, 64;" ::"r"(base) : "memory");
}
"""


def fragment_spot(shape: str, lane: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lane and column, relative to the address, of register r: the rows of PTX ISA's figures written out."""
    if shape.startswith("32x32b"):
        return lane, r
    if shape.startswith("16x64b"):
        return lane // 4 + 8 * (lane % 2), lane // 2 % 2 + 2 * r
    if shape.startswith("16x128b"):
        return lane // 4 + 8 * (r % 2), lane % 4 + 4 * (r // 2)
    return lane // 4 + 8 * (r // 2 % 2), 2 * (lane % 4) + r % 2 + 8 * (r // 4)


@pytest.mark.parametrize(("shape", "registers"), [("32x32b.x8", 8), ("32x32b.x64", 64), ("16x64b.x4", 4), ("16x128b.x4", 8), ("16x256b.x2", 8), ("16x256b.x8", 32)])
def test_load_fragments(sm100: CudaDriver, shape: str, registers: int) -> None:
    halves = 1 if shape.startswith("32x32b") else 2
    text = FRAGMENT_SOURCE % {"halves": halves, "registers": registers, "shape": shape, "names": ", ".join(f"%{i}" for i in range(registers)),
                              "outputs": ", ".join(f'"=r"(r[{i}])' for i in range(registers))}
    case = Case(name="fragments", arch="sm100a", source=text, buffers={"out": bytes(halves * registers * 512)}, params=(Pointer("out"),), outputs=("out",))
    out = np.frombuffer(run_case(sm100, case)["out"], np.uint32).reshape(halves, registers, 128)
    thread = np.arange(128)
    for half in range(halves):
        for r in range(registers):
            lane, column = fragment_spot(shape, thread % 32, np.full(128, r))
            np.testing.assert_array_equal(out[half, r], (thread // 32 * 32 + half * 16 + lane) << 16 | column)
