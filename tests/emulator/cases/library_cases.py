"""The library's own SM90 FP8 GEMM, compiled from its headers with configs that cover its options."""
from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

from harness.case import Case, Param, Pointer, TensorMapSpec, random_e4m3

INCLUDE = Path(__file__).resolve().parents[3] / "include"
BF16, F32, U8 = 9, 7, 0


@dataclass(frozen=True)
class Config:
    """Mirror of ``Fp8GemmConfig`` (include/deep_gemm/kernels/fp8_gemm/interface.h)."""

    sfb: str = "kPerBlock"
    d_dtype: str = "kBf16"
    has_c: bool = False
    block_m: int = 128
    block_n: int = 128
    warpgroups: int = 2
    stages: int = 4
    accumulators: int = 1
    cluster_m: int = 1
    cluster_n: int = 1
    raster: int = 8

    @property
    def d_bytes(self) -> int:
        return 4 if self.d_dtype == "kF32" else 2

    def store_columns(self) -> int:
        return max(c for c in range(8, 128 // self.d_bytes + 1, 8) if self.block_n % c == 0)

    def smem_bytes(self) -> int:
        sfb = (self.block_n * 4 + 127) // 128 * 128 if self.sfb == "kPerRow" else 0
        d = self.block_n // self.store_columns() * (self.block_m // 64) * 64 * 128
        return d + self.stages * ((self.block_m + self.block_n) * 128 + sfb + 16) + 1024

    def text(self) -> str:
        return (f"Fp8GemmConfig{{ScaleGranularity::{self.sfb}, Grouping::kDense, Dtype::{self.d_dtype}, {str(self.has_c).lower()}, {self.block_m}, "
                f"{self.block_n}, {self.warpgroups}, {self.stages}, {self.accumulators}, {self.cluster_m}, {self.cluster_n}, {self.raster}}}")


SOURCE = """
#include <deep_gemm/kernels/fp8_gemm/sm90_fp8_gemm.cuh>
using namespace deep_gemm;
constexpr Fp8GemmConfig kConfig = %s;
extern "C" __global__ void __launch_bounds__(num_threads(kConfig), 1) kernel_main(const __grid_constant__ Fp8GemmArgs args) {
    sm90_fp8_gemm<kConfig>(args);
}
"""


@dataclass(frozen=True)
class LibraryCase(Case):
    """Its only parameter is the args struct: tensor maps, pointers and scalars are laid out one after another."""

    include: str = str(INCLUDE)

    def options(self) -> tuple[str, ...]:
        return (f"-I{self.include}", "-std=c++20")

    def prelude(self) -> str:
        return ""

    def pack(self, parts: list[bytes]) -> list[bytes]:
        return [b"".join(parts)]


def library_case(name: str, m: int, n: int, k: int, config: Config, grid: int) -> LibraryCase:
    """A and B are random E4M3, scales are random-ish floats; ``grid`` CTAs walk the tiles."""
    blocks = (k + 127) // 128
    per_row = config.sfb == "kPerRow"
    sfb_rows = n if per_row else (n + 127) // 128
    floats = lambda seed, count: struct.pack(f"<{count}f", *[0.25 + (i * seed % 113) / 64 for i in range(count)])  # noqa: E731
    tile_rows = min(m, config.block_m)
    rows = min(tile_rows, (-(-tile_rows // config.cluster_n) + 7) // 8 * 8)
    slices = -(-tile_rows // rows)
    dtype = F32 if config.d_dtype == "kF32" else BF16
    c_bytes = floats(7, m * n) if dtype == F32 else struct.pack(f"<{m * n}H", *[0x3F80 + i % 127 for i in range(m * n)])
    params: tuple[Param, ...] = (
        TensorMapSpec("a", U8, (k, m), (k,), (128, rows), 3), TensorMapSpec("b", U8, (k, n), (k,), (128, config.block_n // config.cluster_m), 3),
        TensorMapSpec("d", dtype, (n, m), (n * config.d_bytes,), (config.store_columns(), 64), 3),
        Pointer("sfa"), struct.pack("<qq", 1, m), Pointer("sfb"), struct.pack("<qq", 1, sfb_rows), Pointer("c"), struct.pack("<q", n),
        struct.pack("<5I", m, n, k, rows, slices), bytes(36))
    return LibraryCase(
        name=name, source=SOURCE % config.text(), shared=config.smem_bytes(), grid=(grid,), block=(128 * (config.warpgroups + 1),),
        cluster=(config.cluster_m * config.cluster_n, 1, 1), params=params, outputs=("d",),
        buffers={"a": random_e4m3(m + 1, m * k), "b": random_e4m3(n + 2, n * k), "d": bytes(m * n * config.d_bytes), "sfa": floats(29, blocks * m),
                 "sfb": floats(43, blocks * sfb_rows), "c": c_bytes})


def cases() -> list[Case]:
    """Shapes with tails in every extent, and every option of the config at least once."""
    if not (INCLUDE / "deep_gemm/kernels/fp8_gemm/sm90_fp8_gemm.cuh").exists():
        return []
    base = Config()
    row = replace(base, sfb="kPerRow", block_n=96)
    shapes = [(128, 128, 128), (1, 128, 256), (64, 256, 512), (200, 136, 384), (129, 264, 144), (256, 128, 1024), (300, 392, 640), (17, 512, 400)]
    found = [library_case(f"library_bf16_{m}x{n}x{k}", m, n, k, base, 4) for m, n, k in shapes]
    found += [library_case(f"library_per_row_{m}x{n}x{k}", m, n, k, replace(row, d_dtype="kF32"), 2) for m, n, k in shapes[3:6]]
    found += [
        library_case("library_cluster_m2", 384, 256, 512, replace(base, cluster_m=2), 4),
        library_case("library_cluster_n2", 200, 384, 384, replace(base, cluster_n=2, block_n=64), 4),
        library_case("library_two_accumulators", 150, 256, 640, replace(base, accumulators=2), 2),
        library_case("library_with_c", 150, 200, 256, replace(base, has_c=True, d_dtype="kF32"), 2),
        library_case("library_one_warpgroup", 100, 160, 384, replace(base, block_m=64, warpgroups=1, block_n=160), 3),
        library_case("library_two_waves", 300, 128, 256, replace(base, block_m=256, block_n=64, stages=3), 2),
    ]
    return list(found)
