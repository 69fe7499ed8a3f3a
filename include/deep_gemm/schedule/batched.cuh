// Batched scheduling: the tiles of one batch after those of another; all batches have the same extents.
#pragma once

#include <deep_gemm/schedule/dense.cuh>

namespace deep_gemm {

// Clusters are given to tiles whole, and a batch's tiles are counted in clusters: none has CTAs of two batches.
template <int kBlockM, int kBlockN, int kClusterM, int kClusterN>
class BatchedSchedule : public DenseSchedule<kBlockM, kBlockN, kClusterM, kClusterN> {
  public:
    DG_DEVICE BatchedSchedule(uint32_t m, uint32_t n, const RasterArgs& raster, uint32_t cluster_rank,
                              const GroupArgs& groups)
        : Base(m, n, raster, cluster_rank), left_(groups.count) {}

    DG_DEVICE bool next(Tile& tile) {
        const uint32_t passed = this->raster_.divisors.all.quotient(this->index_);
        if (passed >= left_) return false;
        this->index_ -= passed * this->raster_.size();
        batch_ += passed;
        left_ -= passed;
        Base::next(tile);
        tile.group = batch_;
        return true;
    }

  private:
    using Base = DenseSchedule<kBlockM, kBlockN, kClusterM, kClusterN>;
    uint32_t batch_ = 0;
    uint32_t left_;  // batches from `batch_` on; the base counts tiles from its first
};

}  // namespace deep_gemm
