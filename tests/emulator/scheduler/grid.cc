// Admission of clusters, turns, asynchronous completion, and the end of patience.
#include <numeric>

#include "async/engine.h"
#include "scheduler/barriers.h"
#include "scheduler/scheduler.h"

namespace emu {
namespace {

constexpr int kQuantum = 256;
constexpr size_t kMaxResident = 160;
constexpr uint64_t kPatience = 4'000'000;  // warp instructions without progress
constexpr int kTimeoutRounds = 8;
constexpr uint64_t kFairShare = 1'000'000;  // warp instructions after which waiting clusters get a chance

class GridRun {
  public:
    explicit GridRun(Launch& launch) : launch_(launch), order_(launch.grid.count() / launch.cluster.count()) {
        std::iota(order_.begin(), order_.end(), 0u);
        if (launch.options.is_async) std::shuffle(order_.begin(), order_.end(), launch.random);
    }

    void run() {
        admit();
        while (!resident_.empty()) {
            const uint64_t before = launch_.progress;
            const int executed = take_turns();
            retire();
            share(uint64_t(executed));
            if (resident_.empty() && next_ < order_.size()) admit();
            if (launch_.progress != before) {
                idle_instructions_ = 0;
                timeouts_ = 0;
                continue;
            }
            idle_instructions_ += uint64_t(executed);
            if (executed == 0)
                unblock();
            else if (idle_instructions_ > kPatience)
                lose_patience("livelock: no barrier, store or asynchronous operation for long");
        }
    }

  private:
    void admit() {
        std::unique_ptr<Cluster> cluster;
        if (!spare_.empty()) {
            cluster = std::move(spare_.back());
            spare_.pop_back();
        } else
            cluster = std::make_unique<Cluster>();
        start_cluster(launch_, *cluster, order_[next_], next_);
        ++next_;
        ++launch_.progress;
        since_change_ = 0;
        resident_.push_back(std::move(cluster));
    }

    // Clusters may wait for each other through memory: nobody has a right to run alone for ever.
    void share(uint64_t executed) {
        since_change_ += executed;
        if (since_change_ > kFairShare && next_ < order_.size() && resident_.size() < kMaxResident) admit();
    }

    void retire() {
        for (auto& cluster : resident_) {
            if (cluster->live_threads) continue;
            since_change_ = 0;
            while (drain_one(*cluster, launch_.random)) {
            }
            ++launch_.progress;
            spare_.push_back(std::move(cluster));
        }
        std::erase(resident_, nullptr);
    }

    int take_turns() {
        int executed = 0;
        for (size_t i = 0; i < resident_.size(); ++i)
            executed += launch_.options.is_async ? shuffled_turn(*resident_[i]) : fair_turn(*resident_[i]);
        return executed;
    }

    int fair_turn(Cluster& cluster) {
        int executed = 0;
        for (auto& cta : cluster.ctas)
            for (Warp& warp : cta->warps)
                if (warp.runnable) executed += run_warp(launch_, warp, kQuantum);
        return executed;
    }

    int shuffled_turn(Cluster& cluster) {
        std::vector<Warp*> warps;
        for (auto& cta : cluster.ctas)
            for (Warp& warp : cta->warps)
                if (warp.runnable) warps.push_back(&warp);
        std::shuffle(warps.begin(), warps.end(), launch_.random);
        int executed = 0;
        for (Warp* warp : warps) {
            if (warp->runnable) executed += run_warp(launch_, *warp, 1 + int(launch_.random() % 100));
            if (launch_.random() % 4 == 0) drain_one(cluster, launch_.random);
        }
        return executed;
    }

    // Nobody can run: finish asynchronous work, else let potentially blocking waits time out.
    void unblock() {
        for (auto& cluster : resident_)
            if (drain_one(*cluster, launch_.random)) return;
        // The report is written while the lanes still wait, so that it can say for what.
        if (++timeouts_ > kTimeoutRounds) return lose_patience("deadlock: no lane can run");
        bool any = false;
        for (auto& cluster : resident_) any |= time_out_waits(*cluster);
        if (!any) lose_patience("deadlock: no lane can run");
    }

    void lose_patience(const char* what) {
        if (next_ < order_.size() && resident_.size() < kMaxResident) {
            admit();
            idle_instructions_ = 0;
            timeouts_ = 0;
            return;
        }
        throw LocatedFault(std::string(what) + "\n" + deadlock_report(launch_, resident_));
    }

    Launch& launch_;
    std::vector<uint32_t> order_;
    uint32_t next_ = 0;
    std::vector<std::unique_ptr<Cluster>> resident_, spare_;
    uint64_t since_change_ = 0;  // instructions since a cluster came or went
    uint64_t idle_instructions_ = 0;
    int timeouts_ = 0;
};

void check_shape(const Launch& launch) {
    const Dim3 &g = launch.grid, &c = launch.cluster;
    if (g.count() == 0 || launch.block.count() == 0 || launch.block.count() > launch.kernel->max_threads)
        fault("a block of %u threads; the kernel allows 1..%u", launch.block.count(),
              launch.kernel->max_threads);
    if (c.count() == 0 || c.count() > 16 || g.x % c.x || g.y % c.y || g.z % c.z)
        fault("the cluster shape does not divide the grid");
    if (launch.smem_bytes() - kSystemSmemBytes > 227 * 1024)
        fault("%u bytes of shared memory exceed 227 KiB", launch.smem_bytes() - kSystemSmemBytes);
}

}  // namespace

void run_grid(Launch& launch) {
    check_shape(launch);
    launch.random.seed(launch.options.seed);
    launch.shadow.is_enabled = launch.options.check_races;
    launch.shadow.refuses_uninitialised = launch.options.refuse_uninitialised;
    launch.shadow.forgives_other_clusters = launch.kernel->uses_gpu_scope_sync;
    launch.shadow.clear_global();
    launch.shadow.clear_reads();
    GridRun(launch).run();
    launch.stats.uninitialised_reads = launch.shadow.uninitialised_reads;
}

}  // namespace emu
