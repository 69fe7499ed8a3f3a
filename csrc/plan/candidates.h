// The configs a kernel can be compiled for, as data, and the rules that refuse one, each with a sentence.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <deep_gemm/kernels/fp8_gemm/interface.h>

#include "plan/arch_spec.h"
#include "plan/fp8_gemm.h"

namespace deep_gemm::plan {

// A family of tiles: one height, all widths of a step.
struct TileRow {
    int block_m;
    int num_math_warpgroups;
    int block_n_step, block_n_max;
    int planned_step;           // widths between its multiples run when asked for, but are not planned
    int register_limit;         // per math thread
    const char* off = nullptr;  // why it is not planned yet; such a config still runs when asked for by name
};

struct ClusterRow {
    int m, n;
    int planned_block_m = 256;  // the tallest tile it is planned for
    const char* off = nullptr;
};

// How products are cut and how many are in flight, for tiles of a range of widths. Below `block_n_min` the
// compiler orders the wgmmas one after another; above `block_n_max` the kernel has no such form, or no use
// for it.
struct ProductRow {
    int num_accumulators;
    int n_parts;
    int k_blocks;
    int block_n_min, block_n_max;
    int planned_step = 1;   // of the widths that are planned
    int planned_max = 256;  // the widest that is planned
    const char* off = nullptr;
};

// What a grouping asks of clusters, whose rows share one B.
struct GroupingRow {
    Grouping grouping;
    int max_cluster_m;
};

// The axes that candidates are the product of. A new axis (split-K, swapped operands) is a new member
// here.
struct CandidateSpace {
    std::span<const TileRow> tiles;
    std::span<const ClusterRow> clusters;
    std::span<const ProductRow> products;
    std::span<const GroupingRow> groupings;
};

// Why a config cannot, or should not, run a shape.
enum class Refusal : unsigned char {
    kNone,
    kNotPlanned,  // a row of the space that is switched off
    kTile,        // not a tile of the space
    kGrouping,    // a wave or a cluster may hold rows of two groups
    kMulticast,   // a cluster member's share of a tile is not whole swizzle atoms
    kScaleSpan,   // a tile may touch three blocks of SFB
    kProducts,    // not for a tile of this width
    kRegisters,
    kSharedMemory,
    kIdleCluster,  // a cluster wider than the tiles there are
    kIdleRows,     // 64 rows or more of every tile lie outside D
};

// Every config of the space for a shape, feasible or not, stages already as deep as shared memory allows.
std::vector<Fp8GemmConfig> enumerate(const CandidateSpace& space, const Fp8GemmShape& shape,
                                     const ArchSpec& arch);

// Can the kernel be compiled and launched with this config at all?
Refusal check_config(const CandidateSpace& space, const Fp8GemmConfig& config, const ArchSpec& arch);

// check_config, and does it compute this shape?
Refusal check_shape(const CandidateSpace& space, const Fp8GemmConfig& config, const Fp8GemmShape& shape,
                    const ArchSpec& arch);

// check_shape, and is the config planned, and of use to this shape?
Refusal check_candidate(const CandidateSpace& space, const Fp8GemmConfig& config, const Fp8GemmShape& shape,
                        const ArchSpec& arch);

// The sentence of a refusal: "registers: 96 sums + 192 in flight + 40 = 328 per thread, at most 232".
std::string explain(Refusal refusal, const CandidateSpace& space, const Fp8GemmConfig& config,
                    const ArchSpec& arch);

// Stages that fit the shared memory of one block, 0 if not even one does.
int deepest_pipeline(const Fp8GemmConfig& config, const ArchSpec& arch);

// Registers a math thread needs: running sums, accumulators in flight, the rest.
struct RegisterNeed {
    int sums, in_flight, other;
    int total() const { return sums + in_flight + other; }
};
RegisterNeed register_need(const Fp8GemmConfig& config);

}  // namespace deep_gemm::plan
