#include "ops/fp8_gemm_kernels.h"

#include "ops/group_problem.h"

namespace deep_gemm::ops {

namespace {

struct Fp8Family {
    using Shape = plan::Fp8GemmShape;
    using Config = Fp8GemmConfig;
    using Plan = plan::Fp8GemmPlan;
    static constexpr const char* kName = "fp8_gemm";

    static Plan plan(const Shape& shape, const plan::ArchSpec& arch) { return plan::plan_fp8_gemm(shape, arch); }
    static Plan plan_with(const Config& config, const Shape& shape, const plan::ArchSpec& arch) {
        return plan::plan_with_config(config, shape, arch);
    }
    static uint64_t hash(const Shape& s) {
        const uint64_t kinds = static_cast<uint64_t>(s.sfb_granularity) |
                               static_cast<uint64_t>(s.d_dtype) << 8 | static_cast<uint64_t>(s.has_c + s.c_is_d) << 16 |
                               static_cast<uint64_t>(s.head_unit) << 24;
        return mix_hash({static_cast<uint64_t>(s.m), static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.k), kinds,
                         hash_word(s.groups), static_cast<uint64_t>(s.groups.expected_m)});
    }
};

}  // namespace

ReadyFp8Gemm ready_fp8_gemm(int device, const plan::Fp8GemmShape& shape) {
    return ready_kernels<Fp8Family>().find_or_make(device, shape);
}

void pin_fp8_gemm(int device, const plan::Fp8GemmShape& shape, const Fp8GemmConfig& config) {
    plan::check_called_k(shape.k, shape.groups);
    ready_kernels<Fp8Family>().pin(device, shape, config);
}

void forget_fp8_gemm_plans() {
    ready_kernels<Fp8Family>().forget();
}

}  // namespace deep_gemm::ops
