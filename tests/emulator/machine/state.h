// The state of a running grid: launch -> clusters -> CTAs -> warps of 32 lanes.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "machine/clock.h"
#include "machine/fault.h"
#include "machine/global_memory.h"
#include "machine/program.h"
#include "machine/shadow.h"
#include "machine/stats.h"
#include "machine/tmem.h"

namespace emu {

enum class Arch : uint8_t { kSm90a, kSm100a };

struct Options {
    bool is_async = false;  // complete asynchronous operations at random moments
    uint64_t seed = 0;
    bool check_races = true;
    bool refuse_uninitialised = false;  // also reads of shared memory that could be harmless
    bool trace_barriers = false;
    uint64_t watch_address = 0;  // report every writer of this global address
};

struct Dim3 {
    uint32_t x = 1, y = 1, z = 1;
    uint32_t count() const { return x * y * z; }
};

// A shared address is (rank << 24) + 0x400 + offset, as on hardware (measured on H200); kernels rely on it.
constexpr uint32_t kSystemSmemBytes = 0x400;
constexpr uint32_t kRankShift = 24;
constexpr uint32_t kOffsetMask = (1u << kRankShift) - 1;
// Generic addresses of the shared and local windows carry a tag that no host pointer has.
constexpr uint64_t kSharedTag = uint64_t{0xE1} << 56;
constexpr uint64_t kLocalTag = uint64_t{0xE2} << 56;
constexpr uint64_t kTagMask = uint64_t{0xFF} << 56;

struct Cta;
struct Cluster;
struct Launch;

struct MBarrier {
    int64_t pending = 0, expected = 0, tx = 0;
    uint32_t phase = 0;  // phases completed
    Clock arriving, completed;
    uint16_t actor = kNoActor;  // of bulk data that signals this barrier
    uint16_t init_actor = kNoActor;
    uint32_t init_time = 0;
    uint16_t init_thread = 0;
    uint32_t init_fences = 0;  // init fences the thread had executed at init
    int init_line = 0;
};

struct Wait {
    enum class Kind : uint8_t { kMbarrier, kNamedBarrier, kClusterBarrier, kCollective, kTmem };
    Kind kind;
    LaneMask lanes;
    uint32_t pc;
    uint32_t object = 0;  // barrier offset or id, or cluster generation
    uint32_t parity = 0;
    int destination = -1;  // predicate of try_wait
};

struct WgmmaOp {
    const Instr* instr;
    uint64_t a_descriptor, b_descriptor;
    bool accumulates;
};
struct BulkGroup {
    std::vector<std::function<void()>> operations;  // deferred reads of shared memory
};

struct Warp {
    Cta* cta = nullptr;
    int index = 0;
    std::unique_ptr<uint64_t[]> registers;
    std::array<uint32_t, kWarpLanes> pc{};
    LaneMask present = 0, runnable = 0, exited = 0;
    std::vector<Wait> waits;
    uint32_t last_group_pc = 0;
    bool rotate_groups = false;  // the last quantum ended in a divergent warp: let another group go first
    std::array<uint32_t, kWarpLanes> cluster_arrivals{};  // generation + 1 of the last unmatched arrive

    uint16_t actor = 0;  // generic accesses
    uint16_t wgmma_actor = 0, store_actor = 0, tensor_actor = 0, copy_actor = 0, tmem_actor = 0;
    Clock knowledge;
    Clock init_knowledge;   // of mbarrier initialisations alone
    uint32_t meetings = 0;  // points so far where all its lanes came to know of each other's accesses
    bool cluster_arrival_releases = false;  // of the last barrier.cluster.arrive
    uint32_t tensor_time = 0;               // tcgen05 mma, cp issued
    uint32_t tmem_time = 0;                 // tcgen05 ld, st issued
    uint32_t tmem_done = 0;                 // of them waited for; published by fence::before_thread_sync
    Clock tensor_view;  // what tcgen05 operations may rely on: knowledge at the last fence::after_thread_sync

    std::vector<uint8_t> local_memory;
    std::vector<uint8_t> hazards;  // per slot: a Hazard while an asynchronous result is due
    int hazard_count = 0;

    std::deque<std::vector<WgmmaOp>> wgmma_groups;  // committed, oldest first
    std::vector<WgmmaOp> wgmma_open;
    uint32_t wgmma_committed = 0;
    bool wgmma_fenced = false;
    std::deque<BulkGroup> bulk_groups;
    BulkGroup bulk_open;
    uint32_t bulk_committed = 0;
    bool has_open_bulk = false;                 // operations since the last commit
    std::vector<std::function<void()>> copies;  // cp.async not landed yet
    uint32_t copy_time = 0;

    uint64_t* slot(int index_) { return registers.get() + static_cast<size_t>(index_) * kWarpLanes; }
    LaneMask live() const { return present & ~exited; }
    // Some lanes alone do not count: the others still know nothing of them.
    void meet(LaneMask lanes) {
        if ((lanes & live()) == live()) ++meetings;
    }
};

struct NamedBarrier {
    uint32_t arrived = 0, expected = 0;
    bool counts_all = false;
    Clock clock;
};

struct Cta {
    Cluster* cluster = nullptr;
    uint32_t rank = 0;
    Dim3 id;
    std::vector<uint8_t> smem;
    std::vector<Cell> cells;
    std::vector<Warp> warps;
    std::map<uint32_t, MBarrier> barriers;  // by offset in the CTA's window
    std::array<NamedBarrier, 16> named;
    std::vector<uint32_t> proxy_fences;  // per thread
    std::vector<uint32_t> init_fences;   // per thread: fence.mbarrier_init or cluster arrive
    Tmem tmem;
    // Accesses of other CTAs by actor; this CTA must know of all of them before it exits.
    struct RemoteAccess {
        uint32_t time;
        int line;
    };
    std::map<uint16_t, RemoteAccess> remote_accesses;
    Clock exit_knowledge;
    uint32_t live_threads = 0;
    bool has_exited() const { return live_threads == 0; }
};

// What a cluster barrier carries. A relaxed arrive publishes no data, but barriers initialised before an init
// fence (PTX ISA, fence.mbarrier_init), and the fact that earlier remote arrivals were issued (control).
struct ClusterClocks {
    Clock data, init, control;
    void join(const ClusterClocks& other) {
        data.join(other.data);
        init.join(other.init);
        control.join(other.control);
    }
};

struct ClusterBarrier {
    uint32_t generation = 0, arrived = 0;
    ClusterClocks arriving, completed;
};

struct Cluster {
    Launch* launch = nullptr;
    uint32_t serial = 0;
    Dim3 id;
    std::vector<std::unique_ptr<Cta>> ctas;
    ClusterBarrier barrier;
    std::shared_ptr<void> sync_words;                              // SyncWords of simt/
    std::vector<std::function<void()>> bulk_queue;                 // any order
    std::vector<std::deque<std::function<void()>>> tensor_queues;  // in order, one per issuing CTA pair
    std::vector<std::vector<uint32_t>> fence_counts;               // [rank][thread]
    uint16_t num_actors = 0;
    uint32_t live_threads = 0;
    int tcgen05_cta_group = 0;  // 0 until the first use
};

struct Launch {
    const Module* module = nullptr;
    const Kernel* kernel = nullptr;
    Arch arch = Arch::kSm90a;
    Dim3 grid, block, cluster;
    uint32_t dynamic_smem = 0;
    uint8_t* params = nullptr;  // laid out by the PTX, 64-byte aligned
    Options options;
    GlobalMemory* memory = nullptr;
    std::mt19937_64 random;
    Shadow shadow;
    Stats stats;
    // Tensor maps that the grid has published in global memory: how often, and which version a thread has
    // acquired last.
    std::map<uint64_t, uint64_t> map_versions;
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> acquired_maps;  // by (address, thread)
    uint64_t progress = 0;  // changes whenever something a waiting thread could notice has changed
    uint64_t clock = 0;

    uint32_t smem_bytes() const;
};

// What a handler sees.
struct Exec {
    Launch& launch;
    Cluster& cluster;
    Cta& cta;
    Warp& warp;
    const Instr* instr;
    uint32_t pc;
    LaneMask group;  // lanes at this pc, before the guard

    uint64_t* slot(int index) { return warp.slot(index); }
    int thread(int lane) const { return warp.index * kWarpLanes + lane; }
    // The value of an operand that must be the same in all lanes of the mask.
    uint64_t uniform(int slot_index, LaneMask mask, const char* what);
    Accessor accessor(int lane) const;
    Accessor async_accessor(uint16_t actor, uint32_t time, const Clock& knowledge) const;
};

// Parks lanes of the current instruction until somebody wakes them.
void park(Exec& x, Wait wait);
// Ends a wait: the lanes go on behind the instruction.
void wake(Warp& warp, const Wait& wait);
// Sets the pc of lanes that have executed a kSplit instruction.
void pass(Exec& x, LaneMask lanes);

// Remembers that this warp has touched another CTA's shared memory or barrier.
void note_remote_access(Exec& x, Cta& cta);

// Publishes what the warp knows and moves it into a new epoch.
void release(Warp& warp, Clock& into);
inline void acquire(Warp& warp, const Clock& from) {
    warp.knowledge.join(from);
}

}  // namespace emu
