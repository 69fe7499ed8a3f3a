// Tensor maps of operands whose groups are matrices with a pitch of their own, made by the warp that loads through them.
//
//   args.a, args.b --once--> smem --address, K, pitch of the group--> smem --publish--> slot in global memory --acquire--> loads
//
// A slot is not written while a load through it may be under way. There are as many slots as stages and one more, used in turn,
// and every group that takes one loads a stage at least. So before a slot comes up again, each stage has been filled through
// other slots since its last use; and a stage is filled anew only when what it held has landed, in every CTA, and been consumed.
#pragma once

#include <deep_gemm/base/kernel_args.h>
#include <deep_gemm/ptx/tensormap.cuh>

namespace deep_gemm {

// All lanes of one warp call everything together.
template <int kSlots>
class GroupMaps {
  public:
    // `room`: kMapPairBytes of shared memory, 128-byte aligned. a, b: maps of matrices [m, .] and [n, .] of bytes.
    DG_DEVICE GroupMaps(const GroupMatrices& matrices, const TensorMap& a, const TensorMap& b, ptx::SmemAddr room)
        : matrices_(matrices), slots_(matrices.maps + blockIdx.x * kSlots * 2), room_(room) {
        const uint32_t lane = ptx::lane_id(), word = lane % 16;
        ptx::store_shared_u64(room + lane * 8, lane < 16 ? a.words[word] : b.words[word]);
        __syncwarp();
    }

    // Turns to the group of a tile of D [m, n], which has some K. `Tile` has group, k_idx and k.
    template <typename Tile>
    DG_DEVICE void turn_to(const Tile& tile, uint32_t m, uint32_t n) {
        if (tile.group == group_) return;
        group_ = tile.group;
        slot_ = slot_ + 1 == kSlots ? 0 : slot_ + 1;
        __syncwarp();  // all lanes have read what was published before
        if (ptx::elect_one()) {
            change(room_, at_byte(matrices_.a, int64_t{m} * tile.k_idx), tile.k);
            change(room_ + sizeof(TensorMap), at_byte(matrices_.b, int64_t{n} * tile.k_idx), tile.k);
        }
        __syncwarp();
        ptx::publish_tensor_map(slots_ + slot_ * 2, room_);
        ptx::publish_tensor_map(slots_ + slot_ * 2 + 1, room_ + sizeof(TensorMap));
        ptx::acquire_tensor_map(slots_ + slot_ * 2);
        ptx::acquire_tensor_map(slots_ + slot_ * 2 + 1);
    }

    DG_DEVICE const TensorMap& a() const { return slots_[slot_ * 2]; }
    DG_DEVICE const TensorMap& b() const { return slots_[slot_ * 2 + 1]; }

  private:
    static DG_DEVICE const void* at_byte(const void* data, int64_t offset) {
        return static_cast<const char*>(data) + offset;
    }

    static DG_DEVICE void change(ptx::SmemAddr map, const void* matrix, uint32_t k) {
        ptx::replace_global_address(map, matrix);
        ptx::replace_global_dim<0>(map, k);
        ptx::replace_global_stride<0>(map, k);
    }

    const GroupMatrices& matrices_;
    TensorMap* const slots_;
    const ptx::SmemAddr room_;
    int32_t group_ = -1;
    uint32_t slot_ = 0;
};

// The maps of all other groupings: the same for every tile.
class GivenMaps {
  public:
    DG_DEVICE GivenMaps(const TensorMap& a, const TensorMap& b) : a_(a), b_(b) {}
    template <typename Tile>
    DG_DEVICE void turn_to(const Tile&, uint32_t, uint32_t) const {}
    DG_DEVICE const TensorMap& a() const { return a_; }
    DG_DEVICE const TensorMap& b() const { return b_; }

  private:
    const TensorMap& a_;
    const TensorMap& b_;
};

}  // namespace deep_gemm
