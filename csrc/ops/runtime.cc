#include "ops/runtime.h"

#include <deep_gemm/base/math.h>

#include "launch/launch.h"
#include "support/runtime_options.h"

namespace deep_gemm::ops {

void set_num_sms(int count, int device) {
    deep_gemm::set_num_sms(count, count > 0 ? launch::device_info(device).sm_count : 0);
}

int num_sms(int device) {
    const int total = launch::device_info(device).sm_count, wanted = runtime_options().num_sms;
    return wanted == 0 ? total : min_of(wanted, total);
}

void set_tc_util(int percent) {
    deep_gemm::set_tc_util(percent);
}

int tc_util() {
    const int percent = runtime_options().tc_util;
    return percent == 0 ? 100 : percent;
}

void set_pdl(bool enabled) {
    deep_gemm::set_pdl(enabled ? Switch::kOn : Switch::kOff);
}
bool pdl() {
    return runtime_options().pdl;
}

void set_compile_only(bool enabled) {
    set_compile_mode(enabled ? 1 : 0);
}
bool compile_only() {
    return runtime_options().compile_only;
}

}  // namespace deep_gemm::ops
