#include "ops/runtime.h"

#include <atomic>

#include <deep_gemm/base/math.h>

#include "launch/launch.h"
#include "support/error.h"

namespace deep_gemm::ops {

namespace {

struct Knobs {
    std::atomic<int> num_sms{0}, tc_util{0};
    std::atomic<bool> pdl{false}, compile_only{false};
};
Knobs knobs;

}  // namespace

void set_num_sms(int count, int device) {
    DG_CHECK(count >= 0, "num_sms: expected 0 (all SMs) or a positive count, got {}; pass such a count",
             count);
    if (count > 0) {
        const int total = launch::device_info(device).sm_count;
        DG_CHECK(count <= total,
                 "num_sms: expected at most {}, the SMs of cuda:{}, got {}; pass 0 for all of them", total,
                 device, count);
    }
    knobs.num_sms = count;
}

int num_sms(int device) {
    const int total = launch::device_info(device).sm_count,
              wanted = knobs.num_sms.load(std::memory_order_relaxed);
    return wanted == 0 ? total : min_of(wanted, total);
}

void set_tc_util(int percent) {
    DG_CHECK(percent >= 0 && percent <= 100,
             "tc_util: expected a percentage from 0 to 100, got {}; 0 and 100 mean no limit", percent);
    knobs.tc_util = percent;
}

int tc_util() {
    const int percent = knobs.tc_util;
    return percent == 0 ? 100 : percent;
}

void set_pdl(bool enabled) {
    knobs.pdl = enabled;
}
bool pdl() {
    return knobs.pdl.load(std::memory_order_relaxed);
}

void set_compile_only(bool enabled) {
    knobs.compile_only = enabled;
}
bool compile_only() {
    return knobs.compile_only.load(std::memory_order_relaxed);
}

}  // namespace deep_gemm::ops
