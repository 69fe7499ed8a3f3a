// The order of tiles: which operand stays in L2 while the other streams by.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "plan/arch_spec.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::plan {

// Cluster tiles in a band. Eight along M, or along N, were within 1 % of the best of 1 to 32 wherever
// measured.
inline constexpr int64_t kRasterGroup = 8;

struct Raster {
    RasterOrder order;
    double operand_bytes;  // of A and B read from memory in all
};

// One dimension of the output, for one group of a problem.
struct RasterSide {
    int64_t rows;
    int64_t rows_per_tile;  // of a cluster
    double bytes_per_row;   // of its operand
};

// The bands that read A and B least often from memory; where both do, those whose wave of tiles touches fewer
// rows.
Raster pick_raster(const RasterSide& m, const RasterSide& n, int cluster, const ArchSpec& arch);

// The same for an FP8 GEMM, of whose groups one stands for all.
Raster pick_raster(const Fp8GemmConfig& config, const Fp8GemmShape& shape, const ArchSpec& arch);

}  // namespace deep_gemm::plan
