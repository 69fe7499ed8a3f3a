// What every operation asks of a problem before it plans: where it runs, and D without a product.
#pragma once

#include "launch/launch.h"
#include "support/describe.h"
#include "support/settings.h"
#include "support/tensor_view.h"

namespace deep_gemm::ops {

inline constexpr int kReferenceRules = 9;  // CPU tensors follow the SM90 contract

// Whether the tensors' memory is a device's. An emulated device has the host's memory for its own.
inline bool runs_on_device(const Device& device) {
    return device.kind == Device::Kind::kCuda || !settings().emulate.empty();
}

inline int rules_of(const Device& device) {
    return runs_on_device(device) ? launch::device_info(device.index).major : kReferenceRules;
}

template <typename Problem>
launch::Block2d block_of_d(const Problem& p) {
    const int64_t bytes = element_bytes(p.d_dtype);
    return {.data = p.d, .pitch_bytes = p.d_row_stride * bytes, .width_bytes = p.n * bytes, .rows = p.m};
}

// D without a product: C, or zeros.
template <typename Problem>
void finish_without_product(const Problem& p, launch::StreamHandle stream) {
    if (!p.has_c()) return launch::fill_zero_2d(p.device.index, block_of_d(p), stream);
    if (p.c == p.d) return;
    launch::copy_2d(p.device.index, block_of_d(p),
                    {.data = p.c, .pitch_bytes = p.c_row_stride * element_bytes(p.d_dtype)}, stream);
}

// The same of each matrix of D that a grouped problem has.
template <typename Problem>
void finish_groups_without_product(Problem p, launch::StreamHandle stream) {
    const int64_t bytes = element_bytes(p.d_dtype), matrices = p.groups.matrices_of_d();
    for (int64_t i = 0; i < matrices; ++i) {
        finish_without_product(p, stream);
        p.d = static_cast<char*>(p.d) + p.d_group_stride * bytes;
        if (p.has_c()) p.c = static_cast<const char*>(p.c) + p.c_group_stride * bytes;
    }
}

}  // namespace deep_gemm::ops
