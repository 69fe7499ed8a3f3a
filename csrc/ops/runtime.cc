#include "ops/runtime.h"

#include <deep_gemm/base/math.h>

#include "launch/launch.h"
#include "support/runtime_options.h"

namespace deep_gemm::ops {

int num_sms(int device) {
    const int total = launch::device_info(device).sm_count, wanted = runtime_options().num_sms;
    return wanted == 0 ? total : min_of(wanted, total);
}

}  // namespace deep_gemm::ops
