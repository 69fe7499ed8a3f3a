#include "ops/fp8_gemm_kernels.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/jit.h"
#include "ops/runtime.h"
#include "support/blocking.h"
#include "support/error.h"
#include "support/log.h"

namespace deep_gemm::ops {

namespace {

// A problem's extents never end (M is the caller's batch), so the table of plans is emptied when it gets this
// long.
constexpr std::size_t kMaxPlans = 1 << 15;

struct PlanKey {
    plan::Fp8GemmShape shape;
    int device, usable_sms;
    bool operator==(const PlanKey&) const = default;
};

struct HashPlanKey {
    std::size_t operator()(const PlanKey& key) const {
        const plan::Fp8GemmShape& s = key.shape;
        const uint64_t kinds = static_cast<uint64_t>(s.sfb_granularity) |
                               static_cast<uint64_t>(s.d_dtype) << 8 | static_cast<uint64_t>(s.has_c) << 16;
        const uint64_t groups = static_cast<uint64_t>(s.groups.grouping) |
                                static_cast<uint64_t>(s.groups.count) << 8 |
                                static_cast<uint64_t>(s.groups.alignment) << 40;
        uint64_t hash = 0;
        for (const uint64_t word :
             {static_cast<uint64_t>(s.m), static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.k),
              static_cast<uint64_t>(key.device) << 32 | static_cast<uint64_t>(key.usable_sms), kinds, groups,
              static_cast<uint64_t>(s.groups.expected_m)})
            hash = (hash ^ word) * 0x9e3779b97f4a7c15 ^ hash >> 29;
        return hash ^ hash >> 32;
    }
};

struct LoadedKernel {
    int device;
    Fp8GemmConfig config;
    std::shared_ptr<const launch::Kernel> kernel;
};

struct Tables {
    std::shared_mutex plans_lock;
    std::unordered_map<PlanKey, ReadyFp8Gemm, HashPlanKey> plans;
    std::mutex kernels_lock;
    std::vector<LoadedKernel> kernels;  // few, and never dropped
};

// Never destroyed: a kernel must not outlive the driver, whose shutdown order is unknown.
Tables& tables() {
    static Tables& instance = *new Tables;
    return instance;
}

const launch::Kernel* find_kernel(int device, const Fp8GemmConfig& config) {
    const std::lock_guard lock(tables().kernels_lock);
    for (const LoadedKernel& k : tables().kernels)
        if (k.device == device && k.config == config) return k.kernel.get();
    return nullptr;
}

std::shared_ptr<const launch::Kernel> load(int device, const jit::Image& image,
                                           const plan::Fp8GemmPlan& plan) {
    return launch::load_kernel(device, {.bytes = image.bytes.data(),
                                        .size = image.bytes.size(),
                                        .entry = image.entry.c_str(),
                                        .smem_bytes = plan.smem_bytes,
                                        .cluster_size = plan.cluster});
}

// An image that does not load came from a damaged cache: it is dropped and built once more.
std::shared_ptr<const launch::Kernel> build_and_load(int device, const plan::Fp8GemmPlan& plan,
                                                     const plan::ArchSpec& arch) {
    const BlockingScope scope;
    const plan::KernelSource printed = plan::print_source(plan.config, arch);
    const jit::Source source{printed.entry, printed.text};
    const jit::Target target = jit::target_for(arch.major, arch.minor);
    const auto image = jit::build(source, target);
    try {
        return load(device, *image, plan);
    } catch (const Error&) {
        jit::invalidate(*image);
    }
    return load(device, *jit::build(source, target), plan);
}

const launch::Kernel* kernel_of(int device, const plan::Fp8GemmPlan& plan, const plan::ArchSpec& arch) {
    if (const launch::Kernel* found = find_kernel(device, plan.config)) return found;
    auto kernel = build_and_load(device, plan, arch);
    const std::lock_guard lock(tables().kernels_lock);
    // Another thread may have loaded its twin meanwhile: harmless, and rare enough to keep both.
    tables().kernels.push_back({device, plan.config, std::move(kernel)});
    return tables().kernels.back().kernel.get();
}

plan::ArchSpec arch_spec(int device, int usable_sms) {
    const launch::DeviceInfo& info = launch::device_info(device);
    plan::ArchSpec spec;
    spec.major = info.major;
    spec.minor = info.minor;
    spec.sm_count = info.sm_count;
    spec.usable_sms = usable_sms;
    spec.smem_per_block = info.smem_per_block;
    return spec;
}

ReadyFp8Gemm make_ready(const PlanKey& key, const plan::Fp8GemmPlan& plan, const plan::ArchSpec& arch) {
    if (log::enabled(log::Topic::kPlan))
        log::line(log::Topic::kPlan, "fp8_gemm {} on device {}: {}", plan::describe(key.shape), key.device,
                  plan::describe(plan));
    ReadyFp8Gemm ready;
    ready.config = plan.config;
    ready.raster = plan.raster;
    ready.shape = {.grid = static_cast<uint32_t>(plan.grid),
                   .threads = static_cast<uint32_t>(plan.threads),
                   .cluster = static_cast<uint32_t>(plan.cluster),
                   .smem_bytes = static_cast<uint32_t>(plan.smem_bytes)};
    ready.kernel = kernel_of(key.device, plan, arch);
    return ready;
}

void remember(const PlanKey& key, const ReadyFp8Gemm& ready) {
    Tables& t = tables();
    const std::unique_lock lock(t.plans_lock);
    if (t.plans.size() >= kMaxPlans) t.plans.clear();
    t.plans.insert_or_assign(key, ready);
}

}  // namespace

ReadyFp8Gemm ready_fp8_gemm(int device, const plan::Fp8GemmShape& shape) {
    const PlanKey key{shape, device, num_sms(device)};
    Tables& t = tables();
    {
        const std::shared_lock lock(t.plans_lock);
        if (const auto found = t.plans.find(key); found != t.plans.end()) return found->second;
    }
    const plan::ArchSpec arch = arch_spec(device, key.usable_sms);
    const ReadyFp8Gemm ready = make_ready(key, plan::plan_fp8_gemm(shape, arch), arch);
    remember(key, ready);
    return ready;
}

void pin_fp8_gemm(int device, const plan::Fp8GemmShape& shape, const Fp8GemmConfig& config) {
    const PlanKey key{shape, device, num_sms(device)};
    const plan::ArchSpec arch = arch_spec(device, key.usable_sms);
    remember(key, make_ready(key, plan::plan_with_config(config, shape, arch), arch));
}

void forget_fp8_gemm_plans() {
    const std::unique_lock lock(tables().plans_lock);
    tables().plans.clear();
}

}  // namespace deep_gemm::ops
