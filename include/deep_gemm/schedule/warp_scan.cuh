// Scans over the lanes of a warp, for the walks that count tiles with it. All lanes take part.
#pragma once

#include <deep_gemm/base/math.h>
#include <deep_gemm/ptx/address.cuh>

namespace deep_gemm {

// Lane l gets combine(value of lane 0, ..., value of lane l). `combine` is associative.
template <typename Combine>
DG_DEVICE uint32_t inclusive_scan(uint32_t value, const Combine& combine) {
    const uint32_t lane = ptx::lane_id();
#pragma unroll
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        const uint32_t below = __shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance) value = combine(below, value);
    }
    return value;
}

DG_DEVICE uint32_t inclusive_sum(uint32_t value) {
    return inclusive_scan(value, [](uint32_t a, uint32_t b) { return a + b; });
}

DG_DEVICE uint32_t inclusive_max(uint32_t value) {
    return inclusive_scan(value, [](uint32_t a, uint32_t b) { return max_of(a, b); });
}

}  // namespace deep_gemm
