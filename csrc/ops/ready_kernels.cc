#include "ops/ready_kernels.h"

#include "jit/jit.h"
#include "support/blocking.h"
#include "support/error.h"
#include "support/log.h"
#include "support/stopwatch.h"

namespace deep_gemm::ops {

namespace {

std::shared_ptr<const launch::Kernel> load(int device, const jit::Image& image, const launch::LaunchShape& shape) {
    const Stopwatch stopwatch;
    auto kernel = launch::load_kernel(device, {.bytes = image.bytes.data(),
                                               .size = image.bytes.size(),
                                               .entry = image.entry.c_str(),
                                               .smem_bytes = static_cast<int>(shape.smem_bytes),
                                               .cluster_size = static_cast<int>(shape.cluster)});
    log::line(log::Topic::kLoad, "{} {}: loaded on device {} in {:.1f} ms", image.entry, image.digest, device,
              stopwatch.milliseconds());
    return kernel;
}

}  // namespace

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

std::shared_ptr<const launch::Kernel> build_and_load(int device, const plan::KernelSource& printed,
                                                     const launch::LaunchShape& shape, const plan::ArchSpec& arch) {
    const BlockingScope scope;
    const jit::Source source{printed.entry, printed.text};
    const jit::Target target = jit::target_for(arch.major, arch.minor);
    const auto image = jit::build(source, target);
    try {
        return load(device, *image, shape);
    } catch (const Error&) {
        jit::invalidate(*image);
    }
    return load(device, *jit::build(source, target), shape);
}

}  // namespace deep_gemm::ops
