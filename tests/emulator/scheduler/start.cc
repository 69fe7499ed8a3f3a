// Brings clusters, CTAs and warps into their initial state.
#include "scheduler/scheduler.h"

namespace emu {
namespace {

constexpr uint8_t kFreshSmem = 0xFF;  // a NaN in every float format that has one

Dim3 cta_index(const Launch& launch, const Cluster& cluster, uint32_t rank) {
    const Dim3& c = launch.cluster;  // the CTAs of a cluster are a box of the grid
    return {cluster.id.x * c.x + rank % c.x, cluster.id.y * c.y + rank / c.x % c.y,
            cluster.id.z * c.z + rank / (c.x * c.y)};
}

// The registers that come as .x, .y and .z; the enumeration lists them in this order.
Dim3 special_triple(const Launch& launch, const Cta& cta, uint32_t thread, SpecialRegister first) {
    using R = SpecialRegister;
    const Dim3 &b = launch.block, &g = launch.grid, &c = launch.cluster;
    switch (first) {
        case R::kTidX:
            return {thread % b.x, thread / b.x % b.y, thread / (b.x * b.y)};
        case R::kNtidX:
            return b;
        case R::kCtaidX:
            return cta.id;
        case R::kNctaidX:
            return g;
        case R::kClusterIdX:
            return cta.cluster->id;
        case R::kNclusterIdX:
            return {g.x / c.x, g.y / c.y, g.z / c.z};
        case R::kClusterCtaidX:
            return {cta.rank % c.x, cta.rank / c.x % c.y, cta.rank / (c.x * c.y)};
        default:
            return c;  // kClusterNctaidX
    }
}

uint64_t special_scalar(const Launch& launch, const Cta& cta, const Warp& warp, int lane,
                        SpecialRegister which) {
    using R = SpecialRegister;
    const uint64_t bit = uint64_t{1} << lane;
    switch (which) {
        case R::kLaneId:
            return uint64_t(lane);
        case R::kWarpId:
            return uint64_t(warp.index);
        case R::kNwarpId:
            return (launch.block.count() + 31) / 32;
        case R::kSmId:
            return (cta.id.x + cta.id.y * launch.grid.x) % 132;
        case R::kNsmId:
            return launch.arch == Arch::kSm90a ? 132 : 148;
        case R::kClusterCtaRank:
            return cta.rank;
        case R::kClusterNctaRank:
            return launch.cluster.count();
        case R::kLaneMaskEq:
            return bit;
        case R::kLaneMaskLt:
            return bit - 1;
        case R::kLaneMaskLe:
            return 2 * bit - 1;
        case R::kLaneMaskGt:
            return uint32_t(~(2 * bit - 1));
        case R::kLaneMaskGe:
            return uint32_t(~(bit - 1));
        case R::kDynamicSmemSize:
            return launch.dynamic_smem;
        case R::kTotalSmemSize:
            return launch.smem_bytes() - kSystemSmemBytes;
        case R::kIsExplicitCluster:
            return launch.cluster.count() > 1;
        default:
            return 0;  // gridid; clocks are refreshed when they are read
    }
}

uint64_t special_value(const Launch& launch, const Cta& cta, const Warp& warp, int lane,
                       SpecialRegister which) {
    using R = SpecialRegister;
    const bool is_triple = which <= R::kNctaidZ || (which >= R::kClusterIdX && which <= R::kClusterNctaidZ);
    if (!is_triple) return special_scalar(launch, cta, warp, lane, which);
    const uint32_t base = uint32_t(which <= R::kNctaidZ ? R::kTidX : R::kClusterIdX);
    const uint32_t component = (uint32_t(which) - base) % 3;
    const Dim3 triple =
        special_triple(launch, cta, uint32_t(warp.index * kWarpLanes + lane), R(uint32_t(which) - component));
    return component == 0 ? triple.x : component == 1 ? triple.y : triple.z;
}

uint64_t initial_value(Launch& launch, const Cta& cta, const Warp& warp, int lane, const SlotInit& init) {
    switch (init.kind) {
        case SlotInit::Kind::kShared:
            return (cta.rank << kRankShift) + kSystemSmemBytes + init.value;
        case SlotInit::Kind::kParam:
            return reinterpret_cast<uint64_t>(launch.params) + init.value;
        case SlotInit::Kind::kSpecial:
            return special_value(launch, cta, warp, lane, static_cast<SpecialRegister>(init.value));
        default:
            return init.value;
    }
}

void start_warp(Launch& launch, Cta& cta, Warp& warp, int index) {
    const Kernel& kernel = *launch.kernel;
    auto registers = std::move(warp.registers);
    auto local = std::move(warp.local_memory);
    warp = Warp{};
    warp.registers = registers ? std::move(registers)
                               : std::make_unique<uint64_t[]>(size_t(kernel.num_slots) * kWarpLanes);
    warp.local_memory = std::move(local);
    warp.local_memory.assign(size_t(kernel.local_bytes) * kWarpLanes, kFreshSmem);
    warp.hazards.assign(size_t(kernel.num_slots), 0);
    warp.cta = &cta;
    warp.index = index;
    const uint32_t left = launch.block.count() - uint32_t(index * kWarpLanes);
    warp.present = warp.runnable = left >= 32 ? kAllLanes : (1u << left) - 1;
    for (const SlotInit& init : kernel.inits)
        for (int lane = 0; lane < kWarpLanes; ++lane)
            warp.slot(init.slot)[lane] = initial_value(launch, cta, warp, lane, init);
    Cluster& cluster = *cta.cluster;
    warp.actor = cluster.num_actors++;
    warp.wgmma_actor = cluster.num_actors++;
    warp.store_actor = cluster.num_actors++;
    warp.tensor_actor = cluster.num_actors++;
    warp.copy_actor = cluster.num_actors++;
    warp.tmem_actor = cluster.num_actors++;
    warp.knowledge.raise(warp.actor, 1);
}

void start_cta(Launch& launch, Cluster& cluster, Cta& cta, uint32_t rank) {
    cta.cluster = &cluster;
    cta.rank = rank;
    cta.id = cta_index(launch, cluster, rank);
    cta.smem.assign(launch.smem_bytes(), kFreshSmem);
    if (launch.shadow.is_enabled) cta.cells.assign(launch.smem_bytes() / 4 + 1, Cell{});
    cta.barriers.clear();
    cta.remote_accesses.clear();
    cta.exit_knowledge.clear();
    cta.named.fill({});
    cta.tmem = {};
    cta.live_threads = launch.block.count();
    cta.proxy_fences.assign(round_up(cta.live_threads, 32u), 0);
    cta.init_fences.assign(round_up(cta.live_threads, 32u), 0);
    cluster.fence_counts[rank].assign(round_up(cta.live_threads, 32u), 1);
    cta.warps.resize((cta.live_threads + 31) / 32);
    for (size_t i = 0; i < cta.warps.size(); ++i) start_warp(launch, cta, cta.warps[i], int(i));
}

}  // namespace

void start_cluster(Launch& launch, Cluster& cluster, uint32_t index, uint32_t serial) {
    const Dim3 clusters{launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y,
                        launch.grid.z / launch.cluster.z};
    cluster.launch = &launch;
    cluster.serial = serial;
    cluster.id = {index % clusters.x, index / clusters.x % clusters.y, index / (clusters.x * clusters.y)};
    cluster.barrier = {};
    cluster.sync_words.reset();
    cluster.bulk_queue.clear();
    cluster.tensor_queues.assign((launch.cluster.count() + 1) / 2, {});
    cluster.num_actors = 0;
    cluster.tcgen05_cta_group = 0;
    cluster.live_threads = launch.block.count() * launch.cluster.count();
    cluster.fence_counts.resize(launch.cluster.count());
    cluster.ctas.resize(launch.cluster.count());
    for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank) {
        if (!cluster.ctas[rank]) cluster.ctas[rank] = std::make_unique<Cta>();
        start_cta(launch, cluster, *cluster.ctas[rank], rank);
    }
}

}  // namespace emu
