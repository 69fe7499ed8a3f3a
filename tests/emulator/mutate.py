#!/usr/bin/env python3
"""Breaks one rule of the emulator at a time and reports which tests notice: a rule that nobody notices is not tested.

    python tests/emulator/mutate.py [--only NAME ...] [--table docs/emulator-mutations.md]

Works on a copy of the sources; a mutation that no longer applies is an error.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


TITLE = """# Mutation run of the emulator

One rule of the emulator is broken at a time; the table says which test notices first. Written by `tests/emulator/mutate.py
--table docs/emulator-mutations.md`, with the suites in the order units, tcgen05, pair, TMA on SM100, device maps, gemm, bugs, golden.

"""


@dataclass(frozen=True)
class Mutation:
    """`old` occurs in `file` (at least once; the first is replaced)."""

    name: str
    file: str
    old: str
    new: str


MUTATIONS = (
    Mutation("swizzle 128B: wrong bits", "async/tensor_map.cc", "a ^ ((a >> 3) & 0x70)", "a ^ ((a >> 4) & 0x70)"),
    Mutation("swizzle 64B as 32B", "async/tensor_map.cc", "a ^ ((a >> 3) & 0x30)", "a ^ ((a >> 3) & 0x10)"),
    Mutation("swizzle 32B omitted", "async/tensor_map.cc", "a ^ ((a >> 3) & 0x10)", "a"),
    Mutation("swizzle of the relative address", "async/descriptor.cc", "return swizzled(address & 0x3FFFF, d.swizzle);",
             "return d.start + swizzled(address - d.start, d.swizzle);"),
    Mutation("pitch is the inner box", "async/tensor_map.cc", "swizzle == MapSwizzle::kNone ? row_smem_bytes() : span_of(swizzle)", "row_smem_bytes()"),
    Mutation("out-of-range rows are not zero", "async/tma.cc", "exists &= at >= 0 && at < int64_t(map_.dim(d));", ""),
    Mutation("columns behind the tensor are read", "async/tma.cc", "std::clamp<int64_t>(end - start, first, bytes)", "bytes"),
    Mutation("NaN fill ignored", "async/tma.cc", "if (map.fills_nan) fill_nan(data);", ""),
    Mutation("NaN fill is all ones", "async/tma.cc", "kFillNan = 0x7FF77FF7", "kFillNan = 0x7FFF7FFF"),
    Mutation("TMA stores clip per element", "async/tma.cc", "kStoreUnit = 16", "kStoreUnit = 1"),
    Mutation("TMA loads clip in 16 bytes", "async/tma.cc", "kLoadUnit = 1,", "kLoadUnit = 16,"),
    Mutation("TMA stores may begin before the tensor", "async/tma.cc", "if (c.at[d] < 0)", "if (false)"),
    Mutation("halves are rounded twice", "simt/float.cc", "using Type = FFmaToOdd;", "using Type = FFma;"),
    Mutation("neg and abs keep NaNs", "simt/signs.cc", "if (t == T::kF32) return", "return bits; return"),
    Mutation("neg and abs do not flush", "simt/signs.cc", "i.mode != 0 &&", "false &&"),
    Mutation("saturation keeps -0", "simt/float.cc", "std::isnan(value) || std::signbit(value) ?", "std::isnan(value) || value < 0 ?"),
    Mutation("complete_tx counts the pitch", "async/tma.cc", "int64_t(walk.rows()) * map.row_data_bytes()", "int64_t(walk.rows()) * map.pitch()"),
    Mutation("multicast only to the own CTA", "async/tma.cc", "if (copy.multicast) ctas = uint16_t(x.slot(i.operands[3].slot)[lane]);", ""),
    Mutation("pair TMA signals the own CTA", "async/tma.cc", "(rank & ~1u) | (barrier_address >> kRankShift & 1)", "rank"),
    Mutation("TMA reduction overwrites", "async/tma.cc", "if (copy.reduces)\n", "if (false)\n"),
    Mutation("K-major, no swizzle: LBO and SBO exchanged", "async/descriptor.cc", "line / 8 * d.sbo + chunk * d.lbo", "line / 8 * d.lbo + chunk * d.sbo"),
    Mutation("MN-major, no swizzle: LBO and SBO exchanged", "async/descriptor.cc", "chunk * d.sbo + line % 8 * 16 + line / 8 * d.lbo",
             "chunk * d.lbo + line % 8 * 16 + line / 8 * d.sbo"),
    Mutation("MN-major, swizzle: LBO and SBO exchanged", "async/descriptor.cc", "byte / d.span * d.lbo + line % 8 * d.span + line / 8 * d.sbo",
             "byte / d.span * d.sbo + line % 8 * d.span + line / 8 * d.lbo"),
    Mutation("FP8 accumulator of 14 bits", "async/wgmma.cc", "is_fp8 ? 13 : 25, is_fp8 ?", "is_fp8 ? 14 : 25, is_fp8 ?"),
    Mutation("FP8 result keeps 23 bits", "async/wgmma.cc", "is_fp8 ? MmaOutput::kE8M13 : MmaOutput::kF32", "MmaOutput::kF32"),
    Mutation("16-bit accumulator of 24 bits", "async/wgmma.cc", "is_fp8 ? 13 : 25, is_fp8 ?", "is_fp8 ? 13 : 24, is_fp8 ?"),
    Mutation("products floor instead of truncate", "tensor/fused_dot.cc", "sum[n] += (shifted ^ sign) - sign;",
             "sum[n] += sign ? -((magnitude << left) >> std::min(top[size_t(n)] - ea - eb[n], kWidest)) - 1 : shifted;"),
    Mutation("zero keeps its format's exponent", "tensor/fused_dot.cc", "return {0, kZeroExponent, false};", "return {0, 1 - f.bias, false};"),
    Mutation("accumulator does not set the exponent", "tensor/fused_dot.cc", "std::copy_n(c_exponents.begin(), b.count, top.begin());", "top.fill(-300);"),
    Mutation("wgmma fragment: rows exchanged", "async/wgmma.cc", "l / 4 + 8 * (r >> 1 & 1)", "l / 4 + 8 * (r & 1)"),
    Mutation("wgmma A registers: order", "async/wgmma.cc", "l / 4 + 8 * int(q & 1)", "l / 4 + 8 * int(q >> 1)"),
    Mutation("scale-d ignored", "async/wgmma.cc", "if (op.accumulates) load_accumulators(x, i, s, d);\n", "load_accumulators(x, i, s, d);\n    const_cast<WgmmaOp&>(op).accumulates = true;\n"),
    Mutation("negation of A ignored", "async/wgmma.cc", "fill_tile(a, raw, kWarpRows, s.k, *s.a_format, s.a_sign);",
             "fill_tile(a, raw, kWarpRows, s.k, *s.a_format, Sign::kKeep);"),
    Mutation("try_wait parity inverted", "scheduler/barriers.h", "(barrier.phase & 1) != parity", "(barrier.phase & 1) == parity"),
    Mutation("phase completes with bytes outstanding", "scheduler/mbarrier.cc", "barrier.pending != 0 || barrier.tx != 0", "barrier.pending != 0"),
    Mutation("mapa keeps the own rank", "simt/data.cc", "uint32_t(rank[l]) << kRankShift", "x.cta.rank << kRankShift"),
    Mutation("shared window starts at 0", "scheduler/start.cc", "(cta.rank << kRankShift) + kSystemSmemBytes + init.value",
             "(cta.rank << kRankShift) + init.value"),
    Mutation("cluster rank in z order", "scheduler/start.cc", "cluster.id.x * c.x + rank % c.x", "cluster.id.x * c.x + rank / c.y % c.x"),
    Mutation("elect takes the highest lane", "simt/collectives.cc", "std::countr_zero(lanes & members)", "31 - std::countl_zero(lanes & members)"),
    Mutation("shfl ignores segments", "simt/collectives.cc", "int(c >> 8 & 31)", "0"),
    Mutation("cvt bf16x2: halves exchanged", "simt/convert.cc", "one(high[l]) << element_bits(c.to) | one(low[l])",
             "one(low[l]) << element_bits(c.to) | one(high[l])"),
    Mutation("stmatrix.trans as plain", "simt/matrix_moves.cc", "(i.mode ? rows[q][p] : rows[p][q]) = uint16_t(value);", "rows[p][q] = uint16_t(value);"),
    Mutation("layout F contiguous", "async/tcgen05_mma.cc", "uint32_t(m / 16 * 32 + m % 16)", "uint32_t(m)"),
    Mutation("scale id ignored", "async/tcgen05_mma.cc", "row) >> (8 * source.id) & 0xFF", "row) & 0xFF"),
    Mutation("SFA and SFB ids exchanged", "async/instruction_descriptor.cc", "i.sfb_id = int(bits >> 4 & 3);\n        i.sfa_id = int(bits >> 29 & 3);",
             "i.sfa_id = int(bits >> 4 & 3);\n        i.sfb_id = int(bits >> 29 & 3);"),
    Mutation("UE8M0 bias off by one", "tensor/fused_dot.cc", "int32_t(ue8m0) - 127", "int32_t(ue8m0) - 126"),
    Mutation("scale row mapping", "async/tcgen05_mma.cc", "lane = uint32_t(row % 32)", "lane = uint32_t(31 - row % 32)"),
    Mutation("FP4 scales in reverse", "async/tcgen05_mma.cc", "group * per_row / kFp4Groups", "(kFp4Groups - 1 - group) * per_row / kFp4Groups"),
    Mutation("FP4 kinds with 25 bits", "tensor/scaled_dot.cc", "kFraction = 35", "kFraction = 25"),
    Mutation("pair: halves of B exchanged", "async/tcgen05_mma.cc", "i.n + q * part", "i.n + (group - 1 - q) * part"),
    Mutation("layout B as dense", "async/tcgen05_mma.cc", "return uint32_t(m + 64 * (n / (n_ / 2)));", "return uint32_t(m);"),
    Mutation("padded types: pad is counted", "async/tma.cc", "int64_t(walk.rows()) * map.row_data_bytes()", "int64_t(walk.rows()) * map.row_smem_bytes()"),
    Mutation("commit multicast ignored", "async/tcgen05.cc", "if (i.mode & 4) ctas = uint16_t(x.slot(i.a)[lane]);", ""),
    Mutation("accumulate flag inverted", "async/tcgen05_mma.cc", "form.accumulate].slot)[lane] & 1) !=", "form.accumulate].slot)[lane] & 1) =="),
    Mutation("padded FP4: high nibble first", "async/descriptor.cc", "const int at = index * bits;", "const int at = (bits == 4 && layout.is_padded ? index ^ 1 : index) * bits;"),
    Mutation("tf32 keeps the low bits", "async/tcgen05_mma.cc", "&format == &kTF32 ? 13 : 0", "&format == &kTF32 ? 12 : 0"),
    Mutation("cp does not replicate", "async/tmem_access.cc", "for (uint32_t part = 0; part < 4; ++part)\n                cta.tmem", "for (uint32_t part = 0; part < 1; ++part)\n                cta.tmem"),
    Mutation("16x256b register order", "async/tmem_access.cc", "8 * (r >> 1 & 1), 2 * (l & 3) + (r & 1)", "8 * (r & 1), 2 * (l & 3) + (r >> 1 & 1)"),
    Mutation("16x64b lanes", "async/tmem_access.cc", "8 * (l & 1), (l >> 1 & 1)", "8 * (l >> 1 & 1), (l & 1)"),
    Mutation("arrive does not release", "simt/barrier_ops.cc", "if (op.releases) release(x.warp, barrier.arriving);", ""),
    Mutation("wgmma hazards are not checked", "scheduler/hazards.cc", "if (instr.opcode.starts_with(\"wgmma\")) return;", "return;"),
    Mutation("exits are not checked", "scheduler/cta_barriers.cc", "if (access.time > cta.exit_knowledge[actor])", "if (false)"),
    Mutation("named barriers may be left half full", "scheduler/cta_barriers.cc", "if (cta.named[id].arrived)", "if (false)"),
    Mutation("proxy fences are not checked", "machine/shadow.cc", "if (!who.is_async_proxy || !cell.is_generic", "return;\n    if (!who.is_async_proxy || !cell.is_generic"),
    Mutation("races are not checked", "machine/shadow.cc", "if (actor == kNoActor) return true;", "return true;"),
    Mutation("races of lanes are not checked", "machine/shadow.cc", "if (who.is_async_proxy || earlier.thread == kNoThread ||", "if (true ||"),
    Mutation("lanes that read together are the last one", "machine/shadow.cc", "now.thread = kSeveralThreads;", ";"),
    Mutation("a map is published by one lane", "async/tensor_map_ops.cc", "for_lanes(lanes, [&](int reader) {", "for_lanes(LaneMask{1} << lane, [&](int reader) {"),
    Mutation("__syncwarp orders nothing", "simt/barrier_ops.cc", "[&](LaneMask lanes) { x.warp.meet(lanes); }", "[](LaneMask) {}"),
    Mutation("barriers order no lanes", "scheduler/cta_barriers.cc", "warp.meet(wait.lanes); wake", "wake"),
    Mutation("some lanes meet for all", "machine/state.h", "if ((lanes & live()) == live())", "if (lanes)"),
    Mutation("relaxed cluster barriers order lanes", "scheduler/cta_barriers.cc", "if (warp.cluster_arrival_releases)", "if (true)"),
    Mutation("cluster barriers order no lanes", "scheduler/cta_barriers.cc", "if (warp.cluster_arrival_releases)", "if (false)"),
    Mutation("asynchronous reads are a lane's", "machine/shadow.cc", "if (!is_shared(place) || who.is_async_proxy) return", "if (!is_shared(place)) return"),
    Mutation("a changed stride stays", "async/tensor_map_ops.cc", "map.strides[dimension] = value;", ""),
    Mutation("a changed extent is one more", "async/tensor_map_ops.cc", "uint32_t(value - 1)", "uint32_t(value)"),
    Mutation("acquired maps are not checked", "async/tensor_map_ops.cc", "acquired->second != published->second", "false"),
    Mutation("reads of published maps are forgotten", "async/tensor_map_ops.cc", "x.launch.shadow.read_global(address, kMapBytes, who);", "(void)who;"),
    Mutation("try_wait never fails", "simt/barrier_ops.cc", "x.launch.random() % 8 == 0", "false"),
)


def apply(mutation: Mutation, root: Path) -> str:
    """Writes the mutated file; returns the original text."""
    path = root / mutation.file
    text = path.read_text()
    pattern = r"\s*".join(re.escape(token) for token in re.findall(r"\w+|[^\w\s]", mutation.old))
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f"'{mutation.name}' does not apply to {mutation.file} any more")
    path.write_text(text[:found.start()] + mutation.new + text[found.end():])
    return text


def compile_copy(root: Path) -> Path | None:
    """The library of the copy, None when it does not compile."""
    done = subprocess.run(["cmake", "--build", str(root / "build"), "-j", "2"], capture_output=True, text=True)
    return root / "build" / "libdeep_gemm_emulator.so" if done.returncode == 0 else None


def failing_tests(library: Path, stop_at_first: bool) -> list[str]:
    environment = {**os.environ, "DG_EMULATOR_LIBRARY": str(library), "DG_EMULATE_QUIET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", f"--confcutdir={HERE}", "--deselect", "test_emulator_library.py"]
    suites = ["test_emulator_units.py", "test_emulator_tcgen05.py", "test_emulator_pair.py", "test_emulator_tma_sm100.py", "test_emulator_device_maps.py", "test_emulator_gemm.py", "test_emulator_bugs.py", "test_emulator_golden.py"]
    for suite in suites:
        try:
            done = subprocess.run([*command, *(["-x"] if stop_at_first else []), suite], cwd=HERE, env=environment, capture_output=True, text=True, timeout=240)
        except subprocess.TimeoutExpired:
            return [f"{suite} (hangs)"]
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
        if failed or done.returncode not in (0, 5):
            return failed or [f"{suite} (crashes)"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="mutations whose name contains one of these")
    parser.add_argument("--table", type=Path, help="write a Markdown table")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if any(part in m.name for part in arguments.only)]
    rows = ["| rule broken | noticed first by |", "|---|---|"]
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "emulator"
        shutil.copytree(HERE, root, ignore=shutil.ignore_patterns("__pycache__", "golden"))
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(["cmake", "-S", str(root), "-B", str(root / "build"), *generator], check=True, capture_output=True)
        assert compile_copy(root), "the unchanged sources do not compile"
        for mutation in chosen:
            original = apply(mutation, root)
            library = compile_copy(root)
            failed = failing_tests(library, True) if library else ["(does not compile)"]
            (root / mutation.file).write_text(original)
            survivors += not failed
            rows.append(f"| {mutation.name} | {f'`{failed[0]}`' if failed else '**nobody**'} |")
            print(rows[-1], flush=True)
    if arguments.table:
        arguments.table.write_text(TITLE + "\n".join(rows) + "\n")
    return survivors


if __name__ == "__main__":
    sys.exit(main())
