// How long a config of the BF16 GEMM takes on a shape, in microseconds at the device's own numbers, and the order of its tiles.
#pragma once

#include "plan/bf16_gemm.h"
#include "plan/raster.h"

namespace deep_gemm::plan {

struct Bf16Clusters {
    int64_t count;
    int slots;  // that run at once
};

// The most clusters there can be, whatever a layout of groups says.
Bf16Clusters most_clusters(const Bf16GemmConfig& config, const Bf16GemmShape& shape, int sms);

// Rows of A that tiles of `block_m` rows read for one matrix of B: where each group is cut for itself, more than it wants.
int64_t rows_under_tiles(int block_m, const Bf16GemmShape& shape);

Raster bf16_raster(const Bf16GemmConfig& config, const Bf16GemmShape& shape, const ArchSpec& arch);

// The estimate that configs are ordered by; `shape.m` is a planning_m().
double bf16_estimate_us(const Bf16GemmConfig& config, const Bf16GemmShape& shape, const ArchSpec& arch);

}  // namespace deep_gemm::plan
