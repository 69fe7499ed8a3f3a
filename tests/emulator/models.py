"""Second implementations, by other means than the emulator's: floats instead of integers, whole arrays instead of lanes."""
from __future__ import annotations

import numpy as np

E4M3, E5M2, E2M1, E2M3, E3M2 = (4, 3, 7), (5, 2, 15), (2, 1, 1), (2, 3, 1), (3, 2, 3)
F16, BF16 = (5, 10, 15), (8, 7, 127)


def decode(codes: np.ndarray, fmt: tuple[int, int, int]) -> np.ndarray:
    """Values of bit patterns of a small float format (exponent bits, mantissa bits, bias); NaN codes are not treated."""
    exponent_bits, mantissa_bits, bias = fmt
    codes = codes.astype(np.int64)
    sign = np.where(codes >> (exponent_bits + mantissa_bits) & 1, -1.0, 1.0)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << mantissa_bits) - 1)) / 2.0**mantissa_bits
    return sign * np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias).astype(np.float64))


def exponents(values: np.ndarray, lowest: int) -> np.ndarray:
    """Exponents as a tensor core sees them: of the leading digit, not below the format's lowest; -126 for zero."""
    _, e = np.frexp(values)
    return np.where(values == 0, -126, np.maximum(e - 1, lowest)).astype(np.int64)


def truncate_f32(values: np.ndarray, fraction_bits: int = 23) -> np.ndarray:
    """float64 -> float32 toward zero, keeping `fraction_bits` of fraction."""
    _, e = np.frexp(values)
    unit = np.ldexp(1.0, np.maximum(e - 1, -126) - fraction_bits)
    return (np.trunc(values / unit) * unit).astype(np.float32)


def fused_exponents(a: np.ndarray, b: np.ndarray, c: np.ndarray, lowest: tuple[int, int]) -> np.ndarray:
    """The largest exponent among products and accumulator, [M, N]."""
    e = exponents(a, lowest[0])[:, None, :] + exponents(b, lowest[1])[None, :, :]
    return np.maximum(e.max(axis=2), exponents(c.astype(np.float64), -126))


def fused_dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, lowest: tuple[int, int], fraction: int, kept: int, scale: np.ndarray | None = None) -> np.ndarray:
    """One instruction: a [M,K], b [N,K] float64, c [M,N] float32. `scale` [M,N] are exponents added to every product."""
    extra = np.zeros(c.shape, np.int64) if scale is None else scale
    e = exponents(a, lowest[0])[:, None, :] + exponents(b, lowest[1])[None, :, :] + extra[:, :, None]
    products = a[:, None, :] * b[None, :, :] * np.ldexp(1.0, extra)[:, :, None]
    top = np.maximum(e.max(axis=2), exponents(c.astype(np.float64), -126))
    unit = np.ldexp(1.0, top - fraction)
    total = np.trunc(products / unit[:, :, None]).sum(axis=2) + np.trunc(c.astype(np.float64) / unit)
    return truncate_f32(total * unit, kept)


def gemm_sm90(a: np.ndarray, b: np.ndarray, sfa: np.ndarray, sfb: np.ndarray) -> np.ndarray:
    """The SM90 test kernel: E4M3 codes a [M,K], b [N,K]; sfa [K/128,M], sfb [K/128,N/128]; 13-bit FP8 accumulators,
    promoted every 128 of K by one FP32 fused multiply-add."""
    (m, k), n = a.shape, b.shape[0]
    total = np.zeros((m, n), np.float32)
    av, bv = decode(a, E4M3), decode(b, E4M3)
    for block in range((k + 127) // 128):
        d = np.zeros((m, n), np.float32)
        for at in range(block * 128, min(block * 128 + 128, k), 32):
            part = slice(at, min(at + 32, k))
            d = fused_dot(av[:, part], bv[:, part], d, (-6, -6), 13, 13)
        columns = np.repeat(sfb[block], 128)[:n]
        scale = (sfa[block][:, None] * columns[None, :]).astype(np.float32)
        total = (d.astype(np.float64) * scale.astype(np.float64) + total.astype(np.float64)).astype(np.float32)
    return total


def gemm_sm100(a: np.ndarray, b: np.ndarray, sfa: np.ndarray, sfb: np.ndarray) -> np.ndarray:
    """The SM100 test kernel: scales are UE8M0 bytes [K/128, rows, 4]; 25-bit accumulation over all of K."""
    (m, k), n = a.shape, b.shape[0]
    d = np.zeros((m, n), np.float32)
    av, bv = decode(a, E4M3), decode(b, E4M3)
    for at in range(0, k, 32):
        part = slice(at, min(at + 32, k))
        block, byte = at // 128, at % 128 // 32
        scale = sfa[block, :m, byte].astype(np.int64)[:, None] - 127 + sfb[block, :n, byte].astype(np.int64)[None, :] - 127
        d = fused_dot(av[:, part], bv[:, part], d, (-6, -6), 25, 23, scale)
    return d


def swizzle(address: np.ndarray, span: int) -> np.ndarray:
    """Exchanges 16-byte chunks within 128-byte lines: XOR with the line's number, as far as the span reaches."""
    return address if span == 0 else address ^ (address // 128 % (span // 16)) * 16


def operand(window: np.ndarray, descriptor: int, rows: int, chunks: int, mn_major: bool) -> np.ndarray:
    """Bytes [line, 16 * chunks] of a wgmma operand: lines are rows (K-major) or k (MN-major)."""
    start, lbo, sbo = ((descriptor >> shift & 0x3FFF) * 16 for shift in (0, 16, 32))
    span = {0: 0, 1: 128, 2: 64, 3: 32}[descriptor >> 62]
    line, chunk = np.meshgrid(np.arange(rows), np.arange(chunks), indexing="ij")
    if span == 0:
        near, far = (sbo, lbo) if mn_major else (lbo, sbo)
        address = start + chunk * near + line % 8 * 16 + line // 8 * far
    else:
        inside = chunk * 16
        address = swizzle(start + inside % span + inside // span * (lbo if mn_major else span) + line % 8 * span + line // 8 * sbo, span)
    return window[address[:, :, None] + np.arange(16)].reshape(rows, 16 * chunks)


def tma_box(tensor: np.ndarray, box: tuple[int, ...], start: tuple[int, ...], fill: int = 0) -> np.ndarray:
    """The box of a byte tensor (dimensions slowest first) at `start` (fastest first); outside of it: `fill`."""
    out = np.full(box[::-1], fill, np.uint8)
    for index in np.ndindex(*box[::-1]):
        at = [i + s for i, s in zip(index, start[::-1])]
        if all(0 <= x < extent for x, extent in zip(at, tensor.shape)):
            out[index] = tensor[tuple(at)]
    return out
