// Dense scheduling: one M x N matrix of tiles, shared by all clusters in strides of the grid (persistent).
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/schedule/raster.cuh>

namespace deep_gemm {

// kBlockM, kBlockN: rows and columns of a CTA's tile; kClusterM, kClusterN: CTAs of a cluster along each.
// A cluster whose tiles overhang the matrix still runs whole: loads read zeros, stores are clipped.
template <int kBlockM, int kBlockN, int kClusterM, int kClusterN>
class DenseSchedule {
  public:
    DG_DEVICE DenseSchedule(uint32_t m, uint32_t n, const RasterArgs& raster, uint32_t cluster_rank)
        : m_(m),
          raster_(raster_of_matrix<kBlockM * kClusterM, kBlockN * kClusterN>(raster, m, n)),
          index_(blockIdx.x / kClusterSize),
          rank_m_(cluster_rank % kClusterM),
          rank_n_(cluster_rank / kClusterM) {}

    // The next tile of this CTA; false when there is none. All CTAs of a cluster get the same answer.
    DG_DEVICE bool next(Tile& tile) {
        if (index_ >= raster_.size()) return false;
        const TileCoord cluster_tile = raster_.tile(index_);
        tile.m_idx = (cluster_tile.m_idx * kClusterM + rank_m_) * kBlockM;
        tile.n_idx = (cluster_tile.n_idx * kClusterN + rank_n_) * kBlockN;
        tile.m_end = m_;
        tile.group = 0;
        index_ += gridDim.x / kClusterSize;
        return true;
    }

  protected:
    static constexpr uint32_t kClusterSize = kClusterM * kClusterN;
    uint32_t m_;
    BandRaster<HostRasterDivisors> raster_;
    uint32_t index_;
    uint32_t rank_m_, rank_n_;
};

}  // namespace deep_gemm
