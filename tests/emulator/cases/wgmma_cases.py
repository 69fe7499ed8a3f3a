"""wgmma: arithmetic with narrow and wide exponents, random descriptors, transposes, A in registers, f16 results."""
from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from cases.wgmma_text import wgmma_function
from harness.case import Case, Pointer, i32, random_bytes, random_e4m3

WINDOW = 64 * 1024


@dataclass(frozen=True)
class WgmmaCase(Case):
    """Carries what a model needs to know."""

    n: int = 0
    k: int = 0
    types: str = ""
    registers: bool = False
    negates_a: bool = False
    mn_major: bool = False
    accumulate: bool = True
    pairs: tuple[tuple[int, int], ...] = ()


# Every CTA takes one pair of descriptors. The window of shared memory is filled from `data`.
_KERNEL = """
extern "C" __global__ void kernel_main(const u32* data, const u64* descriptors, const float* c, u32* out, int accumulate) {
    extern __shared__ __align__(1024) u8 window[];
    for (int i = threadIdx.x; i < %(words)d; i += blockDim.x) reinterpret_cast<u32*>(window)[i] = data[i];
    fence_proxy_async();
    __syncthreads();
    %(kind)s d[%(count)d];
    for (int i = 0; i < %(count)d; ++i) d[i] = %(initial)s;
    const u64 base = smem_address(window) >> 4;
    const u64 b = descriptors[2 * blockIdx.x + 1] + base;
    %(load_a)s
    wgmma_fence();
    wgmma(d, a, b, accumulate);
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < %(count)d; ++i)
        out[(blockIdx.x * 128 + threadIdx.x) * %(count)d + i] = %(result)s;
}
"""


def _case(name: str, data: bytes, pairs: list[tuple[int, int]], *, n: int, k: int, types: str, half: bool = False, registers: bool = False,
          tail: str = "1, 1", accumulate: bool = True, c: bytes | None = None) -> Case:
    count = n // 4 if half else n // 2
    c = c if c is not None else struct.pack(f"<{128 * count}f", *[(i % 61 - 30) * 0.125 for i in range(128 * count)])
    values = {
        "words": len(data) // 4,
        "count": count,
        "kind": "u32" if half else "float",
        "initial": f"__float_as_uint(c[threadIdx.x * {count} + i]) & 0x3BFF3BFF" if half else f"c[threadIdx.x * {count} + i]",
        "result": "d[i]" if half else "__float_as_uint(d[i])",
        "load_a": "u32 a[4]; for (int i = 0; i < 4; ++i) a[i] = data[threadIdx.x * 4 + i];" if registers
        else "const u64 a = descriptors[2 * blockIdx.x] + base;",
    }
    source = wgmma_function(n, k, types, a_registers=registers, half=half, tail=tail) + _KERNEL % values
    flat = [value for pair in pairs for value in pair]
    return WgmmaCase(
        name=name, source=source, shared=WINDOW, grid=(len(pairs),), n=n, k=k, types=types, registers=registers, negates_a=tail.startswith("-1"),
        mn_major=tail.endswith("1, 1, 1, 1"), accumulate=accumulate, pairs=tuple(pairs),
        buffers={"data": data, "descriptors": struct.pack(f"<{len(flat)}Q", *flat), "c": c, "out": bytes(len(pairs) * 128 * count * 4)},
        params=(Pointer("data"), Pointer("descriptors"), Pointer("c"), Pointer("out"), i32(int(accumulate))), outputs=("out",))


def descriptor(start: int, lbo: int, sbo: int, swizzle: int) -> int:
    return start >> 4 | (lbo >> 4) << 16 | (sbo >> 4) << 32 | swizzle << 62


def _plain(n: int) -> list[tuple[int, int]]:
    return [(descriptor(0, 16, 1024, 1), descriptor(32768, 16, 1024, 1))]


def _wide_floats(seed: int, count: int, low: int, high: int) -> bytes:
    rng = random.Random(seed)
    return struct.pack(f"<{count}f", *[rng.choice((-1, 1)) * rng.uniform(1, 2) * 2.0 ** rng.randint(low, high) for _ in range(count)])


def _clean_16bit(seed: int, count: int, exponent_mask: int, fixed: int) -> bytes:
    """Random 16-bit floats whose exponent field cannot be all ones."""
    words = struct.unpack(f"<{count}H", random_bytes(seed, 2 * count))
    return struct.pack(f"<{count}H", *[(w & exponent_mask) | fixed for w in words])


def _arithmetic() -> list[Case]:
    narrow = random_e4m3(1, WINDOW, 0x9F)  # exponents 0..3
    wide = random_e4m3(2, WINDOW)
    e5m2 = bytes(b if b & 0x7C != 0x7C else b & 0x83 | 0x3C for b in random_bytes(3, WINDOW))
    bf16 = _clean_16bit(4, WINDOW // 2, 0x87FF, 0x3800)
    bf16_wide = _clean_16bit(5, WINDOW // 2, 0xBFFF, 0)
    f16 = _clean_16bit(6, WINDOW // 2, 0xBBFF, 0)
    tf32 = _wide_floats(7, WINDOW // 4, -12, 12)
    wide_c = _wide_floats(8, 128 * 64, -30, 18)
    cases = []
    for label, data in (("narrow", narrow), ("wide", wide)):
        cases.append(_case(f"wgmma_e4m3_{label}", data, _plain(128), n=128, k=32, types="f32.e4m3.e4m3"))
        cases.append(_case(f"wgmma_e4m3_{label}_wide_c", data, _plain(128), n=128, k=32, types="f32.e4m3.e4m3", c=wide_c))
    cases += [
        _case("wgmma_e4m3_zero_operands", bytes(WINDOW), _plain(128), n=128, k=32, types="f32.e4m3.e4m3", c=wide_c),
        _case("wgmma_e4m3_no_accumulate", wide, _plain(64), n=64, k=32, types="f32.e4m3.e4m3", accumulate=False),
        _case("wgmma_e5m2_e4m3", e5m2[:32768] + wide[32768:], _plain(64), n=64, k=32, types="f32.e5m2.e4m3"),
        _case("wgmma_e5m2_e5m2", e5m2, _plain(64), n=64, k=32, types="f32.e5m2.e5m2", c=wide_c),
        _case("wgmma_bf16", bf16, _plain(128), n=128, k=16, types="f32.bf16.bf16", tail="1, 1, 0, 0", c=wide_c),
        _case("wgmma_bf16_wide", bf16_wide, _plain(64), n=64, k=16, types="f32.bf16.bf16", tail="1, 1, 0, 0", c=wide_c),
        _case("wgmma_f16", f16, _plain(64), n=64, k=16, types="f32.f16.f16", tail="1, 1, 0, 0", c=wide_c),
        _case("wgmma_tf32", tf32, _plain(64), n=64, k=8, types="f32.tf32.tf32", c=wide_c),
        _case("wgmma_negated", bf16, _plain(64), n=64, k=16, types="f32.bf16.bf16", tail="-1, 1, 0, 0", c=wide_c),
        _case("wgmma_f16_result", f16, _plain(64), n=64, k=16, types="f16.f16.f16", tail="1, 1, 0, 0", half=True),
        _case("wgmma_e4m3_f16_result", narrow, _plain(64), n=64, k=32, types="f16.e4m3.e4m3", half=True),
        _case("wgmma_e4m3_registers", wide, _plain(128), n=128, k=32, types="f32.e4m3.e4m3", registers=True),
        _case("wgmma_bf16_registers", bf16, _plain(128), n=128, k=16, types="f32.bf16.bf16", registers=True, tail="1, 1, 0"),
        _case("wgmma_e4m3_specials", bytes(0x7F if i % 997 == 5 else b for i, b in enumerate(wide)), _plain(64), n=64, k=32, types="f32.e4m3.e4m3"),
        _case("wgmma_bf16_specials", _clean_16bit(9, WINDOW // 2, 0xFFFF, 0), _plain(64), n=64, k=16, types="f32.bf16.bf16", tail="1, 1, 0, 0"),
    ]
    return cases


def _random_descriptor(rng: random.Random, swizzle: int, n_rows: int) -> int:
    """Start, LBO and SBO at random, the whole operand inside the window."""
    start = rng.randrange(0, 512) * 16 if swizzle == 0 else rng.randrange(0, 64) * 128
    sbo = rng.randrange(8, 200) * 16 if swizzle == 0 else rng.randrange(1, 30) * 128
    lbo = rng.randrange(1, 100) * 16
    assert start + sbo * (n_rows // 8) + 2 * lbo + 2048 < WINDOW
    return descriptor(start, lbo, sbo, swizzle)


def _random_descriptors() -> list[Case]:
    rng = random.Random(42)
    fp8 = random_e4m3(10, WINDOW, 0xBF)
    bf16 = _clean_16bit(11, WINDOW // 2, 0x87FF, 0x3800)
    cases = []
    for swizzle in range(4):
        pairs = [(_random_descriptor(rng, swizzle, 64), _random_descriptor(rng, swizzle, 32)) for _ in range(16)]
        cases.append(_case(f"wgmma_descriptors_k_major_{swizzle}", fp8, pairs, n=32, k=32, types="f32.e4m3.e4m3"))
        pairs = [(_random_descriptor(rng, swizzle, 64), _random_descriptor(rng, swizzle, 64)) for _ in range(16)]
        cases.append(_case(f"wgmma_descriptors_mn_major_{swizzle}", bf16, pairs, n=64, k=16, types="f32.bf16.bf16", tail="1, 1, 1, 1"))
    return cases


def cases() -> list[Case]:
    """All wgmma cases."""
    return _arithmetic() + _random_descriptors()
