// How long a config takes on a shape, in microseconds at the device's own numbers. Everything to calibrate is
// here.
#pragma once

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "plan/arch_spec.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::plan {

// What one SM and one kernel of an architecture cost. Cycles are SM cycles; bytes are per SM and cycle.
struct CostConstants {
    // Rates of one SM.
    double mac_per_cycle;           // dense FP8
    double smem_bytes_per_cycle;    // TMA writes and wgmma operand reads share it
    double ingest_bytes_per_cycle;  // into an SM from L2 and from its cluster's multicast alike
    double issue_per_cycle;         // warp instructions of one warpgroup: four schedulers, one each

    // Promotion: warp instructions per accumulator element of a thread.
    double promote_per_block;  // SFB per block: one FMA and its share of waiting
    double promote_per_row;    // SFB per row: a second multiply and the load of its factor

    // Latencies, in cycles.
    double chain_one;  // of one K block beyond wgmma and promotion, one accumulator: wait, issue, wgmma depth
    double chain_two;  // the same with the next block already issued
    double tma_latency;          // from the issue of a load to data of a far memory in shared memory
    double cluster_latency;      // added where a stage is freed by, and filled from, another CTA
    double fill;                 // entry to the first stage full, barrier set-up included
    double drain;                // last store issued to kernel end
    double tile_fixed;           // per tile: schedule step, store hand-over
    double store_box;            // per TMA store of one box
    double store_wait;           // per box that must wait until an earlier one has been read
    double epilogue_per_column;  // per column and 64 rows of a tile: convert, stage
    double c_per_column;         // the same for reading C

    // The whole kernel.
    double launch_us;       // an empty kernel of this size, as a profiler sees it
    int overlap_doublings;  // limits join by a p-norm, p = 2^this: large = only the tightest counts
    double tie_fraction;    // estimates this close are equal; the table's order decides
};

inline constexpr CostConstants kSm90Cost{
    .mac_per_cycle = 4096,         // 1,979 TFLOPS at 1.83 GHz on 132 SMs
    .smem_bytes_per_cycle = 128,   // 32 banks of 4 bytes
    .ingest_bytes_per_cycle = 64,  // width of the L2 port
    .issue_per_cycle = 4,          // one per scheduler
    .promote_per_block = 1.3,      // estimate from the instruction mix
    .promote_per_row = 2.6,        // estimate from the instruction mix
    .chain_one = 75,               // with wgmma and promotion: about 150 for a narrow tile
    .chain_two = 20,               // with wgmma: about 100 for a narrow tile
    .tma_latency = 1100,           // DRAM, loaded
    .cluster_latency = 300,        // remote arrive and multicast skew
    .fill = 1500,                  // tensor-map fetch, then one DRAM latency
    .drain = 800,                  // store to L2 and exit
    .tile_fixed = 150,
    .store_box = 20,
    .store_wait = 200,  // TMA reads 8 KB
    .epilogue_per_column = 2,
    .c_per_column = 6,
    .launch_us = 2.5,
    .overlap_doublings = 3,
    .tie_fraction = 0.01,
};

// The M that stands for `m` in every estimate, so that a choice can only change between two of them: a
// multiple of 8 up to one wgmma tile, of 64 beyond.
int64_t planning_m(int64_t m);

// A grouped problem as estimates see it: `count` matrices of B, each multiplied with `rows` rows of A. Dense:
// one.
struct GroupRows {
    int64_t rows, count;
};
GroupRows group_rows(const Fp8GemmShape& shape);

// What limits a config, in microseconds: for printing and calibration.
struct CostParts {
    double math = 0;   // all waves of one SM: the slowest of tensor, shared memory, ingest, issue and latency
    double power = 0;  // the product at the sustained rate of the whole device
    double dram = 0;
    double l2 = 0;
    double overhead = 0;  // launch, fill, last epilogue, drain
    double total = 0;
};
CostParts cost_of(const CostConstants& cost, const Fp8GemmConfig& config, const Fp8GemmShape& shape,
                  const ArchSpec& arch);

}  // namespace deep_gemm::plan
