// The one producer/consumer pipeline: a ring of stages, each guarded by two barriers.
//   tile_full[s]: the stage's bytes (and cp.async copies) have landed     consumers wait
//   tile_free[s]: every consumer warp that reads the stage has released   producers wait
#pragma once

#include <deep_gemm/ptx/fence.cuh>
#include <deep_gemm/ptx/mbarrier.cuh>

namespace deep_gemm {

template <int kStages>
struct PipelineBarriers {
    ptx::SmemAddr base;  // kStages tile_full, then kStages tile_free

    DG_DEVICE ptx::SmemAddr tile_full(uint32_t stage) const { return base + stage * 8; }
    DG_DEVICE ptx::SmemAddr tile_free(uint32_t stage) const { return base + (kStages + stage) * 8; }

    // By one warp, before the barriers' first use by anyone else; a CTA or cluster barrier must follow.
    DG_DEVICE void init(uint32_t full_arrivals, uint32_t free_arrivals, uint32_t lane) const {
        static_assert(kStages <= 32);
        if (lane < kStages) {
            ptx::mbarrier_init(tile_full(lane), full_arrivals);
            ptx::mbarrier_init(tile_free(lane), free_arrivals);
        }
        ptx::fence_mbarrier_init();
    }
};

// A position in the ring; every role walks its own from the start.
template <int kStages>
struct PipelineCursor {
    PipelineBarriers<kStages> barriers;
    uint32_t stage = 0;
    uint32_t phase = 0;

    DG_DEVICE void producer_acquire() const { ptx::mbarrier_wait(barriers.tile_free(stage), phase ^ 1); }
    DG_DEVICE void consumer_wait() const { ptx::mbarrier_wait(barriers.tile_full(stage), phase); }
    DG_DEVICE void advance() {
        ++stage;
        if (stage == kStages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// One consumer warp gives a stage back: to its own CTA, or to every CTA whose multicast writes into it.
template <int kClusterSize, int kStages>
DG_DEVICE void consumer_release(const PipelineBarriers<kStages>& barriers, uint32_t stage, uint32_t lane) {
    if constexpr (kClusterSize == 1) {
        if (lane == 0) ptx::mbarrier_arrive(barriers.tile_free(stage));
    } else {
        if (lane < kClusterSize) ptx::mbarrier_arrive_remote(barriers.tile_free(stage), lane);
    }
}

// A consumer warp with nothing to do in `count` stages gives each back once it is full, for others read it.
template <int kClusterSize, int kStages>
DG_DEVICE void pass_stages(PipelineCursor<kStages>& cursor, uint32_t count, uint32_t lane) {
#pragma unroll 1
    for (uint32_t i = 0; i < count; ++i) {
        cursor.consumer_wait();
        consumer_release<kClusterSize>(cursor.barriers, cursor.stage, lane);
        cursor.advance();
    }
}

}  // namespace deep_gemm
