#include "support/runtime_options.h"

#include <atomic>

#include "support/error.h"

namespace deep_gemm {
namespace {

constinit std::atomic<RuntimeOptions> current{RuntimeOptions{}};
static_assert(std::atomic<RuntimeOptions>::is_always_lock_free);

template <typename Change>
void update(Change change) {
    RuntimeOptions old = current.load(std::memory_order_relaxed);
    RuntimeOptions next;
    do {
        next = old;
        change(next);
    } while (!current.compare_exchange_weak(old, next));
}

}  // namespace

RuntimeOptions runtime_options() {
    return current.load(std::memory_order_relaxed);
}

void set_num_sms(int64_t count, int64_t device_total) {
    const int64_t limit = device_total > 0 ? device_total : UINT16_MAX;
    DG_CHECK(count >= 0 && count <= limit,
             "num_sms must lie in 0...{} (the SMs of the device; 0 means all of them), got {}", limit, count);
    update([&](RuntimeOptions& o) { o.num_sms = static_cast<uint16_t>(count); });
}

void set_tc_util(int64_t percent) {
    DG_CHECK(percent >= 0 && percent <= 100, "tc_util must be a percentage, 0...100 (0 means 100), got {}",
             percent);
    update([&](RuntimeOptions& o) { o.tc_util = static_cast<uint8_t>(percent); });
}

void set_block_size_multiple_of(int64_t m, int64_t n) {
    DG_CHECK(m >= 1 && m <= UINT16_MAX && n >= 1 && n <= UINT16_MAX,
             "block_size_multiple_of takes positive integers, one or a pair (m, n), got ({}, {}); 1 asks for "
             "nothing",
             m, n);
    update([&](RuntimeOptions& o) {
        o.block_m_multiple = static_cast<uint16_t>(m);
        o.block_n_multiple = static_cast<uint16_t>(n);
    });
}

void set_pdl(Switch pdl) {
    update([&](RuntimeOptions& o) { o.pdl = pdl == Switch::kOn; });
}

void set_ignore_compile_dims(Switch ignore) {
    update([&](RuntimeOptions& o) { o.ignore_compile_dims = ignore == Switch::kOn; });
}

void set_compile_mode(int64_t mode) {
    DG_CHECK(mode == 0 || mode == 1, "compile mode must be 0 (build and launch) or 1 (build only), got {}",
             mode);
    update([&](RuntimeOptions& o) { o.compile_only = mode == 1; });
}

}  // namespace deep_gemm
