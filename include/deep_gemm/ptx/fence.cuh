// Orders between proxies and scopes.
#pragma once

#include <deep_gemm/base/types.h>

namespace deep_gemm::ptx {

// PTX ISA: fence.mbarrier_init. PTX 8.0, sm_90. Makes mbarrier.init visible to the cluster; follow with a cluster barrier.
DG_DEVICE void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// PTX ISA: fence.proxy.async. PTX 8.0, sm_90. Orders this thread's ordinary shared-memory writes before later reads by
// the async proxy (TMA store, wgmma), and its reads before later writes by it; every such thread executes it, then a barrier
// follows.
DG_DEVICE void fence_proxy_async_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace deep_gemm::ptx
