"""Scalar instructions with corner-case operands: conversions, integer and float arithmetic, warp collectives."""
from __future__ import annotations

import struct

from harness.case import Case, Pointer, random_bytes

# Bit patterns that have bitten somebody: zeros, subnormals, ties, limits, infinities, NaNs.
F32_PATTERNS = [0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F800001, 0x3F000000, 0x3EFFFFFF, 0x40490FDB, 0x4B000001, 0x4F000000,
                0xCF000000, 0x4F800000, 0x5F000000, 0xDF000000, 0x5F800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF812345,
                0x43E00000, 0x43E80000, 0x43F00000, 0x3B000000, 0x3A800000, 0x3AC00000, 0x47600000, 0x477FF000, 0x33800000, 0x33000001, 0x387FC000, 0x38800000,
                0x3F808000, 0x3F818000, 0x3F7F8000, 0xC2F70000, 0x42FE0000, 0x437F0000, 0x43800000, 0x40200000, 0x40600000, 0x3DCCCCCD, 0x00400000, 0x80000001]


def _words() -> bytes:
    noise = struct.unpack("<208I", random_bytes(21, 832))
    return struct.pack("<256I", *F32_PATTERNS, *noise)


_SCALAR = """
#define OUT(value) out[(slot++) * 256 + threadIdx.x] = (u32)(value)
extern "C" __global__ void kernel_main(const u32* in, u32* out) {
    int slot = 0;
    const u32 a = in[threadIdx.x], b = in[(threadIdx.x * 7 + 3) %% 256], c = in[(threadIdx.x * 13 + 5) %% 256];
    u32 r; u64 w; (void)w; (void)r; (void)c;
    %s
}
"""


def _op(text: str, constraint: str = "r", inputs: str = '"r"(a)') -> str:
    if constraint == "l":
        return f'asm volatile("{text}" : "=l"(w) : {inputs}); OUT(w); OUT(w >> 32);'
    if constraint == "h":
        return f'{{ u16 h; asm volatile("{text}" : "=h"(h) : {inputs}); OUT(h); }}'
    return f'asm volatile("{text}" : "=r"(r) : {inputs}); OUT(r);'


AB = '"r"(a), "r"(b)'
ABC = '"r"(a), "r"(b), "r"(c)'


def _case(name: str, operations: list[str], words: bytes | None = None) -> Case:
    slots = sum(op.count("OUT(") for op in operations)
    return Case(name=name, keeps_all=True, source=_SCALAR % "\n    ".join(operations), block=(256,), buffers={"in": words or _words(), "out": bytes(slots * 1024)},
                params=(Pointer("in"), Pointer("out")), outputs=("out",))


def _float_conversions() -> Case:
    ops = []
    for to in ("rn", "rz"):
        ops.append(_op(f"{{.reg .b16 h; cvt.{to}.f16.f32 h, %1; cvt.u32.u16 %0, h;}}", inputs='"f"(__uint_as_float(a))'))
        ops.append(_op(f"{{.reg .b16 h; cvt.{to}.bf16.f32 h, %1; cvt.u32.u16 %0, h;}}", inputs='"f"(__uint_as_float(a))'))
        ops.append(_op(f"cvt.{to}.bf16x2.f32 %0, %1, %2;", inputs='"f"(__uint_as_float(a)), "f"(__uint_as_float(b))'))
        ops.append(_op(f"cvt.{to}.f16x2.f32 %0, %1, %2;", inputs='"f"(__uint_as_float(a)), "f"(__uint_as_float(b))'))
    for small in ("e4m3x2", "e5m2x2"):
        ops.append(_op(f"cvt.rn.satfinite.{small}.f32 %0, %1, %2;", "h", '"f"(__uint_as_float(a)), "f"(__uint_as_float(b))'))
        ops.append(_op(f"cvt.rn.satfinite.relu.{small}.f32 %0, %1, %2;", "h", '"f"(__uint_as_float(a)), "f"(__uint_as_float(b))'))
        ops.append(_op(f"cvt.rn.satfinite.{small}.f16x2 %0, %1;", "h"))
        ops.append(_op(f"cvt.rn.f16x2.{small} %0, %1;", inputs='"h"((u16)a)'))
    ops.append(_op("cvt.rna.tf32.f32 %0, %1;", inputs='"f"(__uint_as_float(a))'))
    ops.append(_op("cvt.f32.f16 %0, %1;", inputs='"h"((u16)a)'))
    return _case("cvt_floats", ops)


def _integer_conversions() -> Case:
    ops = [_op(f"cvt.{mode}.{to}.f32 %0, %1;", inputs='"f"(__uint_as_float(a))') for mode in ("rni", "rzi", "rmi", "rpi") for to in ("s32", "u32")]
    ops += [_op(f"cvt.rzi.{to}.f32 %0, %1;", "l", '"f"(__uint_as_float(a))') for to in ("s64", "u64")]
    ops += [_op(f"cvt.{mode}.f32.f32 %0, %1;", inputs='"f"(__uint_as_float(a))') for mode in ("rni", "rzi", "rmi", "rpi")]
    ops += [_op(f"cvt.{mode}.f32.{source} %0, %1;") for mode in ("rn", "rz") for source in ("s32", "u32")]
    ops += [_op(f"{{.reg .{to} h; cvt.sat.{to}.s32 h, %1; cvt.u32.{to} %0, h;}}") for to in ("u8", "s8", "u16", "s16")]
    ops.append(_op("cvt.sat.f32.f32 %0, %1;", inputs='"f"(__uint_as_float(a))'))
    ops.append(_op("cvt.ftz.f32.f32 %0, %1;", inputs='"f"(__uint_as_float(a))') if False else "")
    return _case("cvt_integers", [op for op in ops if op])


def _integers() -> Case:
    ops = [_op(f"{text} %0, %1, %2;", inputs=AB) for text in (
        "add.s32", "sub.u32", "mul.lo.s32", "mul.hi.s32", "mul.hi.u32", "div.u32", "rem.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32",
        "shl.b32", "shr.u32", "shr.s32", "add.sat.s32", "sub.sat.s32")]
    ops += [_op("mul.wide.s32 %0, %1, %2;", "l", AB), _op("mul.wide.u32 %0, %1, %2;", "l", AB)]
    ops += [_op(f"{text} %0, %1, %2, %3;", inputs=ABC) for text in ("mad.lo.s32", "mad.hi.u32", "shf.l.wrap.b32", "shf.r.wrap.b32", "shf.l.clamp.b32",
            "shf.r.clamp.b32", "prmt.b32", "bfe.u32", "bfe.s32", "dp4a.s32.u32", "prmt.b32.f4e", "prmt.b32.rc16")]
    ops += [_op(f"{text} %0, %1;") for text in ("popc.b32", "clz.b32", "brev.b32", "not.b32", "neg.s32", "abs.s32", "bfind.u32", "bfind.s32",
            "bfind.shiftamt.u32", "cnot.b32")]
    ops += [_op("lop3.b32 %0, %1, %2, %3, 0x96;", inputs=ABC), _op("lop3.b32 %0, %1, %2, %3, 0xE2;", inputs=ABC),
            _op("bfi.b32 %0, %1, %2, %3, 7;", inputs=ABC)]
    return _case("integer_arithmetic", ops)


def _floats() -> Case:
    f2 = '"f"(__uint_as_float(a)), "f"(__uint_as_float(b))'
    f3 = f2 + ', "f"(__uint_as_float(c))'
    ops = [_op(f"{text} %0, %1, %2;", inputs=f2) for text in (
        "add.rn.f32", "add.rz.f32", "add.rm.f32", "add.rp.f32", "sub.rn.f32", "mul.rn.f32", "mul.rz.f32", "add.rn.ftz.f32", "mul.rn.ftz.f32", "add.sat.f32",
        "min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32", "div.rn.f32", "copysign.f32")]
    ops += [_op(f"{text} %0, %1, %2, %3;", inputs=f3) for text in ("fma.rn.f32", "fma.rz.f32", "fma.rn.ftz.f32", "fma.rn.sat.f32")]
    ops += [_op(f"{text} %0, %1;", inputs='"f"(__uint_as_float(a))') for text in ("sqrt.rn.f32", "rcp.rn.f32", "neg.f32", "abs.f32")]
    ops += [_op(f"{text} %0, %1, %2;", inputs=AB) for text in ("add.rn.bf16x2", "mul.rn.bf16x2", "add.rn.f16x2", "mul.rn.f16x2", "min.bf16x2", "max.f16x2")]
    ops += [_op(f"{text} %0, %1, %2, %3;", inputs=ABC) for text in ("fma.rn.bf16x2", "fma.rn.f16x2")]
    for comparison in ("eq", "ne", "lt", "ge", "equ", "neu", "ltu", "num", "nan"):
        ops.append(_op(f"{{.reg .pred p; setp.{comparison}.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}}", inputs=f2))
    for comparison in ("lt.s32", "lo.u32", "hs.u32", "ge.s32"):
        ops.append(_op(f"{{.reg .pred p; setp.{comparison} p, %1, %2; selp.u32 %0, 1, 0, p;}}", inputs=AB))
    return _case("float_arithmetic", ops)


# NaNs with payloads, zeros of both signs, small divisors, and halves whose products tie.
CORNERS = [0x7F800001, 0x7F801FFF, 0xFF800FFF, 0x7FFFFFFF, 0xFFC12345, 0xFF81FFC1, 0x7C017F81, 0xFE00FFC0, 0, 0x80000000, 0x80008000, 1, 3, 0xFFFFFFFF,
           0x3F810081, 0x3F833F83, 0x40014001, 0x00010001, 0x80018001, 0x3C013C03, 0x3F800000, 0xBF800000, 0xD0A066A2, 0x98EE98EE]


def _corners() -> Case:
    """What the other cases meet too seldom."""
    f1 = '"f"(__uint_as_float(a))'
    f2 = f1 + ', "f"(__uint_as_float(b))'
    f3 = f2 + ', "f"(__uint_as_float(c))'
    ops = [_op(f"{sign}.{kind} %0, %1;") for sign in ("neg", "abs") for kind in ("f16x2", "bf16x2")]
    ops += [_op(f"{sign}.ftz.f32 %0, %1;", inputs=f1) for sign in ("neg", "abs")]
    ops += [_op(f"fma.rn.{kind} %0, %1, %2, %3;", inputs=ABC) for kind in ("f16x2", "bf16x2")]
    ops += [_op(f"{text}.sat.f32 %0, %1, %2;", inputs=f2) for text in ("add", "mul")]
    ops += [_op("fma.rn.sat.f32 %0, %1, %2, %3;", inputs=f3), _op("cvt.sat.f32.f32 %0, %1;", inputs=f1), _op("cvt.rna.tf32.f32 %0, %1;", inputs=f1)]
    ops += [_op(f"{text} %0, %1, %2;", inputs=AB) for text in ("rem.s32", "rem.u32", "div.s32")]
    ops += [_op(f"{text}.u64 %0, %1, %2;", "l", '"l"((u64)a), "l"((u64)b)') for text in ("div", "rem")]
    return _case("scalar_corners", ops, struct.pack("<256I", *[CORNERS[i % len(CORNERS)] for i in range(256)]))


def _warp() -> Case:
    ops = []
    for mode in ("up", "down", "bfly", "idx"):
        for control in ("31", "0", "0x181f", "0x1c07" if mode != "up" else "0x1c00"):
            ops.append("{ u32 p; asm volatile(\"{.reg .pred q; shfl.sync.%s.b32 %%0|q, %%2, %%3, %s, 0xffffffff; selp.u32 %%1, 1, 0, q;}\" "
                       ": \"=r\"(r), \"=r\"(p) : \"r\"(a), \"r\"(b & 31)); OUT(r); OUT(p); }" % (mode, control))
    ops += [_op(f"redux.sync.{op} %0, %1, 0xffffffff;") for op in ("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32")]
    ops.append(_op("{.reg .pred p; setp.lt.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}"))
    ops.append(_op("match.any.sync.b32 %0, %1, 0xffffffff;", inputs='"r"(a & 3)'))
    ops.append("{ u32 l; asm volatile(\"{.reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p;}\" : \"=r\"(l), \"=r\"(r)); OUT(l); OUT(r); }")
    ops.append("r = 77; if (threadIdx.x % 4 != 1) { u32 l; asm volatile(\"{.reg .pred p; elect.sync %0|p, 0xdddddddd; selp.u32 %1, 1, 0, p;}\" "
               ": \"=r\"(l), \"=r\"(r)); r += 2 * l; } OUT(r);")
    return _case("warp_collectives", ops)


def cases() -> list[Case]:
    """All scalar cases."""
    return [_float_conversions(), _integer_conversions(), _integers(), _floats(), _corners(), _warp()]
