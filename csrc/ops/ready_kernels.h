// Which loaded kernel runs a GEMM of some extents on a device, and how: planned once, built once, then looked up.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <deep_gemm/base/kernel_args.h>

#include "jit/jit.h"
#include "launch/launch.h"
#include "ops/runtime.h"
#include "plan/arch_spec.h"
#include "plan/kernel_source.h"
#include "support/hash.h"
#include "support/log.h"

namespace deep_gemm::ops {

// Everything a launch needs that does not depend on an address.
template <typename Config>
struct ReadyKernel {
    Config config{};
    StoreConfig store{};  // of `config`
    RasterArgs raster{};
    launch::LaunchShape shape;               // PDL not yet set
    const launch::Kernel* kernel = nullptr;  // lives as long as the process
};

// The device's own facts, with the planner's speeds.
plan::ArchSpec arch_spec(int device, int usable_sms);

// Builds the source and loads the image. One that does not load came from a damaged cache: it is dropped and built once
// more.
std::shared_ptr<const launch::Kernel> build_and_load(int device, const plan::KernelSource& source,
                                                     const launch::LaunchShape& shape, const plan::ArchSpec& arch);

// The tables of one family of kernels. `Family` has the types Shape, Config and Plan (which holds a Config), its name
// kName, and functions plan(shape, arch), plan_with(config, shape, arch) and hash(shape). Thread-safe: a hit costs one
// hash of integers under a shared lock; a miss plans, and compiles and loads what is missing.
template <typename Family>
class ReadyKernels {
  public:
    using Shape = typename Family::Shape;
    using Config = typename Family::Config;
    using Plan = typename Family::Plan;
    using Ready = ReadyKernel<Config>;

    Ready find_or_make(int device, const Shape& shape) {
        const Key key{shape, device, num_sms(device)};
        {
            const std::shared_lock lock(plans_lock_);
            if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
        }
        const plan::ArchSpec arch = arch_spec(device, key.usable_sms);
        const Ready ready = make(key, Family::plan(shape, arch), arch);
        remember(key, ready);
        return ready;
    }

    // Problems of exactly this shape run with `config` from now on, until plans are forgotten.
    void pin(int device, const Shape& shape, const Config& config) {
        const Key key{shape, device, num_sms(device)};
        const plan::ArchSpec arch = arch_spec(device, key.usable_sms);
        remember(key, make(key, Family::plan_with(config, shape, arch), arch));
    }

    // Plans are made anew from here on; they find loaded kernels again, unless the headers were set in between.
    void forget() {
        const std::unique_lock lock(plans_lock_);
        plans_.clear();
    }

  private:
    // A problem's extents never end (M is the caller's batch), so the table of plans is emptied when it gets this long.
    static constexpr std::size_t kMaxPlans = 1 << 15;

    struct Key {
        Shape shape;
        int device, usable_sms;
        bool operator==(const Key&) const = default;
    };
    struct HashKey {
        std::size_t operator()(const Key& key) const {
            return mix_hash({Family::hash(key.shape),
                             static_cast<uint64_t>(key.device) << 32 | static_cast<uint64_t>(key.usable_sms)});
        }
    };
    struct Loaded {
        int device;
        uint64_t headers;  // their generation
        Config config;
        std::shared_ptr<const launch::Kernel> kernel;
    };

    const launch::Kernel* find_kernel(int device, uint64_t headers, const Config& config) {
        const std::lock_guard lock(kernels_lock_);
        for (const Loaded& k : kernels_)
            if (k.device == device && k.headers == headers && k.config == config) return k.kernel.get();
        return nullptr;
    }

    const launch::Kernel* kernel_of(int device, const Config& config, const launch::LaunchShape& shape,
                                    const plan::ArchSpec& arch) {
        const uint64_t headers = jit::header_generation();
        if (const launch::Kernel* found = find_kernel(device, headers, config)) return found;
        auto kernel = build_and_load(device, print_source(config, arch), shape, arch);
        const std::lock_guard lock(kernels_lock_);
        // Another thread may have loaded its twin meanwhile: harmless, and rare enough to keep both.
        kernels_.push_back({device, headers, config, std::move(kernel)});
        return kernels_.back().kernel.get();
    }

    static uint32_t cluster_tiles(int64_t extent, int64_t of_cluster) {
        return static_cast<uint32_t>(ceil_div(extent, of_cluster));
    }

    Ready make(const Key& key, const Plan& plan, const plan::ArchSpec& arch) {
        if (log::enabled(log::Topic::kPlan))
            log::line(log::Topic::kPlan, "{} {} on device {}: {}", Family::kName, describe(key.shape), key.device,
                      describe(plan));
        Ready ready;
        ready.config = plan.config;
        ready.store = store_config(plan.config);
        ready.raster = raster_over(plan.raster, cluster_tiles(key.shape.m, plan.config.block_m * plan.config.cluster_m),
                                   cluster_tiles(key.shape.n, plan.config.block_n * plan.config.cluster_n));
        ready.shape = {.grid = static_cast<uint32_t>(plan.grid),
                       .threads = static_cast<uint32_t>(plan.threads),
                       .cluster = static_cast<uint32_t>(plan.cluster),
                       .smem_bytes = static_cast<uint32_t>(plan.smem_bytes)};
        ready.kernel = kernel_of(key.device, plan.config, ready.shape, arch);
        return ready;
    }

    void remember(const Key& key, const Ready& ready) {
        const std::unique_lock lock(plans_lock_);
        if (plans_.size() >= kMaxPlans) plans_.clear();
        plans_.insert_or_assign(key, ready);
    }

    std::shared_mutex plans_lock_;
    std::unordered_map<Key, Ready, HashKey> plans_;
    std::mutex kernels_lock_;
    std::vector<Loaded> kernels_;  // few, and never dropped
};

// The family's tables. Never destroyed: a kernel must not outlive the driver, whose shutdown order is unknown.
template <typename Family>
ReadyKernels<Family>& ready_kernels() {
    static ReadyKernels<Family>& instance = *new ReadyKernels<Family>;
    return instance;
}

}  // namespace deep_gemm::ops
