// The one producer/consumer pipeline: a ring of stages, each guarded by two barriers.
//   tile_full[s]: the stage's bytes (and cp.async copies) have landed     consumers wait
//   tile_free[s]: every consumer warp that reads the stage has released   producers wait
#pragma once

#include <deep_gemm/ptx/fence.cuh>
#include <deep_gemm/ptx/mbarrier.cuh>

namespace deep_gemm {

// Lanes of a consumer warp that arrive where it gives a stage back. One does, for all; racecheck orders threads that arrive, and
// no others of their warp, so for its sake all do.
#ifdef DG_FOR_RACECHECK
inline constexpr uint32_t kReleasingLanes = 32;
#else
inline constexpr uint32_t kReleasingLanes = 1;
#endif

template <int kStages>
struct PipelineBarriers {
    ptx::SmemAddr base;  // kStages tile_full, then kStages tile_free

    DG_DEVICE ptx::SmemAddr tile_full(uint32_t stage) const { return base + stage * 8; }
    DG_DEVICE ptx::SmemAddr tile_free(uint32_t stage) const { return base + (kStages + stage) * 8; }

    // By one thread, before the barriers' first use by anyone else; a CTA or cluster barrier must follow.
    // `consumers`: warps that give a stage back. One thread: where each lane has a barrier of its own, the compiler makes a loop
    // of it that takes 55 cycles a barrier.
    DG_DEVICE void init(uint32_t full_arrivals, uint32_t consumers) const {
#pragma unroll
        for (int stage = 0; stage < kStages; ++stage) {
            ptx::mbarrier_init(tile_full(stage), full_arrivals);
            ptx::mbarrier_init(tile_free(stage), consumers * kReleasingLanes);
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

// One consumer warp gives a stage back: to its own CTA, or to every CTA whose multicast writes into it. Loads of its lanes from the stage
// are behind a __syncwarp, for one arrives for all.
template <int kClusterSize, int kStages>
DG_DEVICE void consumer_release(const PipelineBarriers<kStages>& barriers, uint32_t stage, uint32_t lane) {
    if constexpr (kClusterSize == 1) {
        if (lane < kReleasingLanes) ptx::mbarrier_arrive(barriers.tile_free(stage));
    } else if constexpr (kReleasingLanes > 1) {
        for (uint32_t rank = 0; rank < kClusterSize; ++rank) ptx::mbarrier_arrive_remote(barriers.tile_free(stage), rank);
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
