// How long a config takes on a shape, in microseconds at the device's own numbers. Everything to calibrate is
// here.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "plan/arch_spec.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::plan {

// What one SM and one kernel of an architecture cost. Cycles are SM cycles at `ArchSpec::clock_ghz`.
struct CostConstants {
    // Rates of one SM.
    double mac_per_cycle;         // dense FP8
    double smem_bytes_per_cycle;  // TMA writes and wgmma operand reads share it

    // Promotion: FMAs per accumulator element of a thread, and cycles per FMA of a warp. Products and FMAs
    // want the same register-file ports, hence the cycles.
    double promote_per_block;   // SFB per block: one
    double promote_per_row;     // SFB per row: a second one for its factor
    double fma_shared;          // of a scheduler, whose warps take turns
    double fma_alone;           // of one warp, its own product awaited first
    double fma_beside_product;  // of one warp while its next product runs
    double exposed_in_parts;    // share of the shorter of product and promotion that halves do not hide
    double select_per_segment;  // cycles per shared segment of columns where a tile may touch two SFB blocks

    // Latencies, in cycles.
    double chain_one;    // of one wait beyond wgmma and promotion, one accumulator: wait, issue, wgmma depth
    double chain_two;    // the same with the next block already issued
    double tma_latency;  // from a freed stage to its data, which the other stages must cover
    double cluster_latency;      // more per other CTA that frees the stage, and fills it
    double tall_cluster_latency;     // the same of 192x128: products are long, and half of A's traffic is worth more
    double tallest_cluster_latency;  // and of 256x128
    double tile_fixed;           // per tile: schedule step, drained products, store hand-over
    double epilogue_per_column;  // per column and 64 rows of a warpgroup: convert, stage
    double store_wait;           // per box that must wait until an earlier one has been read
    double c_per_column;         // per column and 64 rows of a tile: reading C

    // The whole kernel.
    double crowding;            // what 64 rows of A cost in L2 beyond their bytes where they are all there is
    double outside_tb_per_s;    // TMA filling boxes outside a tensor with zeros, the whole device
    double start_and_drain_us;  // launch, tensor maps, first data; last store and exit
    double sustained_from_us, sustained_at_us;  // the clock falls between these lengths
    int overlap_doublings;  // the p-norm that joins limits has p = 2^this: large = only the tightest counts
    double tie_fraction;    // estimates this close are equal; the table's order decides
};

// Fitted by random search to docs/benchmarks/fp8_gemm_configs_h200.csv, with the picks of the same shapes in view: no shape
// was held out. They are what makes the estimates order configs as the measurements do, not properties of the device: shared
// memory moves more bytes a cycle than it has banks for, and what does not limit has gone to the edge of its range. Set by
// hand: the cluster latencies of tall tiles (pairs of CTAs took 0.5 to 3 % less in long kernels, alternated), mac_per_cycle,
// promote_per_block, c_per_column, outside_tb_per_s, overlap_doublings, tie_fraction.
inline constexpr CostConstants kSm90Cost{
    .mac_per_cycle = 4096,        // 1,979 TFLOPS at 1.83 GHz on 132 SMs
    .smem_bytes_per_cycle = 175,
    .promote_per_block = 1,
    .promote_per_row = 3.7,
    .fma_shared = 1.75,
    .fma_alone = 1.0,
    .fma_beside_product = 1.77,
    .exposed_in_parts = 0.38,
    .select_per_segment = 25,
    .chain_one = 300,
    .chain_two = 165,
    .tma_latency = 2270,
    .cluster_latency = 900,
    .tall_cluster_latency = 250,
    .tallest_cluster_latency = 90,
    .tile_fixed = 900,
    .epilogue_per_column = 1.0,
    .store_wait = 0,
    .c_per_column = 6,  // not measured
    .crowding = 0,
    .outside_tb_per_s = 0.5,
    .start_and_drain_us = 2.74,
    .sustained_from_us = 59,
    .sustained_at_us = 400,
    .overlap_doublings = 2,
    .tie_fraction = 0.01,
};

// What limits a config, in microseconds: for printing and calibration.
struct CostParts {
    double math = 0;  // all waves of one SM: the slowest of tensor, shared memory, promotion and latency
    double dram = 0;
    double l2 = 0;       // L2 to the SMs
    double outside = 0;  // tiles of a cluster that lie wholly outside D
    double overhead = 0;
    double total = 0;
};
CostParts cost_of(const CostConstants& cost, const Fp8GemmConfig& config, const Fp8GemmShape& shape,
                  const ArchSpec& arch);

}  // namespace deep_gemm::plan
